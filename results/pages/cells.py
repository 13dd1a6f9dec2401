"""Cells of tables: our value, the printed value, their difference."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from results.labels import MISSING, count_text, mean_std_text, number_text, signed_text
from results.metrics import METRICS
from results.pages.sheet import Cell, Line, Sheet, numbered
from results.paper.beside import APART, PRINTED_RUNS
from results.table import TableResults

APART_MARK = "*"
"""Marks rows and cells that differ from the printed ones by more than `APART` standard errors."""


def beside_print(
    results: TableResults,
    table: pd.DataFrame,
    title: str,
    notes: Sequence[Sequence[str]],
    metrics: Sequence[str],
    printed: str,
    axes: tuple[tuple[str, str], ...] = (),
) -> Sheet:
    """Returns a table of methods for people, one row a row of `table`.

    table    names, n, diverged and the columns of `results.paper.beside.beside_printed`
    notes    the footnotes of each row
    printed  names the table with the printed rows
    axes     (column of `table`, unit) of what the rows vary besides the method
    """
    footnotes, marks = numbered(notes)
    rows = tuple(
        (
            _label_cell(row, mark, results.comparable),
            *((Line(str(row[name])),) for name, _ in axes),
            *(_metric_cell(row, metric, results.comparable) for metric in metrics),
            _count_cell(row),
        )
        for (_, row), mark in zip(table.iterrows(), marks, strict=True)
    )
    header = (("method", ""), *axes, *((metric, METRICS[metric].unit) for metric in metrics), ("n", "seeds"))
    return Sheet(title, header, rows, footnotes, tuple(_remarks(table, results.comparable, printed)))


def paired_text(mean: float, error: float, digits: int) -> str:
    """Returns the mean of paired differences ± its standard error; a dash without a pair.

    >>> paired_text(0.8412, 0.25, 2), paired_text(math.nan, math.nan, 2)
    ('+0.84 ± 0.25', '–')
    """
    return MISSING if math.isnan(mean) else f"{signed_text(mean, digits)} ± {number_text(error, digits)}"


def _label_cell(row: pd.Series, marks: Sequence[str], comparable: bool) -> Cell:
    """Returns the row's name with its footnotes, and its settings below; a star if any metric differs from print."""
    apart = any(bool(row[name]) for name in row.index if str(name).endswith("_apart"))
    star = (APART_MARK,) if comparable and apart else ()
    name = Line(str(row["row"]), marks=(*marks, *star))
    return (name, Line(str(row["settings"]), "soft")) if row["settings"] else (name,)


def _count_cell(row: pd.Series) -> Cell:
    """Returns how many seeds were averaged, and how many diverged."""
    n, diverged = int(row["n"]), int(row["diverged"])
    if not n + diverged:  # not trained yet, where a 0 would look like a result
        return (Line(MISSING),)
    # Where all diverged, the cell of A_T says so.
    return (Line(str(n)), Line(f"{diverged} diverged", "soft")) if n and diverged else (Line(str(n)),)


def _metric_cell(row: pd.Series, metric: str, comparable: bool) -> Cell:
    """Returns our value; the printed value if there is one; the difference if the sizes are comparable."""
    ours = mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRICS[metric].digits)
    # Said once a row; its other metrics have a dash.
    if metric == "A_T" and row["diverged"] and not row["n"]:
        ours = f"diverged ({row['diverged']} of {row['diverged']})"
    text = str(row.get(f"{metric}_printed", ""))
    if not text:
        return (Line(ours),)
    errors = float(row[f"{metric}_difference_se"])
    # The paper's file has hyphens; everywhere on the page a negative number has a true minus sign.
    cell = (Line(ours), Line(text.replace("-", "−"), "soft"))
    if not comparable or math.isnan(errors):
        return cell
    look, marks = ("apart", (APART_MARK,)) if row[f"{metric}_apart"] else ("soft", ())
    return (*cell, Line(f"{signed_text(errors, 1)} s.e.", look, marks))


def _remarks(table: pd.DataFrame, comparable: bool, printed: str) -> Iterator[str]:
    """Yields what a reader of the table has to know."""
    # A memory study has no LCA_10.
    fractions = "F_T and LCA_10 are fractions" if "LCA_10_mean" in table.columns else "F_T is a fraction"
    yield (
        "First line of a cell: mean ± population standard deviation over the seeds that did not diverge. "
        f"{fractions}, the other metrics are in percent; a lower F_T is better."
    )
    if not _any_printed(table):
        yield "The paper prints no row for this dataset and these settings."
    elif not comparable:
        yield f"Second line: {printed}. {ORIENTATION}"
    else:
        # The formula is spelled out, because the printed spreads are those of the population: see `paper.beside`.
        yield (
            f"Second line: {printed}, {PRINTED_RUNS} runs. Third line: the difference in standard errors, "
            f"(ours − printed) / √(s²/n + sₚ²/{PRINTED_RUNS}), where s (ours) and sₚ (printed) are sample standard "
            "deviations, computed from the population standard deviations that are shown."
        )
        yield (
            f"{APART_MARK} more than {APART:g} standard errors apart, and by more than the rounding of the printed "
            "mean. This is a hint, not a test: with few seeds s is a poor estimate (with three seeds, differences "
            "exceed 3 standard errors by chance alone in up to one of ten cells), and the table has many cells."
        )


# Shown at the top of a page, too, so that nobody compares runs of different sizes.
ORIENTATION = (
    "The sizes of these runs are not those of the paper: printed rows are shown for orientation only, without "
    "differences."
)


def warnings(table: pd.DataFrame, comparable: bool, notes: Sequence[str]) -> list[str]:
    """Returns the notes at the top of a page: other sizes than the paper's, diverged members, the caller's notes."""
    orientation = [] if comparable or not _any_printed(table) else [ORIENTATION]
    return [*orientation, *_diverged(table[table["diverged"] > 0]), *notes]


def _diverged(broken: pd.DataFrame) -> Iterator[str]:
    """Yields a note on rows with members that diverged, if there are any."""
    if len(broken):
        members = count_text(int(broken["diverged"].sum()), "member")
        rows = ", ".join(f"{r['row']} ({r['diverged']} of {r['n'] + r['diverged']})" for _, r in broken.iterrows())
        yield f"{members} diverged: {rows}. They are counted but not averaged."


def _any_printed(table: pd.DataFrame) -> bool:
    return bool((table.filter(regex="_printed$") != "").to_numpy().any())
