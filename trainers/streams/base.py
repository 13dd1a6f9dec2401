"""What a stream of tasks offers to the training loop."""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


class DataError(Exception):
    """Data that cannot be had or read; the message is one line for the user."""


class Examples(NamedTuple):
    """inputs [n, P] as stored bytes, labels [n] in 0…classes−1."""

    inputs: Pixels
    labels: Labels


@dataclass(frozen=True)
class Images:
    """A labelled image set. Pixels stay bytes; networks see `byte / largest`, in [0, 1]."""

    train: Examples
    test: Examples
    classes: int
    largest: float

    def __post_init__(self) -> None:
        for part, (inputs, labels) in (("training", self.train), ("test", self.test)):
            if len(inputs) != len(labels):
                raise DataError(f"the {part} set has {len(inputs)} images but {len(labels)} labels")
            if len(labels) == 0 or labels.min() < 0 or labels.max() >= self.classes:
                raise DataError(f"the {part} labels must lie in 0…{self.classes - 1} and not be empty")

    def fingerprint(self) -> str:
        """A hash of every pixel and label: results belong to these data, wherever they were read from."""
        digest = hashlib.sha256(repr((self.classes, self.largest, self.train.inputs.shape)).encode())
        for array in (*self.train, *self.test):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]


class TaskStream(Protocol):
    """Tasks numbered as in the whole stream, so that D^CV and D^EV never share a permutation or a draw."""

    @property
    def tasks(self) -> range: ...

    @property
    def inputs(self) -> int: ...

    @property
    def classes(self) -> int: ...

    @property
    def largest(self) -> float: ...

    @property
    def density(self) -> float:
        """Share of pixels that are not zero, from a sample."""
        ...

    @property
    def available(self) -> int:
        """Training examples that a task has."""
        ...

    @property
    def examples(self) -> int:
        """Training examples that a task shows."""
        ...

    def train(self, seed: int, task: int, order: NDArray[np.int64]) -> Examples:
        """The task's training examples at the positions `order`."""
        ...

    def test(self, seed: int, task: int) -> Examples:
        """The task's whole test set."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-able facts that, with a seed, determine every example of the stream."""
        ...
