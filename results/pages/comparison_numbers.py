"""The numbers of a comparison of methods, beside the printed table."""

import math

import pandas as pd

from results.labels import settings_text
from results.metrics import METRICS
from results.paper.differences import with_printed_rows
from results.paper.reference import Printed, footnotes, printed_row
from results.table import TableResults

PRINTED_METRICS = ("A_T", "F_T", "a_1", "a_t", "BWT", "FWT")
"""The metrics of the paper's main tables; LCA_10 is only in a figure."""


def comparison_table(comparison: TableResults) -> pd.DataFrame:
    """Returns one row a `TableRow`: row, method, settings (text), then n, diverged and those of `with_printed_rows`.

    Means and standard deviations in the units of `summarize`; the standard deviations are those of the population where
    the table has printed rows, else of the sample. <m>_difference_se, for the six metrics that the paper prints, is
    (ours − printed) / √(s²/n + sₚ²/5) with sample standard deviations s and sₚ; NaN without a printed value, with fewer
    than two measured seeds, and without any spread. With three to five seeds it is a hint, not a test: see
    `difference_in_errors`. Printed rows of other sizes are left out, unless they are wanted.
    """
    printed = _printed_rows(comparison) if comparison.printed_beside else [{} for _ in comparison.rows]
    beside = with_printed_rows([row.records for row in comparison.rows], printed, tuple(METRICS), PRINTED_METRICS)
    named = [(row.label, row.method, settings_text(row.settings)) for row in comparison.rows]
    return pd.DataFrame(named, columns=["row", "method", "settings"]).join(beside)


def leaves_out(comparison: TableResults) -> bool:
    """Returns whether the paper has printed rows that are not in the table, because the sizes are others."""
    return not comparison.printed_beside and any(_printed_rows(comparison))


def ranking(comparison: TableResults) -> tuple[pd.DataFrame, float]:
    """Returns the rows that have both our A_T and a printed one, ranked by each, and Kendall's τ-b of both rankings.

    Columns: row, method, rank (1 = highest A_T), A_T (ours, mean, %), printed_rank, printed_A_T; best first. τ-b lies
    in [−1, 1]; NaN below two methods or where all values are tied.

    Every such row has a rank by our A_T; its printed rank is the rank of its method; equal values share the better
    rank. τ-b is computed over methods, each represented by its first row with both values, because two rows of one
    method share their printed value and would count as a tie that nobody measured.
    """
    from scipy.stats import kendalltau  # takes a while to import, and only this page needs it

    table = comparison_table(comparison).rename(columns={"A_T_mean": "A_T", "A_T_printed_mean": "printed_A_T"})
    both = table.dropna(subset=["A_T", "printed_A_T"])
    firsts = both.drop_duplicates("method")  # the first row of each, in the order of the table
    # "min": methods that tie share the better rank, as in a printed table.
    printed = dict(zip(firsts["method"], firsts["printed_A_T"].rank(method="min", ascending=False), strict=True))
    ranked = both.assign(
        rank=both["A_T"].rank(method="min", ascending=False).astype(int),
        printed_rank=[int(printed[method]) for method in both["method"]],
    )
    columns = ["row", "method", "rank", "A_T", "printed_rank", "printed_A_T"]
    ordered = ranked[columns].sort_values("rank", kind="stable", ignore_index=True)
    tau = float(kendalltau(firsts["A_T"], firsts["printed_A_T"]).statistic) if len(firsts) > 1 else math.nan
    return ordered, tau


def row_notes(comparison: TableResults) -> list[tuple[str, ...]]:
    """Returns the footnotes of each row: what is known about its printed row, if that is shown, then our own remark."""
    printed_notes = [
        footnotes(comparison.dataset, row.method) if comparison.printed_beside else () for row in comparison.rows
    ]
    return [
        (*notes, *([row.remark] if row.remark else []))
        for notes, row in zip(printed_notes, comparison.rows, strict=True)
    ]


def _printed_rows(comparison: TableResults) -> list[dict[str, Printed]]:
    """Returns the printed row of each row; empty where the paper prints none."""
    return [printed_row(comparison.dataset, row.method) for row in comparison.rows]
