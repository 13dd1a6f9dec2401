"""Our results beside the paper's: differences of means in standard errors."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_std
from results.paper.reference import Printed

PRINTED_RUNS = 5
"""Runs of every printed mean."""

APART = 3.0
"""Differences of more standard errors are marked."""

IN_PRINT = ("printed", "printed_mean", "printed_std", "difference_se", "apart")
"""What the columns of a metric that the paper prints end in, after mean and std."""


def spread_name(printed: bool) -> str:
    """Returns the name of what stands behind ± in a table; printed: whether the paper's rows are in it.

    >>> spread_name(False), spread_name(True)
    ('standard deviation', 'population standard deviation, as the paper prints it')
    """
    return "population standard deviation, as the paper prints it" if printed else "standard deviation"


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


def with_printed_rows(
    groups: Sequence[Sequence[RunRecord]],
    printed: Sequence[Mapping[str, Printed]],
    metrics: Sequence[str],
    in_print: Sequence[str],
) -> pd.DataFrame:
    """Returns one row for each group of records, beside its printed row.

    groups    the members of each row
    printed   the row of `results.paper.reference` for each group, metric -> cell; empty where the paper prints none
    metrics   the metrics of the table
    in_print  the metrics that the paper prints

    Columns: n (seeds averaged), diverged, then for each metric <m>_mean and <m>_std (of the population where any
    printed row is given, else of the sample), and for those in print also <m>_printed (text), <m>_printed_mean,
    <m>_printed_std, <m>_difference_se (see `difference_in_errors`) and <m>_apart. <m>_apart is true where the means are
    more than `APART` standard errors apart *and* differ by more than the rounding of the printed mean: F_T is printed
    with two decimals, which is coarser than its spread. Units of `summarize`; a group without records has n = 0 and
    NaN. Raises ValueError where there are more or fewer printed rows than groups.
    """
    # One kind of spread in a table, so that ours and the printed one can be compared.
    ours = pd.DataFrame([mean_std(group, population=any(printed)) for group in groups])
    blocks = [ours]
    for metric in in_print:
        means, stds = ours[f"{metric}_mean"], ours[f"{metric}_std"]
        rows = [
            _beside(mean, std, _count_values(group, metric), cells.get(metric, Printed()))
            for mean, std, group, cells in zip(means, stds, groups, printed, strict=True)
        ]
        blocks.append(pd.DataFrame(rows, columns=[f"{metric}_{name}" for name in IN_PRINT]))
    names = [f"{m}_{name}" for m in metrics for name in ("mean", "std", *(IN_PRINT if m in in_print else ()))]
    return pd.concat(blocks, axis=1)[["n", "diverged", *names]]


def _count_values(members: Sequence[RunRecord], metric: str) -> int:
    """Returns how many members have a value: FWT may be missing where A_T is not, and then has fewer seeds."""
    return sum(not math.isnan(METRICS[metric].of(record)) for record in members)


def _beside(mean: float, std: float, n: int, printed: Printed) -> tuple[object, ...]:
    """Returns the values of `IN_PRINT` for our mean and spread over n seeds."""
    errors = difference_in_errors(mean, std, n, printed)
    # With NaN both comparisons are false, so a cell without a number is never marked.
    apart = abs(errors) > APART and abs(mean - printed.mean) > printed.rounding
    return (printed.text, printed.mean, printed.std, errors, apart)
