"""Refuses hyperparameters that cannot affect the results of a study, before anything is trained."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from epsearch.failures.errors import UsageError
from epsearch.loop.content import searchable
from epsearch.study.description import Study
from epsearch.study.hyperparameters import EPSILON
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from search_spaces.published.definition import strength_grids
from trainers import methods
from trainers.methods import Penalty
from trainers.methods.rules import RESERVOIR
from trainers.passes import examples_of_first, steps_of_task
from trainers.streams.base import TaskStream


def check_search(study: Search) -> None:
    """Checks by options alone that each searched hyperparameter can affect the scores. Raises UsageError.

    There must be enough tasks, and nothing that switches the hyperparameter off: equal scores have no best value.
    study: of a method of epsearch; what acts in another one is not known.
    """
    for name in study.space.names:
        _check_tasks(study, study.score_on, study.method, name, f"to search {name}")
        _check_switches(study, name)
    _check_optimizer(study)


def check_memory(study: MemoryStudy) -> None:
    """Checks that there are enough tasks to compare sizes of the memory. Raises UsageError."""
    for method in study.methods if len(study.sizes) > 1 else ():
        _check_tasks(study, "eval", method, "memory", "to compare sizes of the memory")


def check_sizes(study: MemoryStudy, streams: Mapping[str, TaskStream]) -> None:
    """Checks by the stream that no two sizes of the memory keep every example. Raises UsageError."""
    stream = streams["eval"]
    if len(study.sizes) < 2:
        return
    most = _most_of_a_class(stream, len(stream.tasks), study.seeds, study.sizes[-2])
    whole = [str(size) for size in study.sizes if most is not None and size >= most]
    if len(whole) > 1:
        raise UsageError(
            f"sizes must have at most one >= {most}, got {', '.join(whole)}: each keeps every example, as no task "
            f"shows more than {most} of a class"
        )


def check_tuning(study: Comparison) -> None:
    """Checks that there are enough tasks for tuning. Raises UsageError."""
    for method, grid in strength_grids().items() if study.tune else ():
        if method in study.methods and len(grid) > 1:
            _check_tasks(study, "cv", method, "strength", f"to tune the λ of {method}")


def check_on(study: Search, stream: TaskStream, tasks: int) -> None:
    """Checks searched values by the sizes of the stream that scores them. Raises UsageError.

    tasks: how many of its first ones do. A search is refused only where all of its values are too large to differ.
    """
    for name in () if study.foreign else study.space.names:
        if name not in LIMITS:
            continue
        limited, limit_of = LIMITS[name]
        limit = limit_of(study, stream, tasks)
        low = _values(study, limited)[0]
        if limit is None or low <= limit[0]:
            continue
        most, reason = limit
        if limited == name:
            raise UsageError(f"search must try a {name} <= {most}, got at least {low:g}: {reason}")
        raise UsageError(f"{limited.replace('_', '-')} must be <= {most} to search {name}, got {low:g}: {reason}")


def _check_tasks(study: Study, phase: str, method: str, name: str, purpose: str) -> None:
    """Raises UsageError where a phase has fewer tasks than a hyperparameter needs; purpose: for the message."""
    tasks, least = len(study.stream_tasks(phase)), methods.method(method).tasks_needed(name)
    if tasks >= least:
        return
    least_option = f"cv-tasks must be >= {least}" if phase == "cv" else f"tasks must be >= cv-tasks + {least}"
    got = f"{study.cv_tasks}" if phase == "cv" else f"{study.tasks} and {study.cv_tasks}"
    earlier = "an earlier task" if least == 2 else f"{least - 1} earlier tasks"
    raise UsageError(f"{least_option} {purpose}, got {got}: without {earlier} {name} changes nothing in {method}")


def _check_switches(study: Search, name: str) -> None:
    """Raises UsageError where ε = 0 or λ = 0 turns the method into one without the hyperparameter."""
    method = methods.method(study.method)
    other = method.at_zero
    if other and name != EPSILON and name not in searchable(other) and not _values(study, EPSILON)[1]:
        raise UsageError(
            f"epsilon must be > 0 to search {name}, got 0: that is {methods.method(other).title}, which has no {name}"
        )
    of_penalty = isinstance(method.rule, Penalty) and name in method.names and name != "strength"
    if of_penalty and _values(study, "strength")[1] == 0:
        raise UsageError(f"strength must be > 0 to search {name}, got 0: a penalty of weight 0 changes nothing")
    if name == "temperature" and _values(study, "distillation")[1] == 0:
        raise UsageError("distillation must be > 0 to search temperature, got 0: no teacher is asked")


def _check_optimizer(study: Search) -> None:
    """Raises UsageError where a tried optimizer does not fit the largest momentum or weight decay, or the method."""
    largest = {name: _values(study, name)[1] for name in ("momentum", "weight_decay")}
    tried = [
        choices
        for parameter in study.space.parameters
        if parameter.name == "optimizer" and (choices := parameter.choices)
    ]
    for optimizer in tried[0] if tried else (study.value("optimizer"),):
        values = study.hyperparameters.but(optimizer=optimizer, **largest)
        if fault := methods.optimizer_fault(methods.method(study.method), values):
            raise UsageError(fault)


Limit = tuple[int, str]
"""(the largest value with an effect, why larger values have the same)."""


def _of_memory(study: Search, stream: TaskStream, tasks: int) -> Limit | None:
    """Returns the limit of a memory: a class's examples in a task; of a reservoir, all examples."""
    if _is_reservoir(study):
        places = stream.classes * len(stream.tasks)
        total = max(sum(_examples_of_steps(study, stream, tasks, seed)) for seed in study.seeds)
        return -(-total // places) - 1, f"more keep all {total} examples of the stream"
    most = _most_of_a_class(stream, tasks, study.seeds, _values(study, "memory")[0])
    if most is None:
        return None
    return most - 1, f"more keep every example, as no task shows more than {most} of a class"


def _of_memory_batch(study: Search, stream: TaskStream, tasks: int) -> Limit | None:
    """Returns the limit of a reference batch, drawn without replacement: the largest memory."""
    place, low = int(_values(study, "memory")[1]), _values(study, "memory_batch")[0]
    if _is_reservoir(study):
        places = place * stream.classes * len(stream.tasks)
        stored = max(min(places, sum(_examples_of_steps(study, stream, tasks, seed))) for seed in study.seeds)
    elif low < sum(min(place, size) for size in _sizes(stream, tasks, study.seeds[0])[:-1]):  # were all of one class
        return None
    else:
        sizes = ((np.minimum(counts, place).sum() for counts in _counts(stream, tasks, seed)) for seed in study.seeds)
        stored = max(int(sum(of_tasks)) for of_tasks in sizes)
    return stored - 1, f"more draw the whole memory, which holds at most {stored}"


def _of_fisher(study: Search, stream: TaskStream, tasks: int) -> Limit | None:
    """Returns the limit of steps between estimates of the Fisher information: the steps of a task."""
    rule = methods.method(study.method).rule
    if not isinstance(rule, Penalty) or rule.refresh is None:
        return None
    examples = max(max(_sizes(stream, tasks, seed)[:-1]) for seed in study.seeds)
    most = study.hyperparameters.but(
        batch_size=int(_values(study, "batch_size")[0]), epochs=int(_values(study, "epochs")[1])
    )
    steps = steps_of_task(examples, most)
    return steps, f"a task has at most {steps} steps, so that {study.method} would estimate nothing"


# Searched hyperparameter -> (the one with a limit, its limit).
LIMITS: dict[str, tuple[str, Callable[[Search, TaskStream, int], Limit | None]]] = {
    "memory": ("memory", _of_memory),
    "memory_batch": ("memory_batch", _of_memory_batch),
    "fisher_every": ("fisher_every", _of_fisher),
    "strength": ("fisher_every", _of_fisher),  # the weight of an estimate has no effect without one
}


def _is_reservoir(study: Search) -> bool:
    """Returns whether the memory is a reservoir sample over all classes."""
    return methods.method(study.method).memory == RESERVOIR


def _counts(stream: TaskStream, tasks: int, seed: int) -> list[NDArray[np.int64]]:
    """Returns training examples per class, an array per first task but the last, whose memory is never used.

    Classes without an example are left out.
    """
    labels_of_tasks = (stream.train(seed, task, stream.order(seed, task)).labels for task in stream.tasks[: tasks - 1])
    return [np.unique(labels, return_counts=True)[1] for labels in labels_of_tasks]


def _most_of_a_class(stream: TaskStream, tasks: int, seeds: Sequence[int], size: float) -> int | None:
    """Returns the largest number of training examples of a class in one of the first tasks but the last.

    The memory of the last task is never used. None where some class surely has more examples than `size`.
    """
    largest = max(max(_sizes(stream, tasks, seed)[:-1]) for seed in seeds)
    if size * stream.classes < largest:  # no need to count
        return None
    return max(int(counts.max()) for seed in seeds for counts in _counts(stream, tasks, seed))


def _sizes(stream: TaskStream, tasks: int, seed: int) -> list[int]:
    """Returns the number of training examples of each of the first tasks."""
    return [stream.size(seed, task) for task in stream.tasks[:tasks]]


def _examples_of_steps(study: Search, stream: TaskStream, tasks: int, seed: int) -> list[int]:
    """Returns the number of different examples that the steps of each task show at most."""
    most = study.hyperparameters.but(batch_size=int(_values(study, "batch_size")[1]))
    return [examples_of_first(size, most) for size in _sizes(stream, tasks, seed)]


def _values(study: Search, name: str) -> tuple[float, float]:
    """Returns the smallest and the largest value of a hyperparameter in the search, or the study's own."""
    searched = [
        (parameter.low, parameter.high, *parameter.choices)
        for parameter in study.space.parameters
        if parameter.name == name
    ]
    numbers = [float(value) for values in searched or [(study.value(name),)] for value in values if value is not None]
    return min(numbers), max(numbers)
