"""Cells of tables: our value, the printed value, their difference."""

import math
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from results.labels import MISSING, count_text, number_text, signed_text
from results.metrics import METRICS
from results.pages.sheet import Cell, Line, Sheet, number_texts
from results.paper.differences import APART, PRINTED_RUNS, spread_name
from results.paper.reference import in_percent
from results.table import TableResults

APART_MARK = "*"
"""Marks rows and cells that differ from the printed ones by more than `APART` standard errors."""

PRINTED_LABEL = Line("printed", "soft")
"""Label of the line with the printed values of a row."""


def printed_sheet(
    results: TableResults,
    table: pd.DataFrame,
    title: str,
    notes: Sequence[Sequence[str]],
    metrics: Sequence[str],
    printed: str,
    axes: tuple[tuple[str, str], ...] = (),
) -> Sheet:
    """Returns a table of methods for people, one row a row of `table`.

    table    names, settings, n, diverged and the columns of `results.paper.differences.with_printed_rows`
    notes    the footnotes of each row
    printed  names the table with the printed rows; "" where they are left out of `table`
    axes     (column of `table`, unit) of what the rows vary besides the method
    """
    axes = (*axes, *((("settings", ""),) if (table["settings"] != "").any() else ()))
    footnotes, marks = number_texts(notes)
    rows = tuple(
        (
            _label_cell(row, mark, results.comparable),
            *((Line(str(row[name])),) for name, _ in axes),
            *(_metric_cell(row, metric, results.comparable, metric == metrics[0]) for metric in metrics),
            _count_cell(row),
        )
        for (_, row), mark in zip(table.iterrows(), marks, strict=True)
    )
    header = (("method", ""), *axes, *((metric, METRICS[metric].display_unit) for metric in metrics), ("n", "seeds"))
    return Sheet(title, header, rows, footnotes, tuple(_remarks(results, table, printed)))


def paired_text(mean: float, error: float, digits: int) -> str:
    """Returns the mean of paired differences ± its standard error; a dash without a pair.

    >>> paired_text(0.8412, 0.25, 2), paired_text(math.nan, math.nan, 2)
    ('+0.84 ± 0.25', '–')
    """
    return MISSING if math.isnan(mean) else f"{signed_text(mean, digits)} ± {number_text(error, digits)}"


def _label_cell(row: pd.Series, marks: Sequence[str], comparable: bool) -> Cell:
    """Returns the row's name with its footnotes, a star if any metric differs from print, and the label below it.

    The label stands beside the printed values, the second line of the other cells.
    """
    apart = any(bool(row[name]) for name in row.index if str(name).endswith("_apart"))
    star = (APART_MARK,) if comparable and apart else ()
    name = Line(str(row["row"]), marks=(*marks, *star))
    in_print = any(row[name] for name in row.index if str(name).endswith("_printed"))
    return (name, PRINTED_LABEL) if in_print else (name,)


def _count_cell(row: pd.Series) -> Cell:
    """Returns how many seeds were averaged, and how many diverged."""
    n, diverged = int(row["n"]), int(row["diverged"])
    if not n + diverged:  # not trained yet, where a 0 would look like a result
        return (Line(MISSING),)
    # Where all diverged, the cell of the first metric says so.
    return (Line(str(n)), Line(f"{diverged} diverged", "soft")) if n and diverged else (Line(str(n)),)


def _metric_cell(row: pd.Series, metric: str, comparable: bool, first: bool) -> Cell:
    """Returns our value; the printed value if there is one; the difference if the sizes are comparable.

    first: whether the cell is that of the first metric, which says that all members diverged.
    """
    declared = METRICS[metric]
    ours = declared.mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]))
    # Said once a row; its other metrics have a dash.
    if first and row["diverged"] and not row["n"]:
        ours = f"diverged ({row['diverged']} of {row['diverged']})"
    text = str(row.get(f"{metric}_printed", ""))
    if not text:
        return (Line(ours),)
    if declared.display_percent:
        text = in_percent(text)
    errors = float(row[f"{metric}_difference_se"])
    # The paper's file has hyphens; everywhere on the page a negative number has a true minus sign.
    cell = (Line(ours), Line(text.replace("-", "−"), "soft"))
    if not comparable or math.isnan(errors):
        return cell
    look, marks = ("apart", (APART_MARK,)) if row[f"{metric}_apart"] else ("soft", ())
    return (*cell, Line(f"{signed_text(errors, 1)} s.e.", look, marks))


def _remarks(results: TableResults, table: pd.DataFrame, printed: str) -> Iterator[str]:
    """Yields what a reader of the table has to know."""
    any_printed = _any_printed(table)
    spread = f"ean ± {spread_name(any_printed)}{',' if any_printed else ''} over the seeds that did not diverge."
    # A memory study has no LCA_10.
    measured = [metric for metric in METRICS if f"{metric}_mean" in table.columns]
    texts = f"{units_text(measured)} {lower_text(measured)}".rstrip()
    yield f"{'First line of a cell: m' if any_printed else 'M'}{spread} {texts}"
    if not printed:
        yield left_out_text(results.name)
    elif not any_printed:
        yield "The paper prints no row for this dataset and these settings."
    elif not results.comparable:
        yield f"Second line: {printed}. {ORIENTATION}"
    else:
        # The formula is spelled out, because the spreads in the table are not the s of it: see `paper.differences`.
        yield (
            f"Second line: {printed}, {PRINTED_RUNS} runs. Third line: the difference in standard errors, "
            f"(ours − printed) / √(s²/n + sₚ²/{PRINTED_RUNS}), where s (ours) and sₚ (printed) are sample standard "
            "deviations, computed from those that are shown."
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


def left_out_text(name: str) -> str:
    """Returns why no printed row is in the table of a study, and how to see them."""
    return (
        "The sizes of these runs are not those of the paper, so its printed rows are left out; "
        f"epsearch report {name} --with-printed shows them."
    )


def units_text(metrics: Iterable[str]) -> str:
    """Returns a sentence on the units of metrics.

    >>> units_text(["A_T", "F_T"]), units_text(["A_T", "LCA_10"])
    ('All metrics are in percent.', 'LCA_10 is a fraction, the other metrics are in percent.')
    >>> units_text(["LCA_10"])
    'LCA_10 is a fraction.'
    """
    metrics = tuple(metrics)
    *first, last = [metric for metric in metrics if not METRICS[metric].display_unit] or [""]
    if not last:
        return "All metrics are in percent."
    fractions = f"{', '.join(first)} and {last} are fractions" if first else f"{last} is a fraction"
    return f"{fractions}{', the other metrics are in percent' if len(first) + 1 < len(metrics) else ''}."


def lower_text(metrics: Iterable[str]) -> str:
    """Returns a sentence on the metrics of which a lower value is better; "" without one.

    >>> lower_text(["A_T", "F_T"]), lower_text(["A_T"])
    ('A lower F_T is better.', '')
    """
    *first, last = [metric for metric in metrics if METRICS[metric].lower_is_better] or [""]
    if first:
        return f"Lower values of {', '.join(first)} and {last} are better."
    return f"A lower {last} is better." if last else ""


def warnings(table: pd.DataFrame, comparable: bool, notes: Sequence[str]) -> list[str]:
    """Returns the notes at the top of a page: other sizes than the paper's, diverged members, the caller's notes."""
    orientation = [] if comparable or not _any_printed(table) else [ORIENTATION]
    return [*orientation, *_divergence_notes(table[table["diverged"] > 0]), *notes]


def _divergence_notes(broken: pd.DataFrame) -> Iterator[str]:
    """Yields a note on rows with members that diverged, if there are any."""
    if len(broken):
        members = count_text(int(broken["diverged"].sum()), "member")
        rows = ", ".join(f"{r['row']} ({r['diverged']} of {r['n'] + r['diverged']})" for _, r in broken.iterrows())
        yield f"{members} diverged: {rows}. They are counted but not averaged."


def _any_printed(table: pd.DataFrame) -> bool:
    return bool((table.filter(regex="_printed$") != "").to_numpy().any())
