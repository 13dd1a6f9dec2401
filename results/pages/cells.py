"""The cells that our tables beside the paper's share: ours, the printed value, and how far they lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from results.labels import METRIC_DIGITS, METRIC_UNITS, MISSING, count_text, mean_std_text, signed_text
from results.metrics import METRICS
from results.pages.sheet import Cell, Line
from results.paper.comparison import APART, PRINTED_RUNS

if TYPE_CHECKING:
    import pandas as pd

APART_MARK = "*"


def metric_header(metrics: Sequence[str] = METRICS) -> tuple[tuple[str, str], ...]:
    """(name, unit) of each metric's column."""
    return tuple((metric, METRIC_UNITS[metric]) for metric in metrics)


def label_cell(row: pd.Series, marks: Sequence[str], comparable: bool) -> Cell:
    """The row's name with its footnotes, and its settings below. A star where any metric lies apart from print."""
    star = (APART_MARK,) if comparable and _any_apart(row) else ()
    name = Line(str(row["row"]), marks=(*marks, *star))
    return (name, Line(str(row["settings"]), "soft")) if row["settings"] else (name,)


def count_cell(row: pd.Series) -> Cell:
    """How many seeds were averaged, and how many diverged."""
    n, diverged = int(row["n"]), int(row["diverged"])
    if not n + diverged:
        return (Line(MISSING),)
    return (Line(str(n)), Line(f"{diverged} diverged", "soft")) if n and diverged else (Line(str(n)),)


def metric_cell(row: pd.Series, metric: str, comparable: bool) -> Cell:
    """Ours; the printed value where there is one; the difference where the sizes are comparable."""
    ours = mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRIC_DIGITS[metric])
    if metric == METRICS[0] and row["diverged"] and not row["n"]:
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
    """What a reader of the table has to know. `printed` says where the printed rows stand."""
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


ORIENTATION = (
    "The sizes of these runs are not those of the paper: printed rows are shown for orientation only, without "
    "differences."
)


def warnings(table: pd.DataFrame, comparable: bool, notes: Sequence[str]) -> list[str]:
    """What stands at the top of the page: other sizes than the paper's, members that diverged, the caller's notes."""
    orientation = [] if comparable or not _any_printed(table) else [ORIENTATION]
    broken = diverged_text(table)
    return [*orientation, *([broken] if broken else []), *notes]


def diverged_text(table: pd.DataFrame) -> str:
    """A note on the members that diverged, or ""."""
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
