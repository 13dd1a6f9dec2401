"""The results of a study of protocols: what each protocol has chosen on one stream, and what its choices cost.

Without pandas, as `results/table.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from results.ledger.record import RunRecord

Schedule: TypeAlias = tuple[tuple[int, float], ...]
"""(position of the first task, value), ascending: one pair where the value stays, one more for each change."""


@dataclass(frozen=True)
class Evidence:
    """The tests by which a protocol chooses, and how many of them judge it, too. Compared by hashes."""

    selected: int
    """Different test examples, as the network sees them, whose accuracies chose; 0 where nothing was seen."""
    judged: int
    """Different test examples that judge."""
    shared: int
    """Those that do both."""

    @property
    def peeks(self) -> bool:
        """True if a test that judges has chosen, too."""
        return self.shared > 0

    @property
    def clause(self) -> str:
        """Whether tests that judge also choose, a clause."""
        if self.peeks:
            return f"it peeks: {self.shared:,} of the {self.judged:,} tests that judge it also choose"
        if not self.selected:
            return "it sees no test, so it does not peek"
        return f"it does not peek: none of its {self.selected:,} tests is among the {self.judged:,} that judge it"

    @property
    def text(self) -> str:
        """The clause as a sentence."""
        return f"I{self.clause[1:]}."


@dataclass(frozen=True)
class Cost:
    """The cost of the choices in one order of tasks, all its seeds together; without the training that is judged."""

    steps: float
    """SGD steps of members."""
    flop: float
    """Floating-point operations, tests included."""
    kept: int
    """Bytes that are kept from task to task in order to choose: held-out examples of earlier tasks, or a memory."""


@dataclass(frozen=True, eq=False)
class ProtocolRow:
    """One protocol, its choices, and the members that are judged."""

    name: str
    """As after --protocols: "current-task"."""
    title: str
    """For tables: "current task, validation"."""
    sees: str
    """Which accuracies it may see before it chooses, one sentence."""
    source: str
    """Paper and arXiv number; "" for epsearch's own."""
    per_task: bool
    """True for a protocol with a choice at every task."""
    bound: bool
    """Whether it is a bound that nobody can reach, as it needs what nobody has."""
    evidence: Evidence
    """By how many tests it chose, and how many of them judge it, too."""
    choices: Mapping[int, Schedule]
    """Number of the order -> its choice there; empty while nothing is chosen."""
    records: tuple[RunRecord, ...]
    """Members with the choice on the evaluation stream, one per unit; empty while none is trained."""
    cost: Mapping[int, Cost]
    """Number of the order -> what its choice there took."""
    remark: str = ""
    """Why its choice misleads, or why it has none; "" without a remark."""


@dataclass(frozen=True, eq=False)
class ProtocolResults:
    """Everything that the page of a study of protocols prints."""

    name: str
    """The study's name."""
    dataset: str
    """As after --dataset."""
    method: str
    """Our name: "soft_agem"."""
    parameter: str
    """The hyperparameter that is chosen: "epsilon"."""
    log: bool
    """Whether its axis is logarithmic."""
    candidates: tuple[float, ...]
    """The values among which is chosen, ascending."""
    constants: Mapping[float, tuple[RunRecord, ...]]
    """Candidate -> its members on the evaluation stream, one per unit, with the value unchanged throughout."""
    rows: tuple[ProtocolRow, ...]
    """Protocols in the order of --protocols."""
    config: Mapping[str, Any]
    """All options of the study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, …"""
    notes: tuple[str, ...]
    """Warnings of the caller, shown at the top."""

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """The members that are judged, each once."""
        groups: Sequence[tuple[RunRecord, ...]] = (*self.constants.values(), *(row.records for row in self.rows))
        return tuple({record.key: record for group in groups for record in group}.values())
