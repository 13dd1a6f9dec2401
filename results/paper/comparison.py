"""Our results beside the paper's: differences of means in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_std, summarize

if TYPE_CHECKING:
    import pandas as pd

PRINTED_RUNS = 5
"""Runs of every printed mean."""

APART = 3.0
"""Differences of more standard errors are marked."""


class Printed(NamedTuple):
    """One printed cell, in the units of `summarize`."""

    mean: float = math.nan
    """NaN where the paper prints no number."""
    std: float = math.nan
    """Population standard deviation; NaN where the paper prints none."""
    text: str = ""
    """As printed, "91.3 ± 0.11" or "OoM"; "" where the paper prints nothing."""

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit of the mean.

        0 where the printed spread is 0, because such a value is exact: PROGNN cannot forget.

        >>> Printed(91.3, 0.11, "91.3 ± 0.11").rounding, Printed(0.0, 0.0, "0 ± 0").rounding
        (0.05, 0.0)
        """
        if self.std == 0:
            return 0.0
        mean = self.text.partition(" ")[0]
        return 0.5 / 10.0 ** len(mean.partition(".")[2])


def difference_in_errors(mean: float, std: float, n: int, printed: Printed) -> float:
    """Returns (ours − printed) / √(s²/n + sₚ²/n_p), where s and sₚ are sample standard deviations.

    `std` and the printed one are population standard deviations (ddof 0), so s²/n = std²/(n − 1). NaN where a value is
    missing, n is below two, or neither mean has any spread.


    This is a hint, not a test: with few seeds s is a poor estimate (Student's t with two degrees of freedom exceeds 3
    by chance in one of ten cases), the printed means are rounded, and a table has many such values.

    >>> round(difference_in_errors(91.0, 0.2, 3, Printed(90.0, 0.4)), 3)  # 1 / √(0.04/2 + 0.16/4)
    4.082
    """
    if n < 2:
        return math.nan
    # n − 1, because the standard deviations are population ones: std²/(n − 1) = s²/n.
    error = math.sqrt(std**2 / (n - 1) + printed.std**2 / (PRINTED_RUNS - 1))
    return (mean - printed.mean) / error if error > 0 else math.nan


def printed_cells(row: pd.DataFrame | None) -> dict[str, Printed]:
    """Returns metric -> printed cell for a row of `results.paper.reference`; empty where the paper prints none."""
    if row is None:
        return {}
    cells = zip(row["metric"], row["mean"], row["std"], row["printed"], strict=True)
    return {str(metric): Printed(float(mean), float(std), str(text)) for metric, mean, std, text in cells}


def beside_printed(
    groups: Sequence[Sequence[RunRecord]],
    printed: Sequence[pd.DataFrame | None],
    metrics: Sequence[str],
    in_print: Sequence[str],
) -> pd.DataFrame:
    """Returns one row for each group of records, beside its printed row.

    groups    the members of each row
    printed   the row of `results.paper.reference` for each group; None where the paper prints none
    metrics   the metrics of the table
    in_print  those of them that the paper prints

    Columns: n (seeds averaged), diverged, then for each metric <m>_mean and <m>_std (population), and for those in
    print also <m>_printed (text), <m>_printed_mean, <m>_printed_std, <m>_difference_se (see `difference_in_errors`) and
    <m>_apart. <m>_apart is true where the means are more than `APART` standard errors apart *and* differ by more than
    the rounding of the printed mean: F_T is printed with two decimals, which is coarser than its spread. Units of
    `summarize`; a group without records has n = 0 and NaN.
    """
    import pandas as pd

    rows = [
        {"n": n, "diverged": diverged, **_cells(values, printed_cells(row), metrics, in_print)}
        for (n, diverged, values), row in zip(_measured(groups), printed, strict=True)
    ]
    names = [name for m in metrics for name in _columns(m, m in in_print)]
    return pd.DataFrame(rows, columns=["n", "diverged", *names])


def _measured(groups: Sequence[Sequence[RunRecord]]) -> Iterator[tuple[int, int, dict[str, tuple[float, float, int]]]]:
    """Yields n, diverged and metric -> (mean, std, number of values) of each group."""
    nothing = dict.fromkeys(METRICS, (math.nan, math.nan, 0))
    for group in groups:
        if not group:
            yield 0, 0, nothing
            continue
        frame = summarize(group).assign(group=0)
        row = mean_std(frame, by=["group"]).iloc[0]
        values = {m: (float(row[f"{m}_mean"]), float(row[f"{m}_std"]), int(frame[m].count())) for m in METRICS}
        yield int(row["n"]), int(row["diverged"]), values


def _cells(
    values: dict[str, tuple[float, float, int]],
    printed: dict[str, Printed],
    metrics: Sequence[str],
    in_print: Sequence[str],
) -> dict[str, object]:
    cells: dict[str, object] = {}
    for metric in metrics:
        mean, std, n = values[metric]
        cells |= {f"{metric}_mean": mean, f"{metric}_std": std}
        if metric in in_print:
            there = printed.get(metric, Printed())
            errors = difference_in_errors(mean, std, n, there)
            apart = abs(errors) > APART and abs(mean - there.mean) > there.rounding
            found = (there.text, there.mean, there.std, errors, apart)
            cells |= dict(zip(_columns(metric, True)[2:], found, strict=True))
    return cells


def _columns(metric: str, in_print: bool) -> list[str]:
    """Returns the names of a metric's columns."""
    more = ["printed", "printed_mean", "printed_std", "difference_se", "apart"] if in_print else []
    return [f"{metric}_{name}" for name in ("mean", "std", *more)]
