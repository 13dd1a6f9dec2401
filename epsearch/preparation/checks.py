"""Checks of each kind of study before it begins, and its learners."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.loop.content import check_searchable
from epsearch.loop.strategy_driver.driver import make_strategy
from epsearch.loop.table import table_rows
from epsearch.plugins.names import column
from epsearch.preparation import effects, protocol_checks
from epsearch.study import limits
from epsearch.study.description import Study
from epsearch.study.hyperparameters import check_column
from epsearch.study.kinds import Comparison, MemoryStudy, OneMethod, ProtocolStudy, Search, Table
from epsearch.study.limits import check_product
from epsearch.study.published import of_methods
from results.claims import Claim
from results.labels import A_T, MIN_ACC
from trainers import methods
from trainers.cohort import Learner
from trainers.methods import PLUGGED
from trainers.spelling import unknown
from trainers.streams.base import TaskStream

FEWEST_POINTS = 3  # of a round over an interval: its ends, and a point between them


class _Checks(NamedTuple):
    """Checks of one kind of study; each takes a study of that kind."""

    check: Callable[[Any], None]
    """Raises UsageError where options do not fit each other, or make too many members."""
    check_on: Callable[[Any, Mapping[str, TaskStream]], None]
    """Raises UsageError where the streams "cv" and "eval" do not fit the search space."""
    trained: Callable[[Any], list[Learner]]
    """Returns a learner of each method that it trains."""


def _check_search(study: Search) -> None:
    """Checks that the strategy fits the space, and the space the method."""
    tried = {"points": study.points, "repeats": study.repeats}
    if study.foreign and study.search is None:
        raise UsageError("search must name what is searched of a trainer, like lr=log:0.001..0.1 memory=10,50,200")
    names = (*study.space.names, *dict(study.set))
    if not study.foreign:
        _check_passes(study)
        _check_points(study)
        _check_references(study)
    for name in names:
        check_column(name)
    if taken := [name for name in study.add_metrics if column(name) in names]:
        raise UsageError(f"metric {taken[0]!r} has the name of a hyperparameter; give yours another name")
    if study.points < FEWEST_POINTS and any(not parameter.choices for parameter in study.space.parameters):
        raise UsageError(f"points must be >= {FEWEST_POINTS}, got {study.points}")
    # First: a grid makes all of its points when the strategy is made below.
    check_product("values", limits.VALUES, **tried)
    _check_race(study)
    _check_protocol(study)
    _check_claim(study)
    check_product("members", limits.MEMBERS, **tried, seeds=len(study.search_units))
    check_searchable(study.method, study.space.names)
    if study.foreign:
        with as_usage_error(ValueError):
            make_strategy(study)
        protocol_checks.check_search(study)
        return
    if study.hyperparameters.memory_batch is None and "memory_batch" in study.space.names:
        raise UsageError("memory-batch must be a number where it is searched, as the baseline has it, got all")
    _check_memory(study)
    with as_usage_error(ValueError):
        make_strategy(study)
    protocol_checks.check_search(study)
    effects.check_search(study)


def _check_passes(study: OneMethod) -> None:
    """Checks that the passes over a task are searched by their number alone."""
    if "steps" in study.space.names:  # also a column of every table of runs
        raise UsageError("steps cannot be searched; search epochs instead, or give --steps one value")
    if "epochs" in study.space.names and study.hyperparameters.steps is not None:
        raise UsageError(f"steps must be none where epochs are searched, got {study.hyperparameters.steps}")


def _check_memory(study: OneMethod) -> None:
    """Checks that an episodic memory has a place for an example of every class."""
    if study.hyperparameters.memory == 0 and "memory" in methods.method(study.method).names:
        raise UsageError(f"memory must be >= 1 for {study.method}, which has an episodic memory, got 0")


def _check_points(study: Search) -> None:
    """Checks that there are tests inside tasks where they are wanted, and an earlier task where it is scored."""
    if study.measure is not None and methods.method(study.method).union is not None:
        raise UsageError(f"tests inside tasks are for tasks one after another; {study.method} shows them together")
    tasks = study.first_tasks or len(study.stream_tasks(study.scored_on))
    if study.objective == MIN_ACC and tasks < 2:
        got = f"cv-tasks {tasks}" if study.scored_on == "cv" else f"{tasks} by protocol {study.protocol}"
        raise UsageError(f"objective {MIN_ACC} needs two tasks in the search, got {got}")


def _check_references(study: Search) -> None:
    """Checks that reference rows are other methods than the searched one, and take the study's optimizer."""
    for name in study.reference_rows:
        if name == study.method:
            raise UsageError(f"reference-rows must be others than the searched method, got {name}; leave it out")
        if fault := methods.optimizer_fault(methods.method(name), study.hyperparameters):
            raise UsageError(fault)


def _check_race(study: Search) -> None:
    """Checks that options of a race come with one, and that its seeds are valid."""
    if study.race and study.orders > 1:
        raise UsageError(f"race drops values by seeds of one order; leave it out, or give orders 1, got {study.orders}")
    if study.most_seeds is not None and not study.race:
        raise UsageError("most-seeds is for a race; give --race, or leave it out")
    if study.most_seeds is not None and study.most_seeds <= len(study.seeds):
        raise UsageError(f"most-seeds must be > the number of seeds, got {study.most_seeds} and {len(study.seeds)}")
    if study.search_seeds[-1] > limits.LARGEST_SEED:
        raise UsageError(f"seeds beyond the first ones follow the largest, and must be <= {limits.LARGEST_SEED}")


def _check_protocol(study: Search) -> None:
    """Checks that A_T can be predicted where it chooses, from matrices of several seeds over numbers."""
    if not study.extrapolates:
        if study.most_cv_tasks != study.options()["most_cv_tasks"].default:
            raise UsageError("most-cv-tasks is for --protocol extrapolated; give it, or leave it out")
        return
    from results.statistics.extrapolation import FEWEST_TASKS  # brings scipy along

    evaluated, union = study.tasks - study.cv_tasks, methods.method(study.method).union is not None
    for wrong, line in (
        (study.foreign, "a method of epsearch, got a trainer of your own"),
        (union, f"tasks one after another; {study.method} shows them together"),
        (study.score_on != "cv", f"score-on cv, got {study.score_on}"),
        (study.objective != A_T, f"objective {A_T}, got {study.objective}"),
        (study.race, "all seeds of every value; leave --race out"),
        (len(study.units) < 2, f"two seeds or more, got {len(study.units)}"),
        (any(parameter.choices for parameter in study.space.parameters), "numbers as searched values, got choices"),
        (study.cv_tasks < FEWEST_TASKS, f"cv-tasks >= {FEWEST_TASKS}, got {study.cv_tasks}"),
        (
            evaluated <= study.cv_tasks,
            f"more tasks in the evaluation than the {study.cv_tasks} of cv-tasks, got {evaluated}",
        ),
        (
            study.most_cv_tasks < study.cv_tasks,
            f"most-cv-tasks >= cv-tasks, got {study.most_cv_tasks} and {study.cv_tasks}",
        ),
    ):
        if wrong:
            raise UsageError(f"protocol extrapolated needs {line}")


def _check_claim(study: Search | Comparison) -> None:
    """Checks that a claim compares what is evaluated."""
    claim = Claim.of(study.claim) if study.claim else None
    for name in () if claim is None else (claim.first, claim.second):
        if name not in study.claimable:
            raise UsageError(f"claim: {unknown('method', name, study.claimable)}")


def _check_comparison(study: Comparison) -> None:
    """Checks the memory of all methods, and that tuning has an effect."""
    if study.hyperparameters.memory == 0:
        raise UsageError("memory must be >= 1, as methods with an episodic memory are compared, got 0")
    if study.from_pack is not None and study.orders > 1:
        raise UsageError(
            f"orders must be 1 with from-pack, as orders of one seed are no independent runs; got {study.orders}"
        )
    if study.memory_bytes is not None and not any(methods.method(name).memory for name in study.methods):
        raise UsageError("memory-bytes changes nothing, as no method here has an episodic memory; leave it out")
    if study.tune and study.budget is not None:
        raise UsageError("tune has published grids, and budget candidates of its own; leave one of them out")
    _check_table(study)
    _check_claim(study)
    effects.check_tuning(study)


def _check_memory_study(study: MemoryStudy) -> None:
    """Checks that memories of several sizes have an effect."""
    _check_table(study)
    effects.check_memory(study)


def _check_table(study: Table) -> None:
    """Checks that every method fits the command and has settings on the dataset."""
    if study.order_by_seed and (study.orders > 1 or study.order is not None or max(study.seeds) >= limits.ORDERS):
        raise UsageError(f"order-by-seed needs seeds < {limits.ORDERS}, and neither --orders nor --order")
    settings = of_methods(study.dataset)
    for method in study.methods:
        if method not in (allowed := study.trainable()):
            raise UsageError(f"method {method!r} is not in a memory study; allowed: {', '.join(allowed)}")
        if method not in settings and method not in PLUGGED:  # plug-ins have no published settings
            raise UsageError(f"no settings for method {method!r} on {study.dataset}; known: {', '.join(settings)}")
        if fault := methods.optimizer_fault(methods.method(method), study.hyperparameters):
            raise UsageError(fault)
    for method, _, _ in study.settings:
        if method not in study.methods:
            raise UsageError(f"settings of {method!r} are given, but the methods are {', '.join(study.methods)}")
    # Those of a budget are counted where the stream is known.
    rows = sum(len(row.candidates()) if getattr(study, "tune", False) else 1 for row in table_rows(study))
    check_product("members", limits.MEMBERS, rows=rows, seeds=len(study.units))


def _check_protocols(study: ProtocolStudy) -> None:
    """Checks that there is one hyperparameter to choose, in numbers, and that every protocol can choose it."""
    method, names = methods.method(study.method), study.space.names
    if method.union is not None:
        raise UsageError(f"protocols are for tasks one after another; {study.method} shows them together")
    if len(names) != 1 or any(not isinstance(choice, (int, float)) for choice in study.space.parameters[0].choices):
        raise UsageError(f"protocols choose one number; search one, like epsilon=0..1, got {study.space}")
    check_searchable(study.method, names)
    _check_passes(study)
    with as_usage_error(ValueError):
        candidates = study.candidates
    if len(candidates) < 2:
        raise UsageError(f"points must be >= 2, or two choices, got {len(candidates)}")
    _check_memory(study)
    check_product("members", limits.MEMBERS, values=len(candidates), seeds=len(study.units))
    for name in study.protocols:
        protocol_checks.check_protocol(study, name)


def _of_protocols(study: ProtocolStudy) -> list[Learner]:
    """Returns a learner of an example, with the first seed."""
    return [study.learner(study.example, study.seeds[0])]


def _check_nothing(study: Study, streams: Mapping[str, TaskStream]) -> None:
    """Accepts all streams."""


# No method's memory, FLOP or form depends on the seed: the first stands for all.
def _of_search(study: Search) -> list[Learner]:
    """Returns a learner of an example, and of each reference row, with the first seed."""
    seed = study.seeds[0]
    return [study.learner(study.example, seed), *(study.reference(row, seed) for row in study.reference_rows)]


def _rows(study: Table) -> list[Learner]:
    """Returns a learner of every row, with the first seed."""
    return [row.learner(study.seeds[0]) for row in table_rows(study)]


CHECKS: dict[str, _Checks] = {
    Search.kind: _Checks(_check_search, protocol_checks.check_search_on, _of_search),
    Comparison.kind: _Checks(_check_comparison, _check_nothing, _rows),
    MemoryStudy.kind: _Checks(_check_memory_study, effects.check_sizes, _rows),
    ProtocolStudy.kind: _Checks(_check_protocols, protocol_checks.check_on, _of_protocols),
}
