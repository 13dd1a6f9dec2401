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


def chosen_scenario(wanted: str | None, possible: Sequence[str], kind: str) -> str:
    """Returns the wanted scenario, or the first possible one. Raises DataError for an impossible one."""
    if wanted is None:
        return possible[0]
    if wanted not in possible:
        raise DataError(f"scenario of {kind} must be {' or '.join(possible)}, got {wanted!r}")
    return wanted


def check_scenario(method: Method, stream: TaskStream) -> None:
    """Raises ValueError, in one line, where a method has no purpose in the scenario of a stream."""
    if (scenario := scenario_of(stream)) not in method.scenarios:
        allowed = " or ".join(method.scenarios)
        raise ValueError(f"{method.title} has no purpose in the scenario {scenario}; it is for {allowed}")


def competing(stream: TaskStream, seed: int, newest: int) -> NDArray[np.bool_] | None:
    """Returns [outputs, outputs], True where the output of a column competes on examples with the label of a row.

    None where all outputs always do. newest: position in the stream of the newest task, counted from 0.
    """
    scenario = scenario_of(stream)
    if scenario == DOMAIN:
        return None
    heads = cast(ImageStream, stream).heads(seed)
    if scenario == TASK:
        return np.asarray(heads[:, None] == heads)
    seen = len(stream.tasks) if getattr(stream, "mixed", False) else newest + 1
    return np.tile(np.isin(heads, stream.tasks[:seen]), (len(heads), 1))
