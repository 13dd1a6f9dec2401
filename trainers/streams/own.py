"""Streams that users write themselves: module:factory, where factory(tasks, examples_per_task) makes the stream."""

import json
import sys
from collections.abc import Mapping
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
    factory: Any = getattr(found, name, None)
    if factory is None:
        raise DataError(f"module {module!r} has no {name!r}; dataset takes module:factory")
    with blamed(f"{dataset}({tasks}, {examples_per_task}) failed with", known, DataError):
        made = factory(tasks, examples_per_task)
    stream = OwnStream(made, dataset, known, DataError)
    _check(dataset, made, stream)
    return cast(TaskStream, stream)


class OwnStream(Foreign):
    """A user's stream. What it raises is a ForeignError, and its source is a part of what describes it."""

    def describe(self) -> dict[str, Any]:
        """What the stream says of itself, and the hashes of the files that it is made of."""
        described = self.__getattr__("describe")()
        try:
            facts = json.loads(json.dumps(described))
            sound = isinstance(facts["examples_per_task"], (int, float)) and SOURCE not in facts
        except (TypeError, ValueError, KeyError, RecursionError):
            sound = False
        if not sound:
            raise ForeignError(
                f"describe() of {self._what} must return a dict that JSON can hold, with a number examples_per_task "
                f"and without {SOURCE}, which names the stream's files; got {' '.join(repr(described).split())}"
            )
        return {**described, SOURCE: dict(self._source.hashes)}


def _check(dataset: str, made: Any, stream: OwnStream) -> None:
    wanted = (*VALUES, *METHODS)
    missing = [name for name in wanted if not hasattr(stream, name)]
    if not any(all(hasattr(stream, name) for name in kind) for kind in KINDS):
        missing.append(" or ".join("+".join(kind) for kind in KINDS))
    if missing:
        raise DataError(f"{dataset} made a {type(made).__name__}, which lacks {', '.join(missing)}")
