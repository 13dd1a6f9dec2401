"""What the report is told of one finished search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from results.certificate import Certificate
from results.record import RunRecord


@dataclass(frozen=True)
class SearchRound:
    """One repeat of the narrowing: the interval, its grid, what each point scored, and the two winners."""

    number: int
    """1-based."""
    low: float
    high: float
    epsilons: tuple[float, ...]
    scores: tuple[float | None, ...]
    """Mean A_T over the seeds, fraction in [0, 1]; None where a point has no score (a member diverged)."""
    winners: tuple[int, int] | None
    """Positions in `epsilons` of the two best, in any order; None where there were no two."""
    note: str

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.epsilons):
            raise ValueError(f"scores must match epsilons: {len(self.epsilons)} values, got {len(self.scores)} scores")
        if self.winners is not None and not all(0 <= i < len(self.epsilons) for i in self.winners):
            raise ValueError(f"winners must be positions in [0, {len(self.epsilons)}), got {self.winners}")


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Everything the report prints; filled by the caller, interpreted here."""

    name: str
    dataset: str
    method: str
    score_on: str
    """The stream that chose ε: "cv" or "eval"."""
    chosen_epsilon: float
    chosen_score: float
    """Mean A_T over the seeds, fraction in [0, 1]."""
    rounds: tuple[SearchRound, ...]
    search: tuple[RunRecord, ...]
    """The members of the search, each once."""
    evaluation: tuple[RunRecord, ...]
    """Members of the evaluation at the chosen ε and at ε = 0; empty where it has not run."""
    config: Mapping[str, Any]
    """The effective study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, member-steps, …"""
    notes: tuple[str, ...]
    certificates: tuple[Certificate, ...] = ()
    """Members that were trained again alone."""
    tolerance: float = 0.0
    """Allowed difference of an accuracy between alone and among others, fraction; 0 allows none of a parameter
    either.
    """

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Every ε with a member in the search, ascending."""
        return tuple(sorted({r.epsilon for r in self.search}))

    @property
    def evaluated_epsilons(self) -> tuple[float, ...]:
        """The chosen ε and ε = 0, the chosen first; only one value where they are the same."""
        return (self.chosen_epsilon,) if self.chosen_epsilon == 0 else (self.chosen_epsilon, 0.0)
