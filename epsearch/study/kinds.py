"""What is asked for: frozen descriptions of a search, a comparison of methods, and a study of the memory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.options import PAIRS, TRIED
from results.labels import is_objective, objective_label
from search_spaces.space import Parameter, Point, Space
from trainers.cohort import Learner
from trainers.hyperparameters import Value, is_reference
from trainers.methods import METHODS, PLUGGED, hyperparameters, method
from trainers.methods.rules import SAMPLED

if TYPE_CHECKING:
    from trainers.foreign.process import Limits

# No figure depends on it, but whether a study is finished, or may go on: a ledger keeps what the newest run asked for.
ASKED = ("certify", "moved_starts", "add_metrics", "add_figures", "allow_shared")


# Options of our methods and networks, besides their hyperparameters, and of trainers.
OF_OURS = ("method", "interval", "network", "pretrained", "precision", "numeric_path", "moved_starts")
OF_RACES = ("most_seeds",)
OF_TRAINERS = ("trainer", "against", "time_limit", "memory_limit")


@dataclass(frozen=True, init=False)
class Search(Study):
    """A search for the best point of a space, its evaluation, and that of a baseline: `epsearch run`."""

    kind = "run"
    named = (*Study.named, "lr")
    grows = True
    names_its_kind = False
    searches = True

    method: str
    """Whose hyperparameters are searched."""
    trainer: str | None
    """module:attribute of somebody else's trainer, which then is the method, too; None for a method."""
    against: tuple[tuple[str, Value], ...]
    """(name, value) of what the choice of a trainer is compared with; () for nothing."""
    time_limit: float
    """Seconds that a member of a trainer may take."""
    memory_limit: int | None
    """Bytes that it may take; None for its share of what is free."""
    objective: str
    """What the search maximises, as `results.objectives` has it."""
    strategy: str
    """A name of `search_spaces.strategies.STRATEGIES`."""
    choose: str
    """Either "curve", the top of a curve through all scores, or "tried", the best tried value."""
    search: Space | None
    """What is searched; None for ε over `interval`."""
    set: tuple[tuple[str, Value], ...]
    """(name, value) of hyperparameters that the method alone has, being one of others: all of them."""
    strategy_seed: int
    """Of strategies that draw at random."""
    race: bool
    """Whether points that are significantly worse than the best get no further seeds."""
    most_seeds: int | None
    """Seeds that a race may give to points that cannot be told apart; None for no more than `seeds`."""
    repeats: int
    """Rounds of the search: M of the ε-SOFT-GEM paper."""
    points: int
    """Points a round: N of the paper."""
    eval_seeds: tuple[int, ...] | None
    """Seeds of the evaluation; None for those of the search."""
    interval: tuple[float, float]
    """Where ε is searched, within [0, 1]."""
    score_on: str
    """The stream whose accuracies choose: "cv", the protocol, or "eval", which is biased upwards."""
    certify: int
    """Members of the search that are trained again, alone."""
    moved_starts: int
    """Members of the search that are trained again from a moved start."""
    allow_shared: bool
    """Whether much of what is tested on may be known from training or from the search."""

    @property
    def tried(self) -> int:
        """Values that are tried, at most."""
        return self.points * self.repeats

    @property
    def space(self) -> Space:
        """What is searched. ε = 0 of ε-SOFT-GEM stands apart: it is A-GEM, another formula."""
        # Apart, as a curve over ε must not be fitted through a point of another formula.
        asked = self.search or Space((Parameter(EPSILON, *self.interval),))
        known = (METHODS | PLUGGED).get(self.method)
        apart = (0.0,) if known is not None and known.at_zero else ()
        return Space(tuple(replace(one, apart=apart) if one.name == EPSILON else one for one in asked.parameters))

    @property
    def search_seeds(self) -> tuple[int, ...]:
        """Seeds that a point may have in the search: `seeds`, and in a race those that follow the largest."""
        more, last = (self.most_seeds or 0) - len(self.seeds), max(self.seeds)
        return (*self.seeds, *range(last + 1, last + 1 + more))

    @property
    def final_seeds(self) -> tuple[int, ...]:
        """Seeds of the evaluation."""
        return self.seeds if self.eval_seeds is None else self.eval_seeds

    def identity(self) -> dict[str, Any]:
        """Also the rule of a race: stored races without one had another rule."""
        return super().identity() | ({"race_rule": PAIRS} if self.race else {})

    @classmethod
    def options_of(cls, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Also of development versions, which stored neither the choice of the best tried value nor pooled noise."""
        written = {"choose": TRIED} | super().options_of(identity)
        if written.pop("race_rule", None) != PAIRS and written.get("race"):
            raise UsageError("its race compared values by their pooled noise, which no race does any more")
        return written

    def code(self) -> dict[str, str]:
        """Also its method and its strategy, and networks that are values of a trainer's hyperparameters."""
        own = {self.method: "trainer" if self.trainer else "method", self.strategy: "strategy"}
        own |= {} if is_objective(self.objective) else {self.objective: "objective"}
        return super().code() | own | dict.fromkeys(self._networks(), "network")

    def _networks(self) -> list[str]:
        """Values that are module:attribute of a network."""
        takes = {one.name for one in method(self.method).own if one.network}
        given = [*self.set, *((one.name, value) for one in self.space.parameters for value in one.choices)]
        return [str(value) for name, value in given if name in takes and is_reference(value)]

    @property
    def foreign(self) -> bool:
        """Whether somebody else's trainer trains it."""
        return self.trainer is not None

    @property
    def limits(self) -> "Limits | None":
        """Time and memory, as the options say."""
        if not self.foreign:
            return None
        from trainers.foreign.process import Limits

        return Limits(self.time_limit, self.memory_limit)

    def applies(self, name: str) -> bool:
        """Those of our methods are nothing to a trainer, its own nothing to them, those of a race nothing without."""
        if name in OF_RACES and not self.race:
            return False
        if self.foreign:
            return name not in OF_OURS and name not in vars(self.hyperparameters)
        return name not in OF_TRAINERS

    def value(self, name: str) -> Any:
        """Also of a hyperparameter that the method alone has."""
        own = dict(self.set)
        return own[name] if name in own else super().value(name)

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Seeds that may be trained on D^CV ("cv") or D^EV ("eval"): of "eval", the search's only where that scores."""
        searched = self.search_seeds if self.score_on == "eval" else ()
        return self.search_seeds if phase == "cv" else tuple(dict.fromkeys((*searched, *self.final_seeds)))

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step that is trained: the study's own, or the largest that is searched."""
        if self.foreign:
            return 1
        # It bounds what a task must show: a mini-batch that is larger than its task is none.
        ends = [(one.high, *one.choices) for one in self.space.parameters if one.name == "batch_size"]
        return max([super().largest_batch, *(int(end) for row in ends for end in row if end is not None)])

    def idle(self, name: str) -> str:
        """ε or λ of another method, and ε where it is searched: the baseline is then ε = 0.

        Not what a cohort shares, such as the memory, which scripts give to all methods alike.
        """
        if name not in hyperparameters() or not hyperparameters()[name].per_learner:
            return ""
        if name not in {one.name for one in method(self.method).hyperparameters}:
            return f"{self.method} does not have it"
        return "it is searched, and compared with 0" if name == EPSILON and name in self.space.names else ""

    @property
    def first_task_alone(self) -> bool:
        """Where something is searched that has a part in it."""
        return not {*method(self.method).in_first_task}.isdisjoint(self.space.names)

    @property
    def maximised(self) -> str:
        """The objective, as tables call it."""
        return objective_label(self.objective)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """In the search, and in the evaluation where that has more or fewer."""
        return tuple(dict.fromkeys((len(self.seeds), len(self.final_seeds))))

    @property
    def baseline(self) -> Point | None:
        """What the chosen point is compared with: the study's own values, but ε = 0 (of ε-SOFT-GEM, A-GEM).

        Of a trainer what it is to be compared with, if anything.
        """
        if self.trainer is None:
            return tuple(0.0 if name == EPSILON else self.value(name) for name in self.space.names)
        against = dict(self.against)
        return tuple(value for name in self.space.names if (value := against.get(name)) is not None) or None

    @property
    def compared(self) -> tuple[Point, ...]:
        """The baseline, if there is one."""
        return () if self.baseline is None else (self.baseline,)

    @property
    def example(self) -> Point:
        """A point such as those that are tried."""
        ends = (one.choices[0] if one.choices else one.value(one.axis().low) for one in self.space.parameters)
        return tuple(ends) if self.baseline is None else self.baseline

    def learner(self, point: Point, seed: int) -> Learner:
        """Returns the learner with a point's values of what is searched, and the study's own of all else.

        Raises ValueError where the method has no such hyperparameter, or none of that value.
        """
        ours = () if self.foreign else method(self.method).hyperparameters
        own = {one.name: self.value(one.name) for one in ours}
        searched = dict(zip(self.space.names, point, strict=True))
        return Learner.of(self.method, seed, **own | dict(self.set) | searched)


@dataclass(frozen=True, init=False)
class Table(Study):
    """Methods × sizes of the episodic memory on the evaluation stream, beside a printed table."""

    methods: tuple[str, ...]
    """In the order of the rows."""
    settings: tuple[tuple[str, str, Value], ...]
    """(method, hyperparameter, value) of what a method has a value of its own for."""

    def code(self) -> dict[str, str]:
        """Also its methods."""
        return super().code() | dict.fromkeys(self.methods, "method")


@dataclass(frozen=True, init=False)
class Comparison(Table):
    """Every method, with memories of one size: `epsearch compare`."""

    kind = "compare"
    named = (*Study.named, "epsilon", "fisher_every", "penalty_form", "margin")

    tune: bool
    """Whether learning rates, and λ, are chosen from A-GEM's grids (appendix G) on D^CV first."""
    allow_shared: bool
    """As of a search."""

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Not what each method has a value of its own for, nor what all methods that have it show in several rows."""
        kept = {
            one.name for each in METHODS.values() for one in each.hyperparameters if one.name not in dict(each.variants)
        }
        return tuple(name for name, one in hyperparameters().items() if not one.per_method and name in kept)

    @property
    def searches(self) -> bool:
        """Whether the methods are tuned on D^CV first."""
        return self.tune


@dataclass(frozen=True, init=False)
class MemoryStudy(Table):
    """Methods with an episodic memory, at several sizes of it: `epsearch memory`."""

    kind = "memory"
    named = (*Study.named, "epsilon", "a_agem_scale")

    sizes: tuple[int, ...]
    """Examples per class and task that memories keep, ascending."""

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Those of its methods; not what each has a value of its own for, nor the memory, which is compared."""
        own = {one.name for name in cls.trainable() for one in method(name).hyperparameters if not one.per_method}
        return tuple(name for name in hyperparameters() if name in own - {"memory"})

    @classmethod
    def trainable(cls) -> tuple[str, ...]:
        """Methods that draw from a memory of so many examples per class and task: those of the paper's memory study."""
        return tuple(name for name in super().trainable() if method(name).memory == SAMPLED)


KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy)}
