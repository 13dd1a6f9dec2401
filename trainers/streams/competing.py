"""The scenario of a stream, and the outputs that compete on its examples, in training and in tests."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trainers.methods.rules import Method
from trainers.scenarios import DOMAIN, TASK
from trainers.streams.base import DataError, ImageStream, TaskStream


def scenario_of(stream: TaskStream) -> str:
    """Returns the scenario of a stream; one that does not say so is task-incremental if its outputs have tasks."""
    return str(getattr(stream, "scenario", TASK if hasattr(stream, "heads") else DOMAIN))


def chosen_scenario(scenario: str | None, possible: Sequence[str], kind: str) -> str:
    """Returns the wanted scenario, or the first possible one. Raises DataError for an impossible one."""
    if scenario is None:
        return possible[0]
    if scenario not in possible:
        raise DataError(f"scenario of {kind} must be {' or '.join(possible)}, got {scenario!r}")
    return scenario


def check_scenario(method: Method, stream: TaskStream) -> None:
    """Raises ValueError, in one line, where a method has no purpose in the scenario of a stream."""
    if (scenario := scenario_of(stream)) not in method.scenarios:
        allowed = " or ".join(method.scenarios)
        raise ValueError(f"{method.title} has no purpose in the scenario {scenario}; it is for {allowed}")


def distillation_outputs(stream: TaskStream, seed: int, newest: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns (outputs of a teacher, of the network that it is compared with), each [groups, outputs].

    The teacher knows the tasks before `newest`, a position; each group is softened apart, and there are none in the
    first task. Task-incremental: a group for each earlier task; domain-incremental: all outputs. Class-incremental: the
    classes of earlier tasks, beside those of all classes so far, of which a teacher gives the newest no probability.
    """
    scenario, tasks, groups = scenario_of(stream), stream.tasks, min(newest, 1)
    if scenario == DOMAIN:
        everything = np.ones((groups, stream.outputs), dtype=np.bool_)
        return everything, everything
    heads = cast(ImageStream, stream).heads(seed)
    if scenario == TASK:
        apart = heads == np.asarray(tasks[:newest])[:, None]
        return apart, apart
    earlier, all_so_far = (np.isin(heads, tasks[:count])[None] for count in (newest, newest + 1))
    return earlier[:groups], all_so_far[:groups]


def competing_outputs(stream: TaskStream, seed: int, newest: int) -> NDArray[np.bool_] | None:
    """Returns [outputs, outputs], True where the output of a column competes on examples with the label of a row.

    None where all outputs always do. newest: position in the stream of the newest task, counted from 0.
    """
    scenario = scenario_of(stream)
    if scenario == DOMAIN:
        return None
    heads = cast(ImageStream, stream).heads(seed)
    if scenario == TASK:
        return np.asarray(heads[:, None] == heads)
    count = len(stream.tasks) if getattr(stream, "mixed", False) else newest + 1
    return np.tile(np.isin(heads, stream.tasks[:count]), (len(heads), 1))
