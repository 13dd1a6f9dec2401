"""Checks of protocols: refuses one that sees nothing by which it could choose."""

from collections.abc import Mapping

from epsearch.failures.errors import UsageError
from epsearch.loop.walks import question_of
from epsearch.preparation import effects
from epsearch.protocols.protocol import EVALUATION, TEST, View
from epsearch.protocols.registry import protocol
from epsearch.study.kinds import OneMethod, ProtocolStudy, Search
from results.labels import count_text
from trainers import methods
from trainers.forks import cut_of, is_fixed
from trainers.streams.base import TaskStream


def check_protocol(study: ProtocolStudy, name: str) -> None:
    """Checks that a protocol can choose on the tasks of a study. Raises UsageError."""
    search_protocol, declared = protocol(name), study.declared
    view = search_protocol.view
    if reason := search_protocol.needs(question_of(study, study.tasks - study.cv_tasks - 1)):
        raise UsageError(f"{reason}; choose another")
    if view is None:
        return
    _check_view(study, name, view)
    if search_protocol.per_task and is_fixed(declared, study.hyperparameters):
        raise UsageError(f"protocol {name} cannot change {declared.name} from task to task; choose another")


def check_search(study: Search) -> None:
    """Checks that the protocol of a search sees by what it could choose. Raises UsageError."""
    name, view = study.protocol, study.view
    if not study.scores_part:
        _check_held_out(study, name, view)
        return
    for wrong, line in (
        (study.foreign, "a method of epsearch, got a trainer of your own"),
        (
            not study.foreign and methods.method(study.method).union is not None,
            f"tasks one after another; {study.method} shows them together",
        ),
        (
            bool(study.reference_rows),
            f"no reference-rows, which learn all tasks, got {', '.join(study.reference_rows)}",
        ),
    ):
        if wrong:
            raise UsageError(f"protocol {name} needs {line}")
    _check_view(study, name, view)


def check_on(study: ProtocolStudy, streams: Mapping[str, TaskStream]) -> None:
    """Checks protocols that see a share of the steps, by the sizes of the stream of the evaluation ("eval").

    Raises UsageError.
    """
    for name in study.protocols:
        view = protocol(name).view
        if view is not None and view.share < 1:
            _check_tasks(study, name, tasks_seen(study, streams["eval"], view))


def check_search_on(study: Search, streams: Mapping[str, TaskStream]) -> None:
    """Checks as `check_on` the protocol of a search, and `effects.check_on` on what it sees. Raises UsageError."""
    stream = streams[study.score_on]
    tasks = tasks_seen(study, stream, study.view)
    if study.view.share < 1:
        _check_tasks(study, study.protocol, tasks)
    effects.check_on(study, stream, tasks)


def tasks_seen(study: Search | ProtocolStudy, stream: TaskStream, view: View) -> int:
    """Returns how many first tasks of a stream a view has, the last of them perhaps in part."""
    if view.share < 1:
        return cut_of(study.learner(study.example, study.seeds[0]), stream, view.share)[0]
    return len(stream.tasks) if view.tasks is None else view.tasks


def _check_view(study: OneMethod, name: str, view: View) -> None:
    """Checks that a view has held-out examples, and tasks enough. Raises UsageError."""
    _check_held_out(study, name, view)
    of, in_view = view.stream, len(study.stream_tasks(view.phase))
    if view.tasks is not None and view.tasks > in_view:
        raise UsageError(f"protocol {name} needs {count_text(view.tasks, 'task')}, of {in_view} in the {of}")
    _check_tasks(study, name, in_view if view.tasks is None else view.tasks)


def _check_held_out(study: OneMethod, name: str, view: View) -> None:
    """Raises UsageError where a view has held-out examples, and none are held out."""
    if view.stream == EVALUATION and view.tests != TEST and not study.validation:
        raise UsageError(f"validation must be > 0 for protocol {name}, which sees held-out examples, got 0")


def _check_tasks(study: OneMethod, name: str, tasks: int) -> None:
    """Checks that what is chosen can act on as many tasks as a protocol sees. Raises UsageError."""
    for chosen in study.space.names:
        least = max(methods.method(study.method).tasks_needed(chosen), protocol(name).fewest)
        if tasks < least:
            raise UsageError(
                f"protocol {name} sees {count_text(tasks, 'task')}, but {chosen} of {study.method} needs {least} to "
                "act; choose another"
            )
