"""What the kinds of study do not share before they begin: their methods, their checks, what of them is trained."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from epsearch.failures.errors import UsageError
from epsearch.loop.content import check_searchable
from epsearch.loop.strategy import make_strategy
from epsearch.loop.table import table_rows
from epsearch.preparation import acting
from epsearch.study import limits
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, Search, Table
from epsearch.study.limits import check_product
from epsearch.study.options import default
from epsearch.study.parsers import of_sampled_memory
from search_spaces.published.definition import load_definition
from trainers import methods
from trainers.cohort import Learner
from trainers.methods import METHODS
from trainers.streams.base import TaskStream


class Rules(NamedTuple):
    """Of one kind of study."""

    methods: Callable[[], tuple[str, ...]]
    """Names of those that it may train."""
    method: Callable[[Mapping[str, Any]], str | None]
    """The one whose published values are its own, by the options that were given."""
    check_sizes: Callable[[Any], None]
    """Raises UsageError where numbers that fit one by one are too many together."""
    check: Callable[[Any], None]
    """Raises UsageError where options do not fit each other."""
    check_on: Callable[[Any, TaskStream], None]
    """Raises UsageError where the stream whose scores choose does not fit what is searched."""
    trained: Callable[[Any], list[Learner]]
    """A learner of each kind that it trains."""


def _check_tried(study: Search) -> None:
    tried = {"points": study.points, "repeats": study.repeats}
    check_product("values", limits.VALUES, **tried)
    check_product("members", limits.MEMBERS, **tried, seeds=len(study.seeds))


def _check_comparison(study: Comparison) -> None:
    if study.hyperparameters.memory == 0:
        raise UsageError("memory must be >= 1, as methods with an episodic memory are compared, got 0")
    _check_table(study)
    acting.check_tuning(study)


def _check_memory_study(study: MemoryStudy) -> None:
    _check_table(study)
    acting.check_memory(study)


def _check_table(study: Table) -> None:
    _check_methods(study)
    rows = sum(len(row.candidates()) if study.searches else 1 for row in table_rows(study))
    check_product("members", limits.MEMBERS, rows=rows, seeds=len(study.seeds))


def _check_search(study: Search) -> None:
    """The strategy must be able to search the space, and the space must be the method's."""
    check_searchable(study.method, study.space.names)
    if study.hyperparameters.memory_batch is None and "memory_batch" in study.space.names:
        raise UsageError("memory-batch must be a number where it is searched, as the baseline has it, got all")
    if study.hyperparameters.memory == 0 and "memory" in methods.method(study.method).names:
        raise UsageError(f"memory must be >= 1 for {study.method}, which has an episodic memory, got 0")
    try:
        make_strategy(study)
    except ValueError as error:
        raise UsageError(str(error)) from None
    acting.check_search(study)


def _check_methods(study: Table) -> None:
    """Every method must fit the command and have published settings, or be given some, on the dataset."""
    definition = load_definition(study.dataset)
    known = {one.name: one for one in definition.methods}
    for method in study.methods:
        if method not in (allowed := RULES[study.kind].methods()):
            raise UsageError(f"method {method!r} is not in the paper's memory study; allowed: {', '.join(allowed)}")
        if method not in known:
            raise UsageError(f"no settings for method {method!r} on {study.dataset}; known: {', '.join(known)}")
    for method, _, _ in study.settings:
        if method not in study.methods:
            raise UsageError(f"settings of {method!r} are given, but the methods are {', '.join(study.methods)}")


def _check_nothing(study: Study, stream: TaskStream | None = None) -> None:
    """All is well."""


def _rows(study: Table) -> list[Learner]:
    return [row.learner(study.seeds[0]) for row in table_rows(study)]


def _methods() -> tuple[str, ...]:
    return tuple(METHODS)


RULES: dict[str, Rules] = {
    Search.kind: Rules(
        methods=_methods,
        method=lambda given: str(given.get("method", default("method"))),
        check_sizes=_check_tried,
        check=_check_search,
        check_on=acting.check_on,
        trained=lambda study: [study.learner(study.baseline, study.seeds[0])],
    ),
    Comparison.kind: Rules(
        methods=_methods,
        method=lambda given: None,
        check_sizes=_check_nothing,
        check=_check_comparison,
        check_on=_check_nothing,
        trained=_rows,
    ),
    MemoryStudy.kind: Rules(
        methods=of_sampled_memory,
        method=lambda given: None,
        check_sizes=_check_nothing,
        check=_check_memory_study,
        check_on=_check_nothing,
        trained=_rows,
    ),
}
