"""What is asked for: frozen descriptions of a search, a comparison of methods, and a study of the memory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import UsageError
from epsearch.study import limits, values
from epsearch.study.description import CURVE, PAIRS, Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.option import (
    BASIC,
    DATASETS,
    LEARNING,
    METHOD,
    RACE,
    REQUEST,
    RUN,
    RUNS,
    SEARCHED,
    SEEDS,
    STREAM,
    TRAINER,
    Option,
    option,
)
from results.labels import A_T, is_objective, objective_label
from search_spaces.space import Parameter, Point, Space
from search_spaces.strategies import STRATEGIES
from trainers.cohort import Learner
from trainers.hyperparameters import Value, is_reference
from trainers.methods import METHODS, PLUGGED, hyperparameters, method
from trainers.methods.rules import SAMPLED

if TYPE_CHECKING:
    from trainers.foreign.process import Limits

TRIED = "tried"


def _allow_shared() -> Any:
    return option(
        values.FLAG,
        "Search although more than 1 % of the test images are in training, too, or of the evaluation in the search.",
        STREAM,
        False,
        scope=REQUEST,
        after="skip_corrupt",
    )


@dataclass(frozen=True, init=False, kw_only=True)
class Search(Study):
    """A search for the best point of a space, its evaluation, and that of a baseline: `epsearch run`."""

    kind = "run"
    named = (*Study.named, "lr")
    grows = True
    names_its_kind = False
    searches = True

    # fmt: off
    method: str = option(
        values.METHOD_NAME, f"Method whose hyperparameter is searched: {', '.join(METHODS)}; or module:attribute.",
        LEARNING, "soft_agem", level=BASIC, part=METHOD, after="dataset",
    )
    trainer: str | None = option(
        values.TRAINER_NAME,
        "Your own training code in place of a method, module:attribute of a function (values, stream, seed, report).",
        SEARCHED, later=True, part=TRAINER,
    )
    """It is the method, too; None for a method of ours."""
    objective: str = option(
        values.OBJECTIVE,
        "What the search maximises: A_T, A_T-0.5F_T with any factor, worst-task, anytime; or module:attribute.",
        SEARCHED, A_T, later=True,
    )
    strategy: str = option(
        values.STRATEGY,
        f"How the search chooses the values of the next round: {', '.join(STRATEGIES)}; or module:attribute.", SEARCHED,
        "narrowing", level=BASIC, later=True, grows=True,
    )
    choose: str = option(
        values.words(CURVE, TRIED),
        "What is chosen: the top of a curve through all scores, trained like any value, or the best tried value.",
        SEARCHED, CURVE, grows=True,
    )
    search: Space | None = option(
        values.SPACE, "What is searched, like epsilon=0..1 or lr=log:0.003..0.3 memory=10,25,50.", SEARCHED,
        usual="ε over --interval", level=BASIC, later=True, grows=True,
    )
    set: tuple[tuple[str, Value], ...] = option(
        values.METHOD_VALUES, "Hyperparameters of a plug-in method, e.g. pull=0.5 when=odd.", SEARCHED, (),
        usual="the method's", later=True,
    )
    """(name, value) of all of them."""
    against: tuple[tuple[str, Value], ...] = option(
        values.METHOD_VALUES, "Values that the choice of a trainer is compared with, like lr=0.1.", SEARCHED, (),
        usual="those it declares, if any", later=True, part=TRAINER,
    )
    """(name, value); () for nothing."""
    strategy_seed: int = option(
        values.whole(0, limits.STRATEGY_SEED), "Seed of strategies that draw at random.", SEARCHED, 0, later=True,
        grows=True,
    )
    race: bool = option(
        values.FLAG,
        "Train every value with two seeds, and with more only if it is not significantly worse than the best.",
        SEARCHED, False, later=True, grows=True,
    )
    most_seeds: int | None = option(
        values.whole(3, limits.SEEDS), "In a race, seeds that a value may get while several cannot be told apart.",
        SEEDS, usual="those of --seeds", later=True, part=RACE, grows=True,
    )
    repeats: int = option(
        values.whole(1, limits.ROUNDS), "Rounds of the search.", SEARCHED, usual=DATASETS, level=BASIC, grows=True,
    )
    """M of the ε-SOFT-GEM paper."""
    points: int = option(
        values.whole(1, limits.VALUES), "Values tried in each round.", SEARCHED, usual=DATASETS, level=BASIC,
        grows=True,
    )
    """N of the paper."""
    eval_seeds: tuple[int, ...] | None = option(
        values.SEED_NUMBERS, "Seeds of the evaluation, as --seeds.", SEEDS, usual="those of the search", later=True,
        grows=True, after="seeds",
    )
    allow_shared: bool = _allow_shared()
    interval: tuple[float, float] = option(
        values.INTERVAL, "Interval in which ε is searched, LOW HIGH.", SEARCHED, usual="0 1", part=METHOD, grows=True,
        after="hyperparameters",
    )
    score_on: str = option(
        values.words("cv", "eval"),
        "Stream that scores ε: cv is the protocol; eval reproduces the printed figures, but is biased upwards.",
        SEARCHED, "cv",
    )
    certify: int = option(
        values.whole(0, limits.MEMBERS),
        "Members of the search that are trained again, alone, to check that cohorts change nothing.", SEEDS, 2,
        scope=REQUEST, after="numeric_path",
    )
    moved_starts: int = option(
        values.whole(0, limits.MEMBERS),
        "Members of the search that are trained again from a start moved by 1e-7, to measure rounding noise.", SEEDS, 0,
        usual="2 with a residual network, else 0", scope=REQUEST, part=METHOD,
    )
    time_limit: float = option(
        values.DURATION, "Time that a member of a trainer may take.", RUNS, 43_200.0, scope=RUN, part=TRAINER,
        after="time_budget",
    )
    """Seconds."""
    memory_limit: int | None = option(
        values.SIZE, "Memory that a member of a trainer may take, like 4GiB.", RUNS, usual="its share of what is free",
        scope=RUN, part=TRAINER,
    )
    """Bytes."""
    # fmt: on

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

    def applies(self, option: Option) -> bool:
        """Whether the search has the part to which the option belongs: a race, a trainer, or a method of ours."""
        return {RACE: self.race, TRAINER: self.foreign, METHOD: not self.foreign}.get(option.part, True)

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


@dataclass(frozen=True, init=False, kw_only=True)
class Table(Study):
    """Methods × sizes of the episodic memory on the evaluation stream, beside a printed table."""

    # fmt: off
    methods: tuple[str, ...] = option(
        values.METHOD_NAMES, "Methods with commas between, or all.", LEARNING,
        usual="all that have published settings on the dataset", level=BASIC, after="dataset",
    )
    """In the order of the rows."""
    settings: tuple[tuple[str, str, Value], ...] = option(
        values.SETTINGS, "Learning rates and λ of methods, like ewc.lr=0.01,ewc.strength=100.", LEARNING, (),
        usual=DATASETS, after="hyperparameters",
    )
    """(method, hyperparameter, value)."""
    # fmt: on

    def code(self) -> dict[str, str]:
        """Also its methods."""
        return super().code() | dict.fromkeys(self.methods, "method")


@dataclass(frozen=True, init=False, kw_only=True)
class Comparison(Table):
    """Every method, with memories of one size: `epsearch compare`."""

    kind = "compare"
    named = (*Study.named, "epsilon", "fisher_every", "penalty_form", "margin")

    # fmt: off
    tune: bool = option(
        values.FLAG,
        "First choose each method's learning rate, and λ, from A-GEM's grids on the cross-validation tasks.", LEARNING,
        False, after="settings",
    )
    """The grids are those of appendix G."""
    # fmt: on
    allow_shared: bool = _allow_shared()

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


@dataclass(frozen=True, init=False, kw_only=True)
class MemoryStudy(Table):
    """Methods with an episodic memory, at several sizes of it: `epsearch memory`."""

    kind = "memory"
    named = (*Study.named, "epsilon", "a_agem_scale")

    # fmt: off
    sizes: tuple[int, ...] = option(
        values.SIZES, "Memory sizes to compare, examples per class and task.", LEARNING,
        usual="the dataset's, like 25,50,100", level=BASIC, after="methods",
    )
    """Ascending."""
    # fmt: on

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

REQUESTS = tuple({name: one for kind in KINDS.values() for name, one in kind.options().items() if one.scope == REQUEST})
"""Options of which a ledger keeps those of the newest run."""
GROWS = tuple(name for name, one in Search.options().items() if one.grows)
"""Options that may change when a stored search is extended."""
