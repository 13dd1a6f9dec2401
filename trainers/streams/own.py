"""Streams that users write themselves: module:factory, where factory(tasks, examples_per_task) makes the stream."""

import importlib
import sys
from pathlib import Path
from typing import Any

from trainers.streams.base import DataError, TaskStream

METHODS = ("size", "order", "train", "test", "room", "describe")
VALUES = ("tasks", "classes", "outputs")
KINDS = (("inputs", "largest", "density"), ("pixels", "mean", "attributes", "balanced", "heads"))


def open_own(dataset: str, tasks: range, examples_per_task: int | None, beside: Path) -> TaskStream:
    """The module is looked up on sys.path and in the folder `beside`.

    Raises DataError where the module or the factory is not there, or what it makes is no stream.
    """
    module, _, name = dataset.partition(":")
    if str(beside) not in sys.path:
        sys.path.append(str(beside))
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a user's own code may raise anything
        raise DataError(f"cannot import {module!r} of dataset {dataset!r}: {type(error).__name__}: {error}") from error
    factory: Any = getattr(found, name, None)
    if factory is None:
        raise DataError(f"module {module!r} has no {name!r}; dataset takes module:factory")
    try:
        stream = factory(tasks, examples_per_task)
    except DataError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise DataError(f"{dataset}({tasks}, {examples_per_task}) failed with {message}") from error
    _check(dataset, stream)
    checked: TaskStream = stream
    return checked


def _check(dataset: str, stream: Any) -> None:
    wanted = (*VALUES, *METHODS)
    missing = [name for name in wanted if not hasattr(stream, name)]
    if not any(all(hasattr(stream, name) for name in kind) for kind in KINDS):
        missing.append(" or ".join("+".join(kind) for kind in KINDS))
    if missing:
        raise DataError(f"{dataset} made a {type(stream).__name__}, which lacks {', '.join(missing)}")
