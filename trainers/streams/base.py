"""The interface of streams of tasks."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trainers.streams.hashes import hash_columns

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


LABEL = 1  # byte


class DataError(Exception):
    """Missing or unreadable data; the message is one line for the user.

    classes: of the images, where the tasks need more; else None.
    """

    def __init__(self, message: str, classes: int | None = None) -> None:
        super().__init__(message)
        self.classes = classes


class Examples(NamedTuple):
    """Examples as they are stored."""

    inputs: NDArray[Any]
    """[n, …], bytes of pixels, or positions in a set of images."""
    labels: Labels
    """[n]."""


@dataclass(frozen=True)
class Images:
    """A labelled image set, of which streams of pixels are made.

    Raises DataError where there are not as many labels as images, a label is no class, or `largest` divides nothing.
    """

    train: Examples
    """The training set; pixels stay bytes."""
    test: Examples
    """The test set, alike."""
    classes: int
    """Labels lie in 0…classes−1."""
    largest: float
    """What bytes are divided by: networks see `byte / largest`, in [0, 1]."""

    def __post_init__(self) -> None:
        # Pixels that are not finite would let every member diverge, which looks like a learning rate that is too large.
        if not 0 < self.largest < math.inf:
            raise DataError(f"largest, by which pixels are divided, must be a finite number > 0, got {self.largest}")
        for part, (inputs, labels) in (("training", self.train), ("test", self.test)):
            if len(inputs) != len(labels):
                raise DataError(f"the {part} set has {len(inputs)} images but {len(labels)} labels")
            if len(labels) == 0:
                raise DataError(f"the {part} set is empty")
            if labels.min() < 0 or labels.max() >= self.classes:
                between = f"{labels.min()}…{labels.max()}"
                raise DataError(f"the {part} labels must lie in 0…{self.classes - 1}, got {between}")

    @cached_property
    def alike(self) -> NDArray[np.int64]:
        """[P], for each pixel the first one that equals it in every image, as do pixels that are always black.

        Two permutations that differ in such pixels alone show the same images, which `disjoint` has to know.
        """
        columns = hash_columns((self.train.inputs, self.test.inputs))
        _, first, group = np.unique(columns, return_index=True, return_inverse=True)
        return np.asarray(first[group])

    def fingerprint(self) -> str:
        """Returns a hash of every pixel and label: results belong to these data, wherever they were read from.

        16 hexadecimal digits of SHA-256, a part of content keys.
        """
        # The shape of the pixels, too: the same bytes in rows of another length are other images.
        digest = hashlib.sha256(repr((self.classes, self.largest, self.train.inputs.shape)).encode())
        for array in (*self.train, *self.test):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]


class TaskStream(Protocol):
    """Tasks numbered as in the whole stream, so that D^CV and D^EV never share a permutation, a class or a draw.

    What a method returns follows from its arguments alone: workers ask for seeds and tasks in any order, and again.
    One whose outputs belong to tasks says so by `heads(seed)`, [outputs]: the task of each output, −1 where it is none
    of this stream's. `scenario`, one of `trainers.scenarios`, then says which of them compete; by default "task".
    """

    @property
    def tasks(self) -> Sequence[int]:
        """The numbers of its tasks, as in the whole stream, in the order in which they are trained."""

    @property
    def classes(self) -> int:
        """Number of classes of one task, each of which has its quota in the memory."""

    @property
    def outputs(self) -> int:
        """Number of the network's outputs; labels lie in 0…outputs−1."""

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training examples that the task shows, at least 1."""

    def order(self, seed: int, task: int) -> Labels:
        """Returns positions [size] of the training examples that the task shows, in the order in which it does.

        They count among all that the task could show, and each is there once.
        """

    def train(self, seed: int, task: int, order: Labels) -> Examples:
        """Returns the task's training examples at the positions `order`, a row for each."""

    def test(self, seed: int, task: int) -> Examples:
        """Returns the task's whole test set."""

    def room(self, rows: int) -> NDArray[Any]:
        """Returns zeros for the inputs of so many examples, in the shape and type of `Examples.inputs`.

        The pool of memory and current task is one such matrix, made once and filled row by row.
        """

    def describe(self) -> dict[str, Any]:
        """Returns a JSON description that, with a seed, determines every example of the stream.

        It is part of the content key of every result. `examples_per_task`, a number, is for estimates of time.
        """


class PixelStream(TaskStream, Protocol):
    """Inputs are bytes [n, P]: what a multilayer perceptron takes. Networks see `byte / largest`."""

    @property
    def inputs(self) -> int:
        """P, the number of pixels of an example."""

    @property
    def largest(self) -> float:
        """The divisor of bytes."""

    @property
    def density(self) -> float:
        """Share of pixels that are not zero, in 0…1, from a sample: sparse products pay where it is low."""


class ImageStream(TaskStream, Protocol):
    """Inputs are positions [n] in one set of images, `pixels`: what a residual network takes.

    Networks see `pixels / 255 − mean`. One that keeps hashes of its images may have them as `hashes`, and difference
    hashes as `differences`: `PixelHashes`, which else are made when they are needed.
    """

    @property
    def pixels(self) -> Pixels:
        """[N, H, W, 3], bytes, perhaps mapped from a file."""

    @property
    def mean(self) -> NDArray[np.float32]:
        """The mean that is subtracted from `pixels / 255`; broadcastable to [H, W, 3]."""

    @property
    def attributes(self) -> NDArray[np.float32] | None:
        """[outputs, A], of each output's class, for a joint embedding, else None."""

    @property
    def balanced(self) -> bool:
        """True if accuracy on a task is the mean of its classes' accuracies."""

    def heads(self, seed: int) -> Labels:
        """Returns [outputs], the task that each output belongs to, −1 where it is none of this stream's."""


def bytes_of_example(stream: TaskStream) -> int:
    """Returns the bytes of an example as it is stored, with a byte for its label."""
    pixels = getattr(stream, "pixels", None)  # of images, whose rows in a pool are their numbers
    size = stream.room(1).nbytes if pixels is None else pixels[0].nbytes
    return int(size) + LABEL
