"""The results of one search, for its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from results.claims import StoredClaim
from results.ledger.record import Certificate, RunRecord
from results.points import EPSILON, Point, Value, group, is_agem, is_number
from results.protocols import Evidence

__all__ = ["Choice", "EvaluatedChoice", "Point", "Race", "SearchResults", "SearchRound", "SearchStage", "Value"]


@dataclass(frozen=True)
class SearchRound:
    """Points that were suggested together: a repeat of a narrowing, or a batch of another strategy."""

    number: int
    """Counts the rounds from 1."""
    points: tuple[Point, ...]
    """The points, in the order of their suggestions."""
    scores: tuple[float | None, ...]
    """Mean A_T over the seeds, fraction in [0, 1]; None for a point without a score (a member diverged)."""
    span: tuple[float, float] | None
    """Ends of the interval that was searched; None where the strategy has none."""
    winners: tuple[int, int] | None
    """Positions in `points` of the best two, in any order; None where the strategy has none or fewer succeeded."""
    note: str
    """Why the search departed from its plain rule or stopped; empty otherwise."""
    named: bool = False
    """Whether its one point is the one that the curve names, which had not been tried."""
    predicted: tuple[float | None, ...] = ()
    """A_T predicted for as many tasks as the evaluation has, by which the search went on; () where scores did."""

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.points):
            raise ValueError(f"scores must match points: {len(self.points)} of these, got {len(self.scores)} scores")
        if len(self.predicted) not in (0, len(self.points)):
            raise ValueError(f"predicted must match points: {len(self.points)} of these, got {len(self.predicted)}")
        if self.winners is not None and not all(0 <= i < len(self.points) for i in self.winners):
            raise ValueError(f"winners must be positions in [0, {len(self.points)}), got {self.winners}")


class Choice(NamedTuple):
    """The best point by a curve through all scores, and the best tried point."""

    point: Point | None
    """The highest one that could be tried and is not significantly worse than another; None without a curve."""
    tried: Point | None
    """The tried point with the highest mean; None without a score."""
    why: str
    """Why there is no curve; "" with one."""
    summit: Point | None = None
    """The top of the curve, if it lies among tried values that paired tests put below the best one; else None."""

    def as_json(self, parameters: Sequence[str]) -> dict[str, Any]:
        """Returns it as every `--json` has it."""
        named, tried, summit = (
            None if point is None else dict(zip(parameters, point, strict=True))
            for point in (self.point, self.tried, self.summit)
        )
        return {"curve": named, "tried": tried, "why": self.why, "summit": summit}


class SearchStage(NamedTuple):
    """A stage of a search along tasks: its choice by A_T that is predicted for as many tasks as the evaluation has."""

    tasks: int
    """Tasks that the members of the stage have trained."""
    points: tuple[Point, ...]
    """Points with members in the stage: those of the one before that might have been the best."""
    choice: Point
    """The point that is predicted best."""
    predicted: tuple[float, float, float]
    """Its A_T and the ends of the 95 % interval; fractions."""
    rivals: tuple[Point, ...]
    """Points that may be better by more than a point: the search cannot tell."""

    @property
    def resolved(self) -> bool:
        """Whether no other point may be better by more than a point."""
        return not self.rivals


class Race(NamedTuple):
    """The savings and the error rate of a race, which drops points that fall behind."""

    trained: int
    """Members of the search."""
    plain: int
    """Members that the same search would have trained with every seed of every point."""
    level: float
    """Largest probability of dropping the best point of a round, in (0, 1)."""
    dropped: tuple[Point, ...] = ()
    """Points that got fewer seeds because their first ones were low, so that their means are biased downwards."""


class EvaluatedChoice(NamedTuple):
    """A choice that was evaluated on the evaluation stream."""

    point: str
    """The point in words."""
    when: str
    """Time of the evaluation, ISO-8601."""
    mine: bool
    """Whether it is this study's choice."""
    elsewhere: bool = False
    """Whether it is not in this ledger, but in the file of this user's looks."""

    def as_json(self) -> dict[str, str | bool]:
        """Returns it as every `--json` has it."""
        values = self._asdict()
        return {"setting": values.pop("point"), **values}


@dataclass(frozen=True, eq=False)
class SearchResults:
    """Everything that the report prints. Raises ValueError where a point has another number of values than parameters.

    Compared by identity, so that what is computed from it can be cached.
    """

    name: str
    """The study's name."""
    dataset: str
    """As after --dataset."""
    method: str
    """Our name: "soft_agem", "ewc", …"""
    score_on: str
    """The stream whose scores made the choice: "cv" or "eval"."""
    chosen: Point
    """The point that the search chose."""
    chosen_score: float
    """Its mean A_T over the seeds, fraction in [0, 1]."""
    baseline: Point | None
    """The point that the choice is compared with: ε = 0 in a search of ε (in ε-SOFT-GEM that is A-GEM), else the
    published values; None where there are none."""
    domain: tuple[tuple[float, float] | None, ...]
    """The searched interval of each parameter; None for choices."""
    rounds: tuple[SearchRound, ...]
    """The finished rounds; those of an extended study's earlier searches come first."""
    search: tuple[RunRecord, ...]
    """The members of the search, each once."""
    evaluation: tuple[RunRecord, ...]
    """Members of the evaluation at the chosen point and at the baseline; empty where it has not run."""
    seeds: tuple[int, ...]
    """Seeds of the search."""
    eval_seeds: tuple[int, ...]
    """Seeds of the evaluation."""
    config: Mapping[str, Any]
    """All options of the study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, member-steps, …"""
    notes: tuple[str, ...]
    """Warnings of the caller, shown at the top."""
    references: Mapping[str, tuple[RunRecord, ...]] = field(default_factory=dict)
    """Method of a reference row -> its members, on the stream that scored, with the seeds of the search."""
    parameters: tuple[str, ...] = (EPSILON,)
    """Names of the searched hyperparameters."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Name of a hyperparameter -> the smallest and the largest number that a search of it may try."""
    log: tuple[str, ...] = ()
    """Names of those whose axis is logarithmic."""
    objective: str = "A_T"
    """What the search maximised: a name of `METRICS` while the study is shown."""
    orders: int = 1
    """Orders of tasks with which each seed is trained."""
    strategy: str = "narrowing"
    """The name of the strategy, as after --strategy."""
    printed_epsilon: float | None = None
    """The ε that the paper reports for the dataset; None where it reports none."""
    certificates: tuple[Certificate, ...] = ()
    """Members that were trained a second time, alone."""
    perturbed: tuple[float, ...] = ()
    """By how much what is maximised moved, of members trained once more from a start moved by 1e-7; fractions."""
    tolerance: float = 0.0
    """Largest allowed difference of an accuracy between a member alone and in a cohort, fraction; with 0 the parameters
    may not differ either."""
    trainer_repeats: bool | None = None
    """True if a plug-in trainer declares that the same seed gives the same result; None for a built-in method."""
    choice: Choice | None = None
    """None where the best tried point is chosen, whatever a curve says."""
    race: Race | None = None
    """None for a search without a race."""
    evaluated_choices: tuple[EvaluatedChoice, ...] = ()
    """Every choice that was evaluated so far on data of this evaluation stream, oldest first."""
    disjointness: str = ""
    """A sentence of proof that search and evaluation share no task; "" where there is none."""
    earlier: tuple[str, ...] = ()
    """The study before it was extended, one line for each earlier state."""
    comparable: bool = True
    """Whether the sizes are the paper's, so that its printed rows can be compared with the evaluation."""
    with_printed: bool = False
    """Whether the paper's printed rows are in the evaluation's table although the sizes are others."""
    stages: tuple[SearchStage, ...] = ()
    """Of a search whose choice is predicted; empty for others, and before its first stage is over."""
    grown: tuple[RunRecord, ...] = ()
    """The members that it went on with, one for each number of further tasks."""
    task_limit: int = 0
    """The most tasks to which it may go on, or be extended; 0 where its choice is not predicted."""
    sees: str = ""
    """Which accuracies the choice may see, one sentence; "" where nobody says so."""
    evidence: Evidence | None = None
    """How many tests that judge have chosen, too; None before the end, and for tasks of their own."""
    claim: StoredClaim | None = None
    """The claim that was stored before the evaluation, if any."""
    leading: bool = False
    """True until a round is finished: `chosen` is then the value that leads."""

    def __post_init__(self) -> None:
        # Only how many: which values a point may have is the strategy's concern.
        sizes = {"chosen": self.chosen, "domain": self.domain, "baseline": self.baseline}
        for name, values in sizes.items():
            if values is not None and len(values) != len(self.parameters):
                raise ValueError(f"{name} must have {len(self.parameters)} values, got {len(values)}")

    @property
    def seen(self) -> str:
        """What the choice may see, and whether it peeks, in words; "" where nobody says so."""
        return " ".join(filter(None, (self.sees, self.evidence.text if self.evidence else "")))

    @property
    def printed_beside(self) -> bool:
        """True if the paper's printed rows, where it has any, are in the evaluation's table."""
        return self.comparable or self.with_printed

    @property
    def searching(self) -> tuple[SearchRound, ...]:
        """The rounds of the search itself: not that of the point which the curve names."""
        return tuple(search_round for search_round in self.rounds if not search_round.named)

    @property
    def role(self) -> str:
        """Name of the chosen value in figures: "chosen" or "leading"."""
        return "leading" if self.leading else "chosen"

    @property
    def by_curve(self) -> bool:
        """True if the chosen point is the one that the curve names."""
        return not self.stages and self.choice is not None and self.choice.point == self.chosen

    @property
    def at_summit(self) -> bool:
        """True if the curve is highest at the chosen point; else a paired test excludes its top."""
        return self.by_curve and self.choice is not None and self.choice.summit is None

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every point with a member in the search: ascending in a search of one number, else as first tried."""
        tried = dict.fromkeys(point for r in self.rounds for point in r.points)
        # Points without a member yet have nothing that could be shown.
        trained = [point for point in tried if self.members_of(point)]
        return tuple(sorted(trained) if self.is_curve else trained)

    @property
    def is_curve(self) -> bool:
        """True if one numeric parameter was searched, so that A_T is a curve over it."""
        return len(self.parameters) == 1 and all(is_number(s[0]) for r in self.rounds for s in r.points)

    @property
    def of_epsilon(self) -> bool:
        """True if ε alone was searched."""
        return self.parameters == (EPSILON,)

    def at_limits(self, parameter: str) -> tuple[bool, bool]:
        """Returns whether each end of a parameter's interval is one that no search can cross."""
        ends, limits = self.domain[self.parameters.index(parameter)], self.limits.get(parameter)
        return (False, False) if ends is None or limits is None else (ends[0] == limits[0], ends[1] == limits[1])

    @property
    def zero_is_agem(self) -> bool:
        """True if ε alone was searched, and ε = 0 is A-GEM, another formula than that of ε > 0."""
        return self.of_epsilon and is_agem(self.method, self.parameters, (0.0,))

    @property
    def has_spans(self) -> bool:
        """True if the search went along intervals."""
        return any(r.span is not None for r in self.rounds)

    @property
    def deciding(self) -> tuple[RunRecord, ...]:
        """The members that made the choice: of a search along tasks those of its last stage, with all their tasks."""
        tasks = self.stages[-1].tasks if self.stages else 0
        return tuple(record for record in self.grown if record.tasks == tasks) or self.search

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Every member, each once: with --score-on eval those of the evaluation are members of the search, too."""
        every = (*self.search, *self.grown, *self.evaluation, *self.beside)
        return tuple({record.key: record for record in every}.values())

    @property
    def beside(self) -> tuple[RunRecord, ...]:
        """The members of all reference rows."""
        return tuple(record for members in self.references.values() for record in members)

    @property
    def evaluated(self) -> tuple[Point, ...]:
        """The chosen point and the baseline, the chosen first; only one where they are the same."""
        return tuple(dict.fromkeys(s for s in (self.chosen, self.baseline) if s is not None))

    def members_of(self, point: Point) -> tuple[RunRecord, ...]:
        """Returns the point's members in the search."""
        # The baseline, say, may have members without having been suggested in any round.
        return self._search_members.get(point) or self.select(self.search, point)

    def evaluation_of(self, point: Point) -> tuple[RunRecord, ...]:
        """Returns the point's members in the evaluation."""
        return self.select(self.evaluation, point)

    def select(self, records: Sequence[RunRecord], point: Point) -> tuple[RunRecord, ...]:
        """Returns those of the records that belong to the point."""
        return group(records, self.parameters, (point,))[point]

    @cached_property  # grouped once for all points: the report asks for the members of each many times
    def _search_members(self) -> dict[Point, tuple[RunRecord, ...]]:
        return group(self.search, self.parameters, dict.fromkeys(s for r in self.rounds for s in r.points))
