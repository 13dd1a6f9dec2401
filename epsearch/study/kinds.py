"""Kinds of study: a search, a comparison of methods, a study of the memory."""

from collections.abc import Iterable, Mapping
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
    SHORT,
    STREAM,
    TRAINER,
    Option,
    option,
)
from results.labels import A_T, is_objective, objective_label
from results.ledger.record import Unit
from search_spaces.grid import grid
from search_spaces.space import Parameter, Point, Space
from search_spaces.strategies import STRATEGIES
from trainers.cohort import Learner
from trainers.hyperparameters import Hyperparameter, Value, is_reference
from trainers.methods import METHODS, PLUGGED, hyperparameters, method
from trainers.methods.rules import SAMPLED

if TYPE_CHECKING:
    from epsearch.protocols.protocol import View
    from trainers.foreign.process import Limits

TRIED = "tried"
PROTOCOLS = (
    *("cv-tasks", "extrapolated", "first-k", "end-of-training"),
    *("current-task", "seen-tasks", "hindsight"),
)
"""Usual protocols of a study of protocols: those that can choose of every method."""
CV_TASKS, EXTRAPOLATED = "cv-tasks", "extrapolated"
"""Protocols: the choice is highest on the tasks of the search, or predicted to be so on as many as the evaluation has.
"""


def at_the_end(validation: float) -> str:
    """Returns the protocol that is --score-on eval; validation: share of the examples that is held out."""
    return "end-of-training" if validation else "end-of-training-on-test"


BASELINE = "baseline"
"""Name in claims of a search's baseline that is no other method."""


def _claim() -> Any:
    return option(
        values.CLAIM,
        'A claim about A_T on the evaluation, like "soft_agem > agem + 1", in percentage points: stored before it, '
        "answered in the report.",
        SEEDS,
        usual="none",
        later=True,
    )


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
class OneMethod(Study):
    """Base of studies in which values of one method's hyperparameters are chosen."""

    # fmt: off
    method: str = option(
        values.METHOD_NAME, f"Method whose hyperparameter is searched: {', '.join(METHODS)}; or module:attribute.",
        LEARNING, "soft_agem", level=BASIC, part=METHOD, after="dataset",
    )
    search: Space | None = option(
        values.SPACE, "What is searched, like epsilon=0..1 or lr=log:0.003..0.3 memory=10,25,50.", SEARCHED,
        usual="ε over --interval", level=BASIC, later=True, extendable=True,
    )
    set: tuple[tuple[str, Value], ...] = option(
        values.METHOD_VALUES, "Hyperparameters of a plug-in method, e.g. pull=0.5 when=odd.", SEARCHED, (),
        usual="the method's", later=True,
    )
    """(name, value) of all of them."""
    interval: tuple[float, float] = option(
        values.INTERVAL, "Interval in which ε is searched, LOW HIGH.", SEARCHED, usual="0 1", part=METHOD,
        extendable=True, after="hyperparameters",
    )
    # fmt: on

    @property
    def space(self) -> Space:
        """The search space. ε = 0 of ε-SOFT-GEM stands apart: it is A-GEM, another formula."""
        # No curve over ε must be fitted through a point of another formula.
        space = self.search or Space((Parameter(EPSILON, *self.interval),))
        declared = (METHODS | PLUGGED).get(self.method)
        apart = (0.0,) if declared is not None and declared.at_zero else ()
        return Space(tuple(replace(each, apart=apart) if each.name == EPSILON else each for each in space.parameters))

    def value(self, name: str) -> Any:
        """Returns the value of an option, or of a plug-in method's own hyperparameter."""
        own = dict(self.set)
        return own[name] if name in own else super().value(name)

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step, searched batch sizes included."""
        if self.foreign:
            return 1
        ends = [(each.high, *each.choices) for each in self.space.parameters if each.name == "batch_size"]
        return max([super().largest_batch, *(int(end) for row in ends for end in row if end is not None)])

    def idle(self, name: str) -> str:
        """Returns why an option has no effect: ε or λ of another method, or ε while it is searched.

        Options that a cohort shares, such as the memory, are accepted, as scripts set them for all methods.
        """
        if name not in hyperparameters() or not hyperparameters()[name].per_learner:
            return ""
        if name not in {each.name for each in method(self.method).hyperparameters}:
            return f"{self.method} does not have it"
        return "it is searched, and compared with 0" if name == EPSILON and name in self.space.names else ""

    @property
    def first_task_alone(self) -> bool:
        """True if a searched hyperparameter affects the first task."""
        return not {*method(self.method).in_first_task}.isdisjoint(self.space.names)

    def learner(self, point: Point, seed: int) -> Learner:
        """Returns the learner of a point, with the study's values of other hyperparameters.

        Raises ValueError for unknown hyperparameters and invalid values.
        """
        own = self._values_of(self.method)
        searched = dict(zip(self.space.names, point, strict=True))
        return Learner.of(self.method, seed, **own | dict(self.set) | searched)

    def _values_of(self, name: str) -> dict[str, Any]:
        """Returns the study's values of a method's hyperparameters; none of a trainer's."""
        declared = () if self.foreign else method(name).hyperparameters
        return {each.name: self.value(each.name) for each in declared}


@dataclass(frozen=True, init=False, kw_only=True)
class Search(OneMethod):
    """A search for the best point of a space, and its evaluation: `epsearch run`."""

    kind = "run"
    named = (*Study.named, "lr")
    extendable = True
    names_its_kind = False
    searches = True

    # fmt: off
    trainer: str | None = option(
        values.TRAINER_NAME,
        "Your own training code in place of a method, module:attribute of a function (values, stream, seed, report).",
        SEARCHED, later=True, part=TRAINER,
    )
    """It is also the method; None for other methods."""
    objective: str = option(
        values.OBJECTIVE,
        "What the search maximises: A_T, A_T-0.5F_T with any factor, worst-task, anytime; WC-ACC, min-ACC, with tests "
        "inside tasks; or module:attribute.",
        SEARCHED, A_T, later=True,
    )
    strategy: str = option(
        values.STRATEGY,
        f"How the search chooses the values of the next round: {', '.join(STRATEGIES)}; or module:attribute.", SEARCHED,
        "narrowing", level=BASIC, later=True, extendable=True,
    )
    protocol: str = option(
        values.PROTOCOL_NAME,
        "What chooses: scores on tasks of their own (cv-tasks; extrapolated predicts A_T for as many as the evaluation "
        "has), or on the evaluation (first-3, 25-percent, end-of-training); every other protocol of `epsearch "
        "protocols` is a study of its own kind.",
        SEARCHED, CV_TASKS, later=True,
    )
    on: str | None = option(
        values.words("validation", "test", "memory"),
        "Examples by which end-of-training and seen-tasks choose; end-of-training on test is end-of-training-on-test.",
        SEARCHED, usual="the protocol's", later=True, part=SHORT,
    )
    """None in a built study, whose protocol has the whole name."""
    most_cv_tasks: int = option(
        values.whole(3, limits.TASKS),
        "With --protocol extrapolated, tasks that the search may go on to, at most as many as the evaluation has; of "
        "permuted and rotated tasks, of which there are always more. --cv-tasks 3..10 is short for both.",
        STREAM, 10, later=True, after="cv_tasks",
    )
    choose: str = option(
        values.words(CURVE, TRIED),
        "What is chosen: the top of a curve through all scores, trained like any value, or the best tried value.",
        SEARCHED, CURVE, extendable=True,
    )
    against: tuple[tuple[str, Value], ...] = option(
        values.METHOD_VALUES, "Values that the choice of a trainer is compared with, like lr=0.1.", SEARCHED, (),
        usual="those it declares, if any", later=True, part=TRAINER,
    )
    """(name, value); () for nothing."""
    strategy_seed: int = option(
        values.whole(0, limits.STRATEGY_SEED), "Seed of strategies that draw at random.", SEARCHED, 0, later=True,
        extendable=True,
    )
    race: bool = option(
        values.FLAG,
        "Train every value with two seeds, and with more only if it is not significantly worse than the best.",
        SEARCHED, False, later=True, extendable=True,
    )
    most_seeds: int | None = option(
        values.whole(3, limits.SEEDS), "In a race, seeds that a value may get while several cannot be told apart.",
        SEEDS, usual="those of --seeds", later=True, part=RACE, extendable=True,
    )
    repeats: int = option(
        values.whole(1, limits.ROUNDS), "Rounds of the search.", SEARCHED, usual=DATASETS, level=BASIC, extendable=True,
    )
    """M of the ε-SOFT-GEM paper."""
    points: int = option(
        values.whole(1, limits.VALUES), "Values tried in each round.", SEARCHED, usual=DATASETS, level=BASIC,
        extendable=True,
    )
    """N of the paper."""
    eval_seeds: tuple[int, ...] | None = option(
        values.SEED_NUMBERS, "Seeds of the evaluation, as --seeds.", SEEDS, usual="those of the search", later=True,
        extendable=True, after="seeds",
    )
    allow_shared: bool = _allow_shared()
    claim: str | None = _claim()
    score_on: str = option(
        values.words("cv", "eval"),
        "Stream that scores ε, as --protocol has it: cv is cv-tasks; eval is end-of-training, or with --validation 0 "
        "end-of-training-on-test, which reproduces the printed figures, but is biased upwards.",
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
    reference_rows: tuple[str, ...] = option(
        values.REFERENCE_ROWS,
        "Rows beside the curve, on its tasks and seeds: joint, trained on all tasks together, and iid, on i.i.d. data.",
        SEEDS, (), usual="none", scope=REQUEST, part=METHOD,
    )
    """Names of methods that show tasks together."""
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
        """Largest number of tried values."""
        return self.points * self.repeats

    @property
    def search_units(self) -> tuple[Unit, ...]:
        """Units of a point in the search: those of `search_seeds`."""
        return self.units_of(self.search_seeds)

    @property
    def search_seeds(self) -> tuple[int, ...]:
        """Seeds of a point in the search: `seeds`, and in a race further ones above the largest."""
        more, last = (self.most_seeds or 0) - len(self.seeds), max(self.seeds)
        return (*self.seeds, *range(last + 1, last + 1 + more))

    @property
    def extrapolates(self) -> bool:
        """True if predicted scores choose."""
        return self.protocol == EXTRAPOLATED

    @property
    def further_tasks(self) -> int:
        """The most tasks of the search behind those of the whole stream; 0 for streams that have an end."""
        from trainers.streams import endless

        more = min(self.most_cv_tasks, self.tasks - self.cv_tasks) - self.cv_tasks
        return max(more, 0) if self.extrapolates and endless(self.dataset) else 0

    @property
    def view(self) -> "View":
        """What scores points."""
        from epsearch.protocols.registry import protocol

        view = protocol(self.protocol).view
        assert view is not None
        return view

    @property
    def scored_on(self) -> str:
        """The phase that scores points: "cv", "eval", or what the evaluation tasks hold out, "validation", "memory"."""
        return self.view.phase

    @property
    def first_tasks(self) -> int | None:
        """How many first tasks of its stream score points; None for all, or for a share of the steps."""
        tasks = self.view.tasks
        return None if tasks is None or tasks == len(self.stream_tasks(self.scored_on)) else tasks

    @property
    def scores_part(self) -> bool:
        """True if a part of the stream scores points."""
        return self.first_tasks is not None or self.view.share < 1

    @property
    def scores_judge(self) -> bool:
        """True if the scores are those of the evaluation, which so is no further training."""
        return self.scored_on == "eval" and not self.scores_part

    @property
    def final_units(self) -> tuple[Unit, ...]:
        """Units of the evaluation: those of `final_seeds`."""
        return self.units_of(self.final_seeds)

    @property
    def final_seeds(self) -> tuple[int, ...]:
        """Seeds of the evaluation."""
        return self.seeds if self.eval_seeds is None else self.eval_seeds

    def identity(self) -> dict[str, Any]:
        """Returns the identity, with the rule of a race: stored races without one had another rule.

        A protocol that older studies knew as --score-on eval has no other name there.
        """
        known = super().identity() | ({"race_rule": PAIRS} if self.race else {})
        if self.score_on == "eval" and self.protocol == at_the_end(self.validation):
            known.pop("protocol", None)
        return known

    @classmethod
    def options_of(cls, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the options of a stored identity, also of development versions. Raises UsageError."""
        written = {"choose": TRIED} | super().options_of(identity)
        if written.get("score_on") == "eval":
            written.setdefault("protocol", at_the_end(written.get("validation", 0)))
        if written.pop("race_rule", None) != PAIRS and written.get("race"):
            raise UsageError("its race compared values by their pooled noise, which no race does any more")
        return written

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins: network, method, strategy, objective, and networks of a trainer."""
        own = {self.method: "trainer" if self.trainer else "method", self.strategy: "strategy"}
        own |= {} if is_objective(self.objective) else {self.objective: "objective"}
        own |= {self.protocol: "protocol"}
        return super().code() | own | dict.fromkeys(self._networks(), "network")

    def _networks(self) -> list[str]:
        """Returns values that are module:attribute of a network."""
        takes = {each.name for each in method(self.method).own if each.network}
        values = [*self.set, *((each.name, value) for each in self.space.parameters for value in each.choices)]
        return [str(value) for name, value in values if name in takes and is_reference(value)]

    @property
    def foreign(self) -> bool:
        """True if a plug-in trainer trains its members."""
        return self.trainer is not None

    @property
    def limits(self) -> "Limits | None":
        """Time and memory of a member; None without a plug-in trainer."""
        if not self.foreign:
            return None
        from trainers.foreign.process import Limits

        return Limits(self.time_limit, self.memory_limit)

    def applies(self, option: Option) -> bool:
        """Returns whether an option applies: those of a race, a trainer or a method need one."""
        parts = {RACE: self.race, TRAINER: self.foreign, METHOD: not self.foreign, SHORT: False}
        return parts.get(option.part, True)

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Returns the seeds on D^CV ("cv") or D^EV ("eval"), which has the search's if it scores points."""
        searched = self.search_seeds if self.score_on == "eval" else ()
        return self.search_seeds if phase == "cv" else tuple(dict.fromkeys((*searched, *self.final_seeds)))

    @property
    def maximised(self) -> str:
        """The objective, as in tables."""
        return objective_label(self.objective)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Numbers of units of search and evaluation, once if equal."""
        return tuple(dict.fromkeys((len(self.units), len(self.final_units))))

    @property
    def baseline(self) -> Point | None:
        """The baseline: the study's own values with ε = 0 (of ε-SOFT-GEM, A-GEM).

        For a trainer, the point of `against`, if any.
        """
        if self.trainer is None:
            return tuple(0.0 if name == EPSILON else self.value(name) for name in self.space.names)
        against = dict(self.against)
        return tuple(value for name in self.space.names if (value := against.get(name)) is not None) or None

    @property
    def compared(self) -> tuple[Point, ...]:
        """The baseline, if any."""
        return () if self.baseline is None else (self.baseline,)

    @property
    def example(self) -> Point:
        """An example of a point."""
        ends = (each.choices[0] if each.choices else each.value(each.axis().low) for each in self.space.parameters)
        return tuple(ends) if self.baseline is None else self.baseline

    @property
    def claimable(self) -> tuple[str, ...]:
        """Names of what a claim may compare: the method, with the chosen value, and its baseline, if any."""
        zero = "" if self.foreign else method(self.method).at_zero
        return (self.method, *(() if self.baseline is None else (zero or BASELINE,)))

    def reference(self, row: str, seed: int) -> Learner:
        """Returns the learner of a reference row, with the study's own values, also of what is searched."""
        return Learner.of(row, seed, **self._values_of(row))


@dataclass(frozen=True, init=False, kw_only=True)
class Table(Study):
    """Base of tables: methods on the evaluation stream, beside the paper's table."""

    has_latex = True

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
    order_by_seed: bool = option(
        values.FLAG,
        "Give every seed an order of its own, of tasks or of the classes that are split into them: seed 3 order 3 of "
        "--orders, seed 0 the stream's.", SEEDS, False, later=True, after="orders",
    )
    # fmt: on

    @property
    def order_numbers(self) -> tuple[int, ...]:
        """The numbers of the orders of tasks."""
        return self.seeds if self.order_by_seed else super().order_numbers

    def units_of(self, seeds: Iterable[int]) -> tuple[Unit, ...]:
        """Returns each seed in its own order, or in every order."""
        return tuple(Unit(seed, seed) for seed in seeds) if self.order_by_seed else super().units_of(seeds)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Numbers of units in which rows are compared; none for the row of a pack, which is held against print."""
        alone = self.from_pack is not None and len(self.methods) == 1 and self.kind == Comparison.kind
        return () if alone else super().compared_on

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins: network and methods."""
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
    budget: int | None = option(
        values.whole(1),
        "Member-steps with which each row is tuned on the cross-validation tasks: as many quasi-random candidates for "
        "every row.", LEARNING, usual="none", later=True, after="tune",
    )
    """None without such a tuning."""
    memory_bytes: int | None = option(
        values.SIZE_OF_MEMORY,
        "Bytes that each method with a memory may keep in all, like 2MB; it stores as many examples as fit.", LEARNING,
        usual="as --memory has it", later=True, after="budget",
    )
    """None for `memory` examples per class and task of every method."""
    # fmt: on
    claim: str | None = _claim()
    allow_shared: bool = _allow_shared()

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Returns shared hyperparameters, without those of a method alone and those that vary between rows."""
        shared = {
            each.name for one in METHODS.values() for each in one.hyperparameters if each.name not in dict(one.variants)
        }
        return tuple(name for name, each in hyperparameters().items() if not each.per_method and name in shared)

    @property
    def searches(self) -> bool:
        """True if the methods are tuned on D^CV first."""
        return self.tune or self.budget is not None

    @property
    def claimable(self) -> tuple[str, ...]:
        """Names of what a claim may compare."""
        return self.methods

    def idle(self, name: str) -> str:
        """Returns why an option has no effect in this study; "" if it may have one."""
        return "memory-bytes sets it" if name == "memory" and self.memory_bytes is not None else ""


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
        """Returns shared hyperparameters of its methods, without the memory, which varies between rows."""
        shared = {each.name for name in cls.trainable() for each in method(name).hyperparameters if not each.per_method}
        return tuple(name for name in hyperparameters() if name in shared - {"memory"})

    @classmethod
    def trainable(cls) -> tuple[str, ...]:
        """Returns methods with a memory of examples per class and task, as in the paper's memory study."""
        return tuple(name for name in super().trainable() if method(name).memory == SAMPLED)


@dataclass(frozen=True, init=False, kw_only=True)
class ProtocolStudy(OneMethod):
    """Several search protocols on one stream, judged alike: `epsearch protocols`."""

    kind = "protocols"
    chooses = True

    # fmt: off
    protocols: tuple[str, ...] = option(
        values.PROTOCOL_NAMES,
        "Search protocols with commas between, also first-3 or 25-percent; or module:attribute.",
        SEARCHED, PROTOCOLS, level=BASIC,
    )
    points: int = option(values.whole(2, limits.VALUES), "Values that may be chosen.", SEARCHED, usual=DATASETS)
    """An even grid over the searched interval."""
    validation: float = option(
        values.SHARE, "Share of each task's training examples to choose by, which is held out of training.", STREAM,
        0.1,
    )
    allow_shared: bool = _allow_shared()
    # fmt: on

    @property
    def declared(self) -> Hyperparameter:
        """The declaration of the hyperparameter that is chosen."""
        return next(each for each in method(self.method).hyperparameters if each.name == self.space.names[0])

    @property
    def candidates(self) -> tuple[float, ...]:
        """The numbers that may be chosen, ascending. Raises ValueError as `grid`."""
        values = (point[0] for point in grid(self.space, self.points))
        return tuple(sorted(value for value in values if isinstance(value, (int, float))))

    @property
    def places(self) -> tuple[float, ...]:
        """Positions of these values on the searched axis, from 0 to 1."""
        (parameter,) = self.space.parameters
        if parameter.choices:
            parameter = Parameter(parameter.name, float(self.candidates[0]), float(self.candidates[-1]))
        axis = parameter.axis()
        return tuple((parameter.coordinate(float(one)) - axis.low) / (axis.high - axis.low) for one in self.candidates)

    @property
    def tried(self) -> int:
        """Largest number of tried values."""
        return len(self.candidates)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Number of orders, or of seeds where there is one order: seeds of an order say nothing about others."""
        return (self.orders if self.orders > 1 else len(self.seeds),)

    @property
    def compared_unit(self) -> str:
        """The unit of these numbers."""
        return "order" if self.orders > 1 else super().compared_unit

    @property
    def example(self) -> Point:
        """An example of a point."""
        return self.candidates[-1:]

    @property
    def searches(self) -> bool:
        """True if a protocol chooses by tasks that are not judged."""
        from epsearch.protocols.protocol import SEARCH
        from epsearch.protocols.registry import protocol

        views = (protocol(name).view for name in self.protocols)
        return any(view is not None and view.stream == SEARCH for view in views)

    def holds_tests(self, phase: str) -> bool:
        """Returns whether a phase is tested by the examples that are held out: nobody is judged on D^CV."""
        return phase != "cv" and super().holds_tests(phase)

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins: network, method, protocols."""
        return super().code() | {self.method: "method"} | dict.fromkeys(self.protocols, "protocol")


KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy, ProtocolStudy)}

REQUESTS = tuple(
    {name: each for kind in KINDS.values() for name, each in kind.options().items() if each.scope == REQUEST}
)
"""Options that a ledger stores for the newest run."""
EXTENDABLE = tuple(name for name, each in Search.options().items() if each.extendable)
"""Options that may change when a stored search is extended."""
