"""Equal budgets of the rows of a comparison: bytes of memory, member-steps of tuning."""

from typing import Any, cast

from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.loop.candidates import tunable
from epsearch.loop.content import CANDIDATES, MEMORIES
from epsearch.loop.table import table_rows
from epsearch.preparation.checks import CHECKS
from epsearch.study import limits
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison
from epsearch.study.limits import check_product
from results.labels import bytes_text
from trainers.cohort import Learner
from trainers.forks import steps_of
from trainers.streams.base import TaskStream

FEWEST_CANDIDATES = 2  # the row's own values, and others


def budgets(study: Study, stream: TaskStream) -> dict[str, Any]:
    """Returns memories and candidates of a comparison with budgets, for the description of the stream; else {}.

    stream: of the evaluation. Raises UsageError where a budget is too small.
    """
    memory, steps = (getattr(study, name, None) for name in ("memory_bytes", "budget"))
    if memory is None and steps is None:
        return {}
    learners = {learner.method: learner for learner in CHECKS[study.kind].trained(study)}
    values: dict[str, Any] = {}
    if memory is not None:
        with_memory = {name: learner for name, learner in learners.items() if learner.declared.memory is not None}
        values[MEMORIES] = {name: _memory(memory, study, learner, stream) for name, learner in with_memory.items()}
    if steps is not None:
        with as_usage_error(ValueError):
            for row in table_rows(cast(Comparison, study)):
                tunable(row.method, row.hyperparameters)
        searched = study.request("cv").open()
        values[CANDIDATES] = {name: _candidates(steps, study, learner, searched) for name, learner in learners.items()}
        rows = sum(values[CANDIDATES][learner.method] for learner in CHECKS[study.kind].trained(study))
        check_product("members", limits.MEMBERS, candidates=rows, seeds=len(study.units))
    return values


def _memory(budget: int, study: Study, learner: Learner, stream: TaskStream) -> int:
    """Returns the examples per class and task for which the bytes suffice."""
    from trainers.cost.storage import bytes_kept, largest_memory  # brings torch along

    if memory := largest_memory(budget, learner, stream, study.architecture):
        return memory
    values = learner.hyperparameters.but(memory=1)
    least = sum(bytes_kept(Learner(learner.method, values, learner.seed), stream, study.architecture).values())
    raise UsageError(
        f"memory-bytes must be >= {least}B for an example of each class and task of {learner.method}, "
        f"got {bytes_text(budget)}"
    )


def _candidates(budget: int, study: Study, learner: Learner, stream: TaskStream) -> int:
    """Returns the candidates for which the member-steps suffice."""
    steps = len(study.units) * sum(steps_of(learner, stream))
    if (count := budget // steps) < FEWEST_CANDIDATES:
        raise UsageError(
            f"budget must be >= {FEWEST_CANDIDATES * steps} member-steps, {FEWEST_CANDIDATES} candidates of "
            f"{learner.method}, got {budget}"
        )
    return count
