"""Checks of a study of protocols: refuses a protocol that sees nothing by which it could choose."""

from collections.abc import Mapping

from epsearch.failures.errors import UsageError
from epsearch.protocols.protocol import EVALUATION, SEARCH, TEST, Protocol, Question
from epsearch.protocols.registry import protocol
from epsearch.study.kinds import ProtocolStudy
from epsearch.study.published import known_values
from results.labels import count_text
from trainers import methods
from trainers.forks import cut_of
from trainers.hyperparameters import BATCH_SIZE, Hyperparameter
from trainers.methods.rules import RESERVOIR
from trainers.streams.base import TaskStream


def check_protocol(study: ProtocolStudy, name: str) -> None:
    """Checks that a protocol can choose on the tasks of a study. Raises UsageError."""
    one, tasks = protocol(name), study.tasks - study.cv_tasks
    declared, view = declared_of(study), one.view
    if reason := one.needs(question_of(study)):
        raise UsageError(f"{reason}; leave it out")
    if view is None:
        return
    if view.stream == EVALUATION and view.tests != TEST and not study.validation:
        raise UsageError(f"validation must be > 0 for protocol {name}, which sees held-out examples, got 0")
    in_view = study.cv_tasks if view.stream == SEARCH else tasks
    if view.tasks is not None and view.tasks > in_view:
        raise UsageError(f"protocol {name} needs {count_text(view.tasks, 'task')}, of {in_view} in the evaluation")
    _check_tasks(study, name, in_view if view.tasks is None else view.tasks)
    if one.per_task and _is_fixed(study, declared):
        raise UsageError(f"protocol {name} cannot change {declared.name} from task to task; leave it out")


def check_on(study: ProtocolStudy, streams: Mapping[str, TaskStream]) -> None:
    """Checks protocols that see a share of the steps, by the sizes of the stream of the evaluation ("eval").

    Raises UsageError.
    """
    for name in study.protocols:
        view = protocol(name).view
        if view is not None and view.share < 1:
            learner = study.learner(study.example, study.seeds[0])
            _check_tasks(study, name, cut_of(learner, streams["eval"], view.share)[0])


def _check_tasks(study: ProtocolStudy, name: str, seen: int) -> None:
    """Checks that the hyperparameter can act on as many tasks as a protocol sees. Raises UsageError."""
    chosen = declared_of(study).name
    least = methods.method(study.method).tasks_needed(chosen)
    if name == "extrapolated":
        from results.statistics.extrapolation import FEWEST_TASKS  # brings scipy along

        least = max(least, FEWEST_TASKS)
    if seen < least:
        raise UsageError(
            f"protocol {name} sees {count_text(seen, 'task')}, but {chosen} of {study.method} needs {least} to act; "
            "leave it out"
        )


def remark(study: ProtocolStudy, one: Protocol) -> str:
    """Returns why the choice of a protocol misleads; "" where it does not."""
    method, view = methods.method(study.method), one.view
    of_memory = method.memory == RESERVOIR and study.space.names[0] in method.names
    if view is not None and view.stream == EVALUATION and view.tasks == 1 and of_memory:
        return f"Misleading: on one task {study.space.names[0]} acts only by replaying the same task."
    return ""


def declared_of(study: ProtocolStudy) -> Hyperparameter:
    """Returns the declaration of the hyperparameter that is chosen."""
    declared = methods.method(study.method).hyperparameters
    return next(each for each in declared if each.name == study.space.names[0])


def question_of(study: ProtocolStudy) -> Question:
    """Returns a question as every protocol of the study gets it, for the last task."""
    name, tasks = study.space.names[0], study.tasks - study.cv_tasks
    candidates = tuple(map(float, study.candidates))
    known, stability = known_values(study.dataset, study.method, name), declared_of(study).stability
    return Question(candidates, study.places, tasks - 1, tasks, stability=stability, known=known)


def _is_fixed(study: ProtocolStudy, declared: Hyperparameter) -> bool:
    """Returns whether a hyperparameter must stay the same throughout a run, as `trainers.forks` has it."""
    return declared.fixed or (declared.name == BATCH_SIZE.name and study.hyperparameters.steps is not None)
