"""Streams that users write themselves: module:factory, where factory(tasks, examples_per_task) makes the stream."""

import json
import operator
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr
from typing import Any, cast

import numpy as np

from trainers.plugins.calls import ForeignError, blamed, load
from trainers.plugins.source import SOURCE, Source
from trainers.streams.base import DataError, Examples, TaskStream

VALUES = ("tasks", "classes", "outputs")
KINDS = (("inputs", "largest", "density"), ("pixels", "mean", "attributes", "balanced", "heads"))


def open_own(
    dataset: str,
    tasks: range,
    examples_per_task: int | None,
    beside: Path,
    source: Mapping[str, str] | None = None,
) -> TaskStream:
    """Returns a stream of the user's own: what module:factory returns for these tasks.

    The module is looked up on sys.path and in the folder `beside`; source: as for `plugins.calls.load`.

    Raises DataError where the factory is not there, or what it makes is no stream; ForeignError where the module cannot
    be imported or the factory fails.
    """
    module, _, name = dataset.partition(":")
    if str(beside) not in sys.path:
        sys.path.append(str(beside))
    imported, module_source = load(module, f"dataset {dataset!r}", source)
    with blamed(f"{dataset}({tasks}, {examples_per_task}) failed with", module_source, DataError):
        factory = getattr(imported, name, None)
        if factory is None:
            raise DataError(f"module {module!r} has no {name!r}; dataset takes module:factory")
        made = factory(tasks, examples_per_task)
    stream = _OwnStream(made, dataset, module_source)
    _check(dataset, made, stream)
    return cast(TaskStream, stream)


class _OwnStream:
    """A user's stream as it is, but that its source is a part of what describes it.

    What its attributes and methods raise is a ForeignError, or a DataError, whose message is one line for the user
    already; and so is what it returns where nothing could be trained on it.
    """

    def __init__(self, made: Any, dataset: str, source: Source) -> None:
        self._made, self._dataset, self._source = made, dataset, source

    def __getattr__(self, name: str) -> Any:
        """Returns the object's own attribute. Raises AttributeError where it has none of that name."""
        with blamed(f"{name} of {self._dataset} failed with", self._source, DataError, missing=name):
            value = getattr(self._made, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **more: Any) -> Any:
            with blamed(f"{name}() of {self._dataset} failed with", self._source, DataError):
                result = value(*arguments, **more)
            if name in PROMISES:
                words, check = PROMISES[name]
                if not _passes(check, self, arguments, result):
                    expected = words(self, arguments)
                    raise ForeignError(f"{name}() of {self._dataset} must return {expected}; got {_summary(result)}")
            return {**result, SOURCE: dict(self._source.hashes)} if name == "describe" else result

        return call


def _has_inputs(stream: _OwnStream, inputs: Any) -> bool:
    """Returns whether inputs have the type, width and range that the stream promises."""
    # Compiled code reads rows of this width, and tables and sets of images at these places, without a look at bounds.
    pixels = getattr(stream, "pixels", None)
    if pixels is None:
        return bool(inputs.dtype == np.uint8 and inputs.shape[1:] == (stream.inputs,))
    return bool(inputs.dtype.kind in "iu" and inputs.ndim == 1 and inputs.min() >= 0 and inputs.max() < len(pixels))


def _inputs(stream: _OwnStream, rows: object) -> str:
    """Returns the requirement of `_has_inputs`, in words."""
    pixels = getattr(stream, "pixels", None)
    return f"[{rows}, {stream.inputs}] of uint8" if pixels is None else f"[{rows}] of integers in 0…{len(pixels) - 1}"


def _are_examples(stream: _OwnStream, result: Any, rows: int) -> bool:
    """Returns whether these are so many examples with labels of the stream."""
    # A label beyond the outputs would read, in compiled code, beyond an array.
    inputs, labels = result.inputs, result.labels
    return bool(
        isinstance(result, Examples)
        and labels.shape == (rows,)
        and labels.dtype.kind in "iu"
        and labels.min() >= 0
        and labels.max() < stream.outputs
        and len(inputs) == rows
        and _has_inputs(stream, inputs)
    )


def _examples(stream: _OwnStream, rows: object) -> str:
    """Returns the requirement of `_are_examples`, in words."""
    return f"Examples: inputs {_inputs(stream, rows)} and labels [{rows}] of integers in 0…{stream.outputs - 1}"


def _is_room(stream: _OwnStream, result: Any, rows: int) -> bool:
    """Returns whether so many inputs of the stream could be written there."""
    # Zeros say nothing of the positions that are to come: their type must hold the largest one.
    pixels = getattr(stream, "pixels", None)
    holds = pixels is None or np.iinfo(result.dtype).max >= len(pixels) - 1
    return bool(holds and len(result) == rows and _has_inputs(stream, result))


def _is_described(result: Any) -> bool:
    """Returns whether the ledger can keep it as a description. Raises what json and missing names do."""
    facts = json.loads(json.dumps(result))
    return isinstance(facts["examples_per_task"], (int, float)) and SOURCE not in facts


Words = Callable[[_OwnStream, tuple[Any, ...]], str]
Check = Callable[[_OwnStream, tuple[Any, ...], Any], bool]
PROMISES: dict[str, tuple[Words, Check]] = {
    "size": (lambda *_: "a number of examples >= 1", lambda stream, arguments, result: operator.index(result) >= 1),
    "order": (
        lambda stream, arguments: f"an array [{stream.size(*arguments)}] of positions, as many as size() says",
        lambda stream, arguments, result: result.shape == (stream.size(*arguments),) and result.dtype.kind in "iu",
    ),
    "train": (
        lambda stream, arguments: f"{_examples(stream, len(arguments[2]))}, a row for each position of the order",
        lambda stream, arguments, result: _are_examples(stream, result, len(arguments[2])),
    ),
    "test": (
        lambda stream, arguments: f"{_examples(stream, 'n')}, n >= 1",
        lambda stream, arguments, result: _are_examples(stream, result, len(result.labels)),
    ),
    "room": (
        lambda stream, arguments: f"zeros {_inputs(stream, arguments[0])}",
        lambda stream, arguments, result: _is_room(stream, result, arguments[0]),
    ),
    "describe": (
        lambda *_: (
            f"a dict that JSON can hold, with a number examples_per_task and without {SOURCE}, which is added to it"
        ),
        lambda stream, arguments, result: _is_described(result),
    ),
}
"""Method -> (words(stream, arguments), check(stream, arguments, result)) of its result, which is used as it is."""


def _passes(check: Check, stream: _OwnStream, arguments: tuple[Any, ...], result: Any) -> bool:
    try:
        return check(stream, arguments, result)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return False


def _summary(result: Any) -> str:
    """Returns a result in one line: type, shape and range of arrays."""
    if isinstance(result, Examples):
        return f"inputs {_summary(result.inputs)}, labels {_summary(result.labels)}"
    if not isinstance(result, np.ndarray):
        return " ".join(repr(result).split())
    spread = f" from {result.min()} to {result.max()}" if result.size and result.dtype.kind in "iuf" else ""
    return f"{result.dtype} {list(result.shape)}{spread}"


def _check(dataset: str, made: Any, stream: _OwnStream) -> None:
    """Raises DataError where something is lacking that every stream has, or its kind."""
    missing = [name for name in (*VALUES, *PROMISES) if not hasattr(stream, name)]
    if not any(all(hasattr(stream, name) for name in kind) for kind in KINDS):
        missing.append(" or ".join("+".join(kind) for kind in KINDS))
    if missing:
        raise DataError(f"{dataset} made a {type(made).__name__}, which lacks {', '.join(missing)}")
