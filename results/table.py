"""The results of a comparison or of an episodic-memory study.

Without pandas, because the kinds of study name these classes, and `epsearch list` must start without it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from results.claims import StoredClaim
from results.ledger.record import RunRecord


@dataclass(frozen=True)
class RowCost:
    """The cost of a member of a row, and of the row's tuning."""

    kept: Mapping[str, int]
    """Kind -> bytes that the method keeps from task to task beside one network: examples, arrays, …"""
    steps: float
    """SGD steps of a member."""
    flop: float
    """Floating-point operations of a member, tests included."""
    tuning: float
    """SGD steps of all members that tuned the row; 0 without a tuning."""


@dataclass(frozen=True, eq=False)
class TableRow:
    """One method with its hyperparameters, and in a memory study with one size of memory.

    Raises ValueError where its records differ in tasks or share a seed, and where `memory` is below 1.
    """

    label: str
    """Name of the row: "ER, reference batch 10"; in a memory study the name of the method, the same for every size."""
    method: str
    """Our name: "er", "a_agem", … of `PRINTED_METHODS` in `results.paper.reference`, or one that is not printed."""
    settings: Mapping[str, Any]
    """The hyperparameters that identify the row, {"lr": 0.03, "λ": 10}; shown in the table."""
    records: tuple[RunRecord, ...]
    """Its members on the evaluation stream, one per seed, including diverged ones; empty where not trained yet."""
    memory: int | None = None
    """Examples per class and task, where the table compares sizes of the memory."""
    remark: str = ""
    """Our own footnote on this row; "" if there is none."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The values that no other row of its table has."""
        return (self.label,) if self.memory is None else (self.label, f"memory {self.memory}")

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < 1:
            raise ValueError(f"memory must be >= 1 example per class and task, got {self.memory}")
        label = ", ".join(self.identity)
        tasks = sorted({r.tasks for r in self.records})
        # A_T over 3 tasks and A_T over 17 are different quantities: their mean would mean nothing.
        if len(tasks) > 1:
            raise ValueError(f"members of row {label!r} must have one number of tasks, got {tasks}")
        _check_unique([r.unit for r in self.records], f"seeds of row {label!r}")


@dataclass(frozen=True, eq=False)
class TableResults:
    """Everything that the page of a table of methods prints. Raises ValueError where two rows share their identity."""

    name: str
    """The study's name."""
    dataset: str
    """As after --dataset."""
    rows: tuple[TableRow, ...]
    """The rows of the table, in their order."""
    config: Mapping[str, Any]
    """All options of the study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, …"""
    notes: tuple[str, ...]
    """Warnings of the caller, shown at the top."""
    comparable: bool
    """Whether the sizes are the paper's, so that its printed rows can be compared with ours."""
    with_printed: bool = False
    """Whether the paper's printed rows are in the table although the sizes are others."""

    latex_metrics: tuple[str, ...] = ()
    """Metrics of the LaTeX table, in its order; empty for all."""
    costs: Callable[[], tuple[RowCost, ...]] = tuple
    """Returns the cost of each row, which takes the data; nothing where these are not here."""
    claim: StoredClaim | None = None
    """The claim that was stored before the evaluation, if any."""

    def __post_init__(self) -> None:
        _check_unique([row.identity for row in self.rows], "labels of rows")

    @property
    def printed_beside(self) -> bool:
        """True if the paper's printed rows, where it has any, are in the table."""
        return self.comparable or self.with_printed

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """The members of all rows; one that several rows share comes several times."""
        return tuple(record for row in self.rows for record in row.records)


def _check_unique(values: Iterable[object], what: str) -> None:
    """Raises ValueError if a value occurs twice."""
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise ValueError(f"{what} must be distinct, got {twice[0]!r} twice")
