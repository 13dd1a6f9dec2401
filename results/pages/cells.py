"""Cells of the tables beside the paper's: our value, the printed value, and their difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from results.labels import MISSING, count_text, mean_std_text, signed_text
from results.metrics import METRICS
from results.pages.sheet import Cell, Line
from results.paper.comparison import APART, PRINTED_RUNS

if TYPE_CHECKING:
    import pandas as pd

APART_MARK = "*"
"""Marks rows and cells that differ from the printed ones by more than `APART` standard errors."""


def metric_header(metrics: Iterable[str] | None = None) -> tuple[tuple[str, str], ...]:
    """Returns (name, unit) of each metric's column."""
    return tuple((metric, METRICS[metric].unit) for metric in (METRICS if metrics is None else metrics))


def label_cell(row: pd.Series, marks: Sequence[str], comparable: bool) -> Cell:
    """Returns the row's name with its footnotes, and its settings below; a star if any metric differs from print."""
    star = (APART_MARK,) if comparable and _any_apart(row) else ()
    name = Line(str(row["row"]), marks=(*marks, *star))
    return (name, Line(str(row["settings"]), "soft")) if row["settings"] else (name,)


def count_cell(row: pd.Series) -> Cell:
    """Returns how many seeds were averaged, and how many diverged."""
    n, diverged = int(row["n"]), int(row["diverged"])
    if not n + diverged:
        return (Line(MISSING),)
    return (Line(str(n)), Line(f"{diverged} diverged", "soft")) if n and diverged else (Line(str(n)),)


def metric_cell(row: pd.Series, metric: str, comparable: bool) -> Cell:
    """Returns our value; the printed value if there is one; the difference if the sizes are comparable."""
    ours = mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRICS[metric].digits)
    if metric == "A_T" and row["diverged"] and not row["n"]:
        ours = f"diverged ({row['diverged']} of {row['diverged']})"
    text = str(row.get(f"{metric}_printed", ""))
    if not text:
        return (Line(ours),)
    errors = float(row[f"{metric}_difference_se"])
    cell = (Line(ours), Line(text.replace("-", "−"), "soft"))
    if not comparable or math.isnan(errors):
        return cell
    apart = bool(row[f"{metric}_apart"])
    return (*cell, Line(f"{signed_text(errors, 1)} s.e.", "apart" if apart else "soft", (APART_MARK,) * apart))


def remarks(table: pd.DataFrame, comparable: bool, printed: str) -> Iterator[str]:
    """Yields what a reader of the table has to know. `printed` names the table with the printed rows."""
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
    broken = diverged_text(table)
    return [*orientation, *([broken] if broken else []), *notes]


def diverged_text(table: pd.DataFrame) -> str:
    """Returns a note on the members that diverged, or ""."""
    broken = table[table["diverged"] > 0]
    if broken.empty:
        return ""
    rows = ", ".join(f"{r['row']} ({r['diverged']} of {r['n'] + r['diverged']})" for _, r in broken.iterrows())
    return f"{count_text(int(broken['diverged'].sum()), 'member')} diverged: {rows}. They are counted but not averaged."


def _any_printed(table: pd.DataFrame) -> bool:
    found = [name for name in table.columns if name.endswith("_printed")]
    return bool((table[found] != "").to_numpy().any())


def _any_apart(row: pd.Series) -> bool:
    return any(bool(row[name]) for name in row.index if str(name).endswith("_apart"))
