"""What the report is told of one finished search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from results.ledger.certificate import Certificate
from results.ledger.record import RunRecord
from results.points import EPSILON, Setting, Value, group, is_agem, is_number

__all__ = ["Look", "Race", "SearchResults", "SearchRound", "Setting", "Value"]


@dataclass(frozen=True)
class SearchRound:
    """Settings that were suggested together: a repeat of a narrowing, or a batch of another strategy."""

    number: int
    """1-based."""
    settings: tuple[Setting, ...]
    scores: tuple[float | None, ...]
    """Mean A_T over the seeds, fraction in [0, 1]; None where a setting has no score (a member diverged)."""
    span: tuple[float, float] | None
    """Ends of the interval that was searched; None where the strategy has none."""
    winners: tuple[int, int] | None
    """Positions in `settings` of the two best, in any order; None where there were no two, or the strategy knows none.
    """
    note: str

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.settings):
            raise ValueError(
                f"scores must match settings: {len(self.settings)} of these, got {len(self.scores)} scores"
            )
        if self.winners is not None and not all(0 <= i < len(self.settings) for i in self.winners):
            raise ValueError(f"winners must be positions in [0, {len(self.settings)}), got {self.winners}")


class Race(NamedTuple):
    """What dropping settings that fell behind saved, and the error it was allowed."""

    trained: int
    """Members of the search."""
    plain: int
    """Members that the same search would have trained with every seed of every setting."""
    level: float
    """Probability allowed of dropping the best setting, in (0, 1)."""


class Look(NamedTuple):
    """One choice that was evaluated on the evaluation stream."""

    setting: str
    """In words."""
    when: str
    """ISO-8601 time."""
    mine: bool
    """Whether it is this study's choice."""


@dataclass(frozen=True, eq=False)
class SearchResults:
    """Everything the report prints; filled by the caller, interpreted here."""

    name: str
    dataset: str
    method: str
    score_on: str
    """The stream that chose: "cv" or "eval"."""
    chosen: Setting
    chosen_score: float
    """Mean A_T over the seeds, fraction in [0, 1]."""
    baseline: Setting | None
    """What the chosen setting is compared with: ε = 0 for a search of ε (of ε-SOFT-GEM that is A-GEM), else the
    published setting; None where there is none.
    """
    domain: tuple[tuple[float, float] | None, ...]
    """The searched interval of each parameter; None for choices."""
    rounds: tuple[SearchRound, ...]
    search: tuple[RunRecord, ...]
    """The members of the search, each once."""
    evaluation: tuple[RunRecord, ...]
    """Members of the evaluation at the chosen setting and at the baseline; empty where it has not run."""
    seeds: tuple[int, ...]
    """Of the search."""
    eval_seeds: tuple[int, ...]
    config: Mapping[str, Any]
    """The effective study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, member-steps, …"""
    notes: tuple[str, ...]
    parameters: tuple[str, ...] = (EPSILON,)
    """Names of the searched hyperparameters."""
    log: tuple[str, ...] = ()
    """Those whose axis is logarithmic."""
    strategy: str = "narrowing"
    printed_epsilon: float | None = None
    """The ε that the paper reports for the dataset."""
    certificates: tuple[Certificate, ...] = ()
    """Members that were trained again alone."""
    tolerance: float = 0.0
    """Allowed difference of an accuracy between alone and among others, fraction; 0 allows none of a parameter
    either.
    """
    race: Race | None = None
    looks: tuple[Look, ...] = ()
    """Every choice evaluated on this evaluation stream so far, oldest first."""
    seal: str = ""
    """A sentence of proof that search and evaluation share no task; "" where there is none."""
    grown: tuple[str, ...] = ()
    """What the study was before it was extended, a line each."""

    def __post_init__(self) -> None:
        sizes = {"chosen": self.chosen, "domain": self.domain, "baseline": self.baseline}
        for name, values in sizes.items():
            if values is not None and len(values) != len(self.parameters):
                raise ValueError(f"{name} must have {len(self.parameters)} values, got {len(values)}")

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Every setting with a member in the search: ascending where one number is searched, else as first tried."""
        tried = dict.fromkeys(setting for r in self.rounds for setting in r.settings)
        found = [setting for setting in tried if self.members_of(setting)]
        return tuple(sorted(found) if self.is_curve else found)

    @property
    def is_curve(self) -> bool:
        """Whether one numeric parameter was searched, so that A_T is a curve over it."""
        return len(self.parameters) == 1 and all(is_number(s[0]) for r in self.rounds for s in r.settings)

    @property
    def of_epsilon(self) -> bool:
        """Whether ε alone was searched."""
        return self.parameters == (EPSILON,)

    @property
    def zero_is_agem(self) -> bool:
        """Whether ε alone was searched, and ε = 0 is A-GEM, another formula than that of ε > 0."""
        return self.of_epsilon and is_agem(self.method, self.parameters, (0.0,))

    @property
    def has_spans(self) -> bool:
        """Whether the search went along intervals."""
        return any(r.span is not None for r in self.rounds)

    @property
    def evaluated(self) -> tuple[Setting, ...]:
        """The chosen setting and the baseline, the chosen first; only one where they are the same."""
        return tuple(dict.fromkeys(s for s in (self.chosen, self.baseline) if s is not None))

    def members_of(self, setting: Setting) -> tuple[RunRecord, ...]:
        """The setting's members in the search."""
        return self._searched.get(setting) or self.select(self.search, setting)

    def evaluation_of(self, setting: Setting) -> tuple[RunRecord, ...]:
        """The setting's members in the evaluation."""
        return self.select(self.evaluation, setting)

    def select(self, records: Sequence[RunRecord], setting: Setting) -> tuple[RunRecord, ...]:
        """Those of the records that have the setting."""
        return group(records, self.parameters, (setting,))[setting]

    @cached_property
    def _searched(self) -> dict[Setting, tuple[RunRecord, ...]]:
        return group(self.search, self.parameters, dict.fromkeys(s for r in self.rounds for s in r.settings))
