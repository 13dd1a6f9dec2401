"""The numbers of a comparison of methods on one evaluation stream, beside the paper's printed table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from results.labels import settings_text
from results.ledger.record import RunRecord
from results.metrics import METRICS
from results.paper.comparison import beside_printed
from results.paper.reference import footnotes, printed_row

if TYPE_CHECKING:
    import pandas as pd

PRINTED_METRICS = ("A_T", "F_T", "a_1", "a_t", "BWT", "FWT")
"""The metrics of the paper's main tables; LCA_10 is only in a figure."""


@dataclass(frozen=True, eq=False)
class TrainedRow:
    """One method with its hyperparameters. Raises ValueError where its records differ in tasks or share a seed."""

    label: str
    """The row's name: "ER, reference batch 10"."""
    method: str
    """Our name: "er", "a_agem", … as in `results.paper.reference.METHODS`, or one that the paper does not print."""
    settings: Mapping[str, Any]
    """The hyperparameters that identify the row, {"lr": 0.03, "λ": 10}; shown in the table."""
    records: tuple[RunRecord, ...]
    """Its members on the evaluation stream, one a seed, diverged ones included; empty where not trained yet."""

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that no other row of its table has."""
        return (self.label,)

    def __post_init__(self) -> None:
        check_members(", ".join(map(str, self.identity)), self.records)


@dataclass(frozen=True, eq=False)
class ComparedRow(TrainedRow):
    """A row of `epsearch compare`."""

    remark: str = ""
    """Our own footnote on this row; "" without one."""


R_co = TypeVar("R_co", bound=TrainedRow, covariant=True)


@dataclass(frozen=True, eq=False)
class TableResults(Generic[R_co]):
    """Everything that the page of a table of methods prints. Raises ValueError where two rows share their identity."""

    name: str
    """The study's name."""
    dataset: str
    """As after --dataset."""
    rows: tuple[R_co, ...]
    """The rows of the table, in their order."""
    config: Mapping[str, Any]
    """All options of the study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, …"""
    notes: tuple[str, ...]
    """Warnings of the caller, shown at the top."""
    comparable: bool
    """Whether the sizes are the paper's, so that its printed rows can be compared with ours."""

    def __post_init__(self) -> None:
        check_unique([row.identity for row in self.rows], "labels of rows")


class ComparisonResults(TableResults[ComparedRow]):
    """Everything that the page of `epsearch compare` prints."""


class Ranking(NamedTuple):
    """Rows ordered by our A_T, and how well that order agrees with the printed one."""

    table: pd.DataFrame
    """row, method, rank (1 = highest A_T), A_T (ours, mean, %), printed_rank, printed_A_T; best first."""
    tau: float
    """Kendall's τ-b in [−1, 1]; NaN below two methods or where all values are tied."""
    methods: int
    """Methods behind τ."""


def comparison_table(comparison: ComparisonResults) -> pd.DataFrame:
    """Returns one row a `ComparedRow`: row, method, settings (text), then n, diverged and those of `beside_printed`.

    Means and population standard deviations in the units of `summarize`. <m>_difference_se, for the six metrics that
    the paper prints, is (ours − printed) / √(s²/n + sₚ²/5) with sample standard deviations s and sₚ; NaN without a
    printed value, with fewer than two measured seeds, and without any spread. With three to five seeds it is a hint,
    not a test: see `difference_in_errors`.
    """
    rows = comparison.rows
    printed = [printed_row(comparison.dataset, row.method) for row in rows]
    table = beside_printed([row.records for row in rows], printed, tuple(METRICS), PRINTED_METRICS)
    table.insert(0, "row", [row.label for row in rows])
    table.insert(1, "method", [row.method for row in rows])
    table.insert(2, "settings", [settings_text(row.settings) for row in rows])
    return table


def ranking(comparison: ComparisonResults) -> Ranking:
    """Returns the rows that have both our A_T and a printed one, ranked by each.

    Every such row has a rank of ours; its printed rank is that of its method; equal values share the better rank. τ-b
    is computed over methods, each represented by its first row with both values, because two rows of one method share
    their printed value and would count as a tie that nobody measured.
    """
    from scipy.stats import kendalltau

    table = comparison_table(comparison).rename(columns={"A_T_mean": "A_T", "A_T_printed_mean": "printed_A_T"})
    both = table.dropna(subset=["A_T", "printed_A_T"])
    firsts = both.drop_duplicates("method")
    # "min": methods that tie share the better rank, as in a printed table.
    printed = dict(zip(firsts["method"], firsts["printed_A_T"].rank(method="min", ascending=False), strict=True))
    ranked = both.assign(
        rank=both["A_T"].rank(method="min", ascending=False).astype(int),
        printed_rank=[int(printed[method]) for method in both["method"]],
    )
    columns = ["row", "method", "rank", "A_T", "printed_rank", "printed_A_T"]
    ordered = ranked[columns].sort_values("rank", kind="stable", ignore_index=True)
    tau = float(kendalltau(firsts["A_T"], firsts["printed_A_T"]).statistic) if len(firsts) > 1 else math.nan
    return Ranking(ordered, tau, len(firsts))


def row_notes(comparison: ComparisonResults) -> list[tuple[str, ...]]:
    """Returns the footnotes of each row: what is known about its printed row, then our own remark."""
    return [
        (*footnotes(comparison.dataset, row.method), *([row.remark] if row.remark else [])) for row in comparison.rows
    ]


def check_members(label: str, records: Sequence[RunRecord]) -> None:
    """Raises ValueError if members of one row were trained on streams of different length, or share a seed."""
    tasks = sorted({r.tasks for r in records})
    if len(tasks) > 1:
        raise ValueError(f"members of row {label!r} must have one number of tasks, got {tasks}")
    check_unique([r.seed for r in records], f"seeds of row {label!r}")


def check_unique(values: Iterable[object], what: str) -> None:
    """Raises ValueError if a value occurs twice."""
    kept = list(values)
    twice = [value for value in dict.fromkeys(kept) if kept.count(value) > 1]
    if twice:
        raise ValueError(f"{what} must be distinct, got {twice[0]!r} twice")
