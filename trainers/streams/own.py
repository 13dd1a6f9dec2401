"""Streams that users write themselves: module:factory, where factory(tasks, examples_per_task) makes the stream."""

import json
import operator
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr
from typing import Any, cast

from trainers.foreign import Foreign, ForeignError, blamed, load
from trainers.streams.base import DataError, TaskStream

METHODS = ("size", "order", "train", "test", "room", "describe")
VALUES = ("tasks", "classes", "outputs")
KINDS = (("inputs", "largest", "density"), ("pixels", "mean", "attributes", "balanced", "heads"))
SOURCE = "source_files"  # in descriptions: hashes of the files that the stream is made of


def open_own(
    dataset: str,
    tasks: range,
    examples_per_task: int | None,
    beside: Path,
    source: Mapping[str, str] | None = None,
) -> TaskStream:
    """The module is looked up on sys.path and in the folder `beside`; source: as for `foreign.load`.

    Raises DataError where the factory is not there, or what it makes is no stream; ForeignError where the module cannot
    be imported or the factory fails.
    """
    module, _, name = dataset.partition(":")
    if str(beside) not in sys.path:
        sys.path.append(str(beside))
    found, known = load(module, f"dataset {dataset!r}", source)
    with blamed(f"{dataset}({tasks}, {examples_per_task}) failed with", known, DataError):
        factory = getattr(found, name, None)
        if factory is None:
            raise DataError(f"module {module!r} has no {name!r}; dataset takes module:factory")
        made = factory(tasks, examples_per_task)
    stream = OwnStream(made, dataset, known, DataError)
    _check(dataset, made, stream)
    return cast(TaskStream, stream)


class OwnStream(Foreign):
    """A user's stream. What it raises is a ForeignError, and so is what it returns where nothing could be trained on
    it; its source is a part of what describes it.
    """

    def _guarded(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        guarded = super()._guarded(name, method)

        def call(*given: Any, **more: Any) -> Any:
            found = guarded(*given, **more)
            if name in PROMISES and not _kept(PROMISES[name][1], found, self):
                got = " ".join(repr(found).split())
                raise ForeignError(f"{name}() of {self._what} must return {PROMISES[name][0]}; got {got}")
            return {**found, SOURCE: dict(self._source.hashes)} if name == "describe" else found

        return call


def _is_described(found: Any, stream: OwnStream) -> bool:
    facts = json.loads(json.dumps(found))
    return isinstance(facts["examples_per_task"], (int, float)) and SOURCE not in facts


def _are_examples(found: Any, stream: OwnStream) -> bool:
    # A label beyond the outputs would read, in compiled code, beyond an array.
    inputs, labels = found.inputs, found.labels
    fits = labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < stream.outputs
    return bool(fits and labels.shape == (len(inputs),))


def _is_order(found: Any, stream: OwnStream) -> bool:
    return bool(found.ndim == 1 and len(found) and found.dtype.kind in "iu")


# Of a method: what it must return, in words, and whether it does.
EXAMPLES = "Examples: inputs [n, …] and labels [n], integers in 0…outputs−1, none of them empty"
PROMISES: dict[str, tuple[str, Callable[[Any, OwnStream], bool]]] = {
    "size": ("a number of examples >= 1", lambda found, _: operator.index(found) >= 1),
    "order": ("an array [n] of positions, not empty", _is_order),
    "train": (EXAMPLES, _are_examples),
    "test": (EXAMPLES, _are_examples),
    "describe": (
        f"a dict that JSON can hold, with a number examples_per_task and without {SOURCE}, which is added to it",
        _is_described,
    ),
}


def _kept(promise: Callable[[Any, OwnStream], bool], found: Any, stream: OwnStream) -> bool:
    try:
        return promise(found, stream)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return False


def _check(dataset: str, made: Any, stream: OwnStream) -> None:
    wanted = (*VALUES, *METHODS)
    missing = [name for name in wanted if not hasattr(stream, name)]
    if not any(all(hasattr(stream, name) for name in kind) for kind in KINDS):
        missing.append(" or ".join("+".join(kind) for kind in KINDS))
    if missing:
        raise DataError(f"{dataset} made a {type(made).__name__}, which lacks {', '.join(missing)}")
