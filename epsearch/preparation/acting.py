"""What cannot differ: a hyperparameter that cannot act on what a search sees is refused before anything is trained."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

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
from trainers.streams.base import TaskStream


def check_search(study: Search) -> None:
    """By the options alone: there must be tasks enough, and nothing that switches off what is searched.

    Scores that are equal bit for bit have no best value, and a report could but say so after hours of training. Raises
    UsageError.
    """
    for name in () if study.foreign else study.space.names:
        _check_tasks(study, study.score_on, study.method, name, f"to search {name}")
        _check_switches(study, name)


def check_memory(study: MemoryStudy) -> None:
    """There must be tasks enough for a memory to act, where sizes of it are compared. Raises UsageError."""
    for method in study.methods if len(study.sizes) > 1 else ():
        _check_tasks(study, "eval", method, "memory", "to compare sizes of the memory")


def check_tuning(study: Comparison) -> None:
    """There must be tasks enough for what is tuned. Raises UsageError."""
    for method, grid in strength_grids().items() if study.tune else ():
        if method in study.methods and len(grid) > 1:
            _check_tasks(study, "cv", method, "strength", f"to tune the λ of {method}")


def check_on(study: Search, streams: Mapping[str, TaskStream]) -> None:
    """By the sizes of the stream whose scores choose.

    streams: those of D^CV ("cv") and D^EV ("eval"). A search is refused only where all of its values lie beyond what
    can matter: one that acts makes a difference. Raises UsageError.
    """
    for name in () if study.foreign else study.space.names:
        limit = LIMITS[name](study, streams[study.score_on]) if name in LIMITS else None
        if limit is None or (low := _values(study, limit.name)[0]) <= limit.most:
            continue
        if limit.name == name:
            raise UsageError(f"search must try a {name} <= {limit.most}, got at least {low:g}: {limit.reason}")
        option = limit.name.replace("_", "-")
        raise UsageError(f"{option} must be <= {limit.most} to search {name}, got {low:g}: {limit.reason}")


def _check_tasks(study: Study, phase: str, method: str, name: str, purpose: str) -> None:
    """The phase must have as many tasks as a hyperparameter of the method needs to act; purpose: of the line."""
    tasks, least = len(study.stream_tasks(phase)), methods.method(method).tasks_needed(name)
    if tasks >= least:
        return
    least_option = f"cv-tasks must be >= {least}" if phase == "cv" else f"tasks must be >= cv-tasks + {least}"
    got = f"{study.cv_tasks}" if phase == "cv" else f"{study.tasks} and {study.cv_tasks}"
    earlier = "an earlier task" if least == 2 else f"{least - 1} earlier tasks"
    raise UsageError(f"{least_option} {purpose}, got {got}: without {earlier} {name} changes nothing in {method}")


def _check_switches(study: Search, name: str) -> None:
    """A method may be another one at ε = 0 or λ = 0, which knows nothing of what is searched."""
    method = methods.method(study.method)
    other = method.at_zero
    if other and name != EPSILON and name not in searchable(other) and not _values(study, EPSILON)[1]:
        raise UsageError(
            f"epsilon must be > 0 to search {name}, got 0: that is {methods.method(other).title}, which has no {name}"
        )
    of_penalty = isinstance(method.rule, Penalty) and name in method.names and name != "strength"
    if of_penalty and _values(study, "strength")[1] == 0:
        raise UsageError(f"strength must be > 0 to search {name}, got 0: a penalty of weight 0 changes nothing")


class _Limit(NamedTuple):
    """Up to which value a hyperparameter acts; larger ones are all alike."""

    name: str
    """Of the hyperparameter."""
    most: int
    """The largest value that acts."""
    reason: str
    """Why larger ones are alike, in words."""


def _of_memory(study: Search, stream: TaskStream) -> _Limit | None:
    """Of each class no more can be kept than a task shows; of a reservoir, which keeps all classes together, in all."""
    if _is_reservoir(study):
        places = stream.classes * len(stream.tasks)
        total = max(sum(_sizes(stream, seed)) for seed in study.seeds)
        return _Limit("memory", -(-total // places) - 1, f"more keep all {total} examples of the stream")
    # What is kept of the last task is never drawn: no task comes after it.
    largest = max(max(_sizes(stream, seed)[:-1]) for seed in study.seeds)
    if _values(study, "memory")[0] * stream.classes < largest:  # so one class at least has more: no need to count
        return None
    most = max(int(counts.max()) for seed in study.seeds for counts in _counts(stream, seed))
    return _Limit("memory", most - 1, f"more keep every example, as no task shows more than {most} of a class")


def _of_memory_batch(study: Search, stream: TaskStream) -> _Limit | None:
    """A reference batch is drawn without replacement: no more can be drawn than the largest memory ever holds."""
    place, low = int(_values(study, "memory")[1]), _values(study, "memory_batch")[0]
    if _is_reservoir(study):
        places = place * stream.classes * len(stream.tasks)
        stored = max(min(places, sum(_sizes(stream, seed))) for seed in study.seeds)
    elif low < sum(min(place, size) for size in _sizes(stream, study.seeds[0])[:-1]):  # were all of one class
        return None
    else:
        kept = ((np.minimum(counts, place).sum() for counts in _counts(stream, seed)) for seed in study.seeds)
        stored = max(int(sum(of_tasks)) for of_tasks in kept)
    return _Limit("memory_batch", stored - 1, f"more draw the whole memory, which holds at most {stored}")


def _of_fisher(study: Search, stream: TaskStream) -> _Limit | None:
    """What rests on an estimate that is never made has no effect: the estimate's rhythm, and λ."""
    rule = methods.method(study.method).rule
    if not isinstance(rule, Penalty) or rule.refresh is None:
        return None
    examples = max(max(_sizes(stream, seed)[:-1]) for seed in study.seeds)
    steps = -(-examples // int(_values(study, "batch_size")[0]))
    # With a rhythm of more steps than a task has, no estimate is ever made.
    return _Limit(
        "fisher_every", steps, f"a task has at most {steps} steps, so that {study.method} would estimate nothing"
    )


LIMITS: dict[str, Callable[[Search, TaskStream], _Limit | None]] = {
    "memory": _of_memory,
    "memory_batch": _of_memory_batch,
    "fisher_every": _of_fisher,
    "strength": _of_fisher,  # the weight of an estimate: of none, it weighs nothing
}


def _is_reservoir(study: Search) -> bool:
    """Whether the memory keeps a sample of all examples seen, whatever their class."""
    return methods.method(study.method).memory == RESERVOIR


def _counts(stream: TaskStream, seed: int) -> list[NDArray[np.int64]]:
    """Training examples of each class, of each task that is followed by another: the last one's memory is never used.

    One array for each task; classes without an example are left out.
    """
    shown = (stream.train(seed, task, stream.order(seed, task)).labels for task in stream.tasks[:-1])
    return [np.unique(labels, return_counts=True)[1] for labels in shown]


def _sizes(stream: TaskStream, seed: int) -> list[int]:
    """Training examples of each task."""
    return [stream.size(seed, task) for task in stream.tasks]


def _values(study: Search, name: str) -> tuple[float, float]:
    """The smallest and the largest number that the search tries of a hyperparameter, or the study's own."""
    searched = [(one.low, one.high, *one.choices) for one in study.space.parameters if one.name == name]
    tried = [float(value) for values in searched or [(study.value(name),)] for value in values if value is not None]
    return min(tried), max(tried)
