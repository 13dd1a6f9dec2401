"""LaTeX tables: directions of metrics, best means in bold, decimals from standard errors."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low
from typing import TypeVar

import pandas as pd

from results.labels import mean_std_text
from results.metrics import METRICS
from results.pages.sheet import BEST, Sheet
from results.paper.differences import IN_PRINT
from results.search_tables import by_seed
from results.statistics.paired import ALPHA, Estimate, mean_estimate, paired, sign_flip_p
from results.statistics.power import LEAST_FOR_A_TEST
from results.table import TableResults

T = TypeVar("T")

MOST_DECIMALS = 3

TEST = f"a paired sign-flip test on their common seeds (p < {ALPHA:g}, without correction for several columns"

DECIMALS = "Our decimals: two digits of the median standard error of a column, three decimals at most."


def table_for_latex(
    results: TableResults,
    table: pd.DataFrame,
    metrics: Sequence[str],
    sheet: Callable[[pd.DataFrame, Sequence[str]], Sheet],
) -> Sheet:
    """Returns the LaTeX table of a comparison or memory study, with the notes on the study.

    table: as for `printed_sheet`; metrics: of the LaTeX table where the study asks for no others; sheet: makes the
    table for people from the columns of some metrics.
    """
    metrics = results.latex_metrics or metrics
    ends = ("mean", "std", *IN_PRINT)
    others = [f"{metric}_{end}" for metric in METRICS if metric not in metrics for end in ends]
    chosen = table.drop(columns=others, errors="ignore")
    made, bold = sheet(chosen, metrics), False
    first = len(made.header) - 1 - len(metrics)  # the last column has the numbers of seeds
    for place, metric in enumerate(metrics, start=first):
        factor = METRICS[metric].display_factor
        scores = [
            {seed: factor * score for seed, score in by_seed(row.records, metric).items()} for row in results.rows
        ]
        spreads = [factor * float(std) for std in chosen[f"{metric}_std"]]
        made, best = with_scores(made, place, metric, scores, spreads)
        bold = bold or best
    return replace(made, remarks=(*made.remarks, *remarks(bold), *results.notes))


def with_scores(
    sheet: Sheet, place: int, metric: str, scores: Sequence[Mapping[int, float]], spreads: Sequence[float]
) -> tuple[Sheet, bool]:
    """Returns the table with its column number `place` as LaTeX tables have it, and whether its best mean is bold.

    scores: seed -> score of each row; spreads: standard deviation of each row; both in the unit that people see.
    """
    lower, means = METRICS[metric].lower_is_better, [_estimate(row).value for row in scores]
    digits = decimals((_estimate(row).error for row in scores), METRICS[metric].digits)
    best = best_row(scores, lower)
    rows = []
    for i, (cells, mean, spread) in enumerate(zip(sheet.rows, means, spreads, strict=True)):
        cell = cells[place]
        if math.isfinite(mean):
            ours = cell[0]._replace(text=mean_std_text(mean, spread, digits), look=BEST if i == best else cell[0].look)
            cell = (ours, *cell[1:])
        rows.append(_with(cells, place, cell))
    name, unit = sheet.header[place]
    header = (f"{name} {'↓' if lower else '↑'}", unit)
    return replace(sheet, header=_with(sheet.header, place, header), rows=tuple(rows)), best is not None


def best_row(scores: Sequence[Mapping[int, float]], lower: bool = False) -> int | None:
    """Returns the row whose mean is significantly better than the second best; None where no row is.

    scores: seed -> score of each row; lower: whether a lower score is better. The test is `sign_flip_p` on the seeds
    that both rows have, at the level `ALPHA`.

    >>> rows = [{seed: seed + 0.1 for seed in range(6)}, {seed: float(seed) for seed in range(6)}]
    >>> best_row(rows), best_row(rows, lower=True), best_row([{0: 2.0, 1: 3.0}, {0: 1.0, 1: 1.0}])
    (0, 1, None)
    """
    sign = -1.0 if lower else 1.0
    means = {i: mean for i, row in enumerate(scores) if not math.isnan(mean := sign * _estimate(row).value)}
    first, second, *_ = (*sorted(means, key=means.__getitem__, reverse=True), None, None)
    if first is None or second is None or not math.isfinite(means[first]):
        return None
    pair = paired(scores[first], scores[second])
    # Over other seeds than the common ones a mean may be higher by the seeds alone.
    return first if sign * pair.mean > 0 and sign_flip_p(pair.differences) < ALPHA else None


def decimals(errors: Iterable[float], default: int) -> int:
    """Returns how many decimals give the median standard error two significant digits, between 0 and 3.

    default: where no standard error is positive and finite.

    >>> decimals([0.42, 1.3], 1), decimals([0.0996], 1), decimals([12.0], 1), decimals([0.0], 1), decimals([1e-5], 1)
    (2, 2, 0, 1, 3)
    """
    usable = [error for error in errors if math.isfinite(error) and error > 0]
    if not usable:
        return default
    # The median, because one row of nearly equal seeds would give all others digits that they do not have; of two
    # it is the smaller one.
    # The exponent after rounding to two digits: 0.0996 is 0.10.
    exponent = int(f"{median_low(usable):.1e}".partition("e")[2])
    return min(max(1 - exponent, 0), MOST_DECIMALS)


def remarks(bold: bool) -> tuple[str, ...]:
    """Returns what a reader of a LaTeX table has to know; bold: whether any mean is bold."""
    if bold:
        chosen = f"Bold: the best mean of a column, if it is better than the second best by {TEST})."
    else:
        chosen = (
            f"No mean is bold, because no best mean is resolved: none is better than the second best by {TEST}; "
            f"at least {LEAST_FOR_A_TEST} seeds are needed)."
        )
    return ("↑: higher is better, ↓: lower is better.", chosen, DECIMALS)


def _estimate(scores: Mapping[int, float]) -> Estimate:
    values = [score for score in scores.values() if not math.isnan(score)]
    # Metrics of others may be infinite, which have no spread.
    return mean_estimate(values) if all(map(math.isfinite, values)) else Estimate(sum(values), math.nan)


def _with(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """Returns the values with another one in a place."""
    return (*values[:place], value, *values[place + 1 :])
