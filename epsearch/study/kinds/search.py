"""A search, and the evaluation of its choice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import UsageError
from epsearch.study import limits, values
from epsearch.study.description import CURVE, PAIRS, Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.kinds.one_method import OneMethod
from epsearch.study.kinds.options import allow_shared_option, claim_option
from epsearch.study.option import (
    BASIC,
    DATASETS,
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
from search_spaces.space import Point
from search_spaces.strategies import STRATEGIES
from trainers.cohort import Learner
from trainers.hyperparameters import Value, is_reference
from trainers.methods import method

if TYPE_CHECKING:
    from epsearch.protocols.protocol import View
    from trainers.foreign.process import Limits

TRIED = "tried"
CV_TASKS, EXTRAPOLATED = "cv-tasks", "extrapolated"
"""Protocols: the choice is highest on the tasks of the search, or predicted to be so on as many as the evaluation has.
"""
ALONG_TASKS = ("most_cv_tasks", "eval_seeds")
"""Options that may change when a search along tasks is extended."""
BASELINE = "baseline"
"""Name in claims of a search's baseline that is no other method."""


def at_the_end(validation: float) -> str:
    """Returns the protocol that is --score-on eval; validation: share of the examples that is held out."""
    return "end-of-training" if validation else "end-of-training-on-test"


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
        STREAM, 10, later=True, extendable=True, after="cv_tasks",
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
    allow_shared: bool = allow_shared_option()
    claim: str | None = claim_option()
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
    def task_limit(self) -> int:
        """The most tasks to which a search along tasks may go on, those of the evaluation; `cv_tasks` for others."""
        from trainers.streams import endless

        return self.tasks - self.cv_tasks if self.extrapolates and endless(self.dataset) else self.cv_tasks

    @property
    def further_tasks(self) -> int:
        """The most tasks of the search behind those of the whole stream; 0 for streams that have an end."""
        return max(min(self.most_cv_tasks, self.task_limit) - self.cv_tasks, 0)

    @property
    def extendable_options(self) -> tuple[str, ...]:
        """Options that may change when the search is extended; along tasks those that leave its values as they are."""
        if self.extrapolates:
            return ALONG_TASKS
        return tuple(name for name, option in self.options().items() if option.extendable and name != "most_cv_tasks")

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
        identity = super().identity() | ({"race_rule": PAIRS} if self.race else {})
        if self.score_on == "eval" and self.protocol == at_the_end(self.validation):
            identity.pop("protocol", None)
        return identity

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
        plugins = {self.method: "trainer" if self.trainer else "method", self.strategy: "strategy"}
        plugins |= {} if is_objective(self.objective) else {self.objective: "objective"}
        plugins |= {self.protocol: "protocol"}
        return super().code() | plugins | dict.fromkeys(self._networks(), "network")

    def _networks(self) -> list[str]:
        """Returns values that are module:attribute of a network."""
        takes = {hyperparameter.name for hyperparameter in method(self.method).own if hyperparameter.network}
        values = [
            *self.set,
            *((parameter.name, value) for parameter in self.space.parameters for value in parameter.choices),
        ]
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
        ends = (
            parameter.choices[0] if parameter.choices else parameter.value(parameter.axis().low)
            for parameter in self.space.parameters
        )
        return tuple(ends) if self.baseline is None else self.baseline

    @property
    def claimable(self) -> tuple[str, ...]:
        """Names of what a claim may compare: the method, with the chosen value, and its baseline, if any."""
        zero = "" if self.foreign else method(self.method).at_zero
        return (self.method, *(() if self.baseline is None else (zero or BASELINE,)))

    def reference(self, row: str, seed: int) -> Learner:
        """Returns the learner of a reference row, with the study's own values, also of what is searched."""
        return Learner.of(row, seed, **self._values_of(row))
