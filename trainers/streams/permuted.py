"""Tasks that differ by a fixed random permutation of the pixels."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.schedule import generator, training_order
from trainers.streams.base import DataError, Examples, Images
from trainers.streams.hashes import Hashes, hash_rows

DENSITY_SAMPLE = 1000  # images


class PermutedStream:
    """Every task, the first included, permutes the pixels of all images in its own uniformly random way.

    The labels are the same in every task: all share the classes and the outputs. Permutations differ between seeds and
    tasks. `available` is the number of training images, `examples` how many of them each task shows.

    Raises DataError where examples_per_task does not lie in 1…available; None shows all.
    """

    kind = "permuted pixels"

    def __init__(self, images: Images, tasks: range, examples_per_task: int | None = None) -> None:
        self.tasks, self._images = tasks, images
        self.inputs, self.largest = int(images.train.inputs.shape[1]), images.largest
        self.classes = self.outputs = images.classes
        self.available = len(images.train.labels)
        self.examples = self.available if examples_per_task is None else examples_per_task
        if not 1 <= self.examples <= self.available:
            raise DataError(
                f"examples-per-task must lie in 1…{self.available}, the size of the training set, got {self.examples}"
            )

    @cached_property
    def density(self) -> float:
        """Share of pixels that are not zero, from a sample."""
        return float(np.mean(self._images.train.inputs[:DENSITY_SAMPLE] != 0))

    def permutation(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns where each pixel [P] of the task comes from."""
        return generator(seed, "permutation", task).permutation(self.inputs)

    def size(self, seed: int, task: int) -> int:
        """Returns how many training examples the task shows: as many in every task."""
        return self.examples

    def order(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns positions of the training examples that the task shows, in its order."""
        return training_order(seed, task, self.available, self.examples)

    def train(self, seed: int, task: int, order: NDArray[np.int64]) -> Examples:
        """Returns the training examples at `order`, their pixels [n, P] permuted."""
        inputs, labels = self._images.train
        # Rows first: the other way round the whole training set would be copied.
        return Examples(inputs[order][:, self.permutation(seed, task)], labels[order])

    def test(self, seed: int, task: int) -> Examples:
        """Returns the whole test set, its pixels [n, P] permuted."""
        inputs, labels = self._images.test
        return Examples(inputs[:, self.permutation(seed, task)], labels)

    def room(self, rows: int) -> NDArray[np.uint8]:
        """Returns zeros [rows, P] for bytes of pixels."""
        return np.zeros((rows, self.inputs), dtype=np.uint8)

    def permutation_hash(self, seed: int, task: int) -> Hashes:
        """Returns [1], of what the task's permutation does to the images; all tasks show the same ones."""
        return hash_rows(self._images.alike[None, self.permutation(seed, task)])

    @property
    def unchanged(self) -> Hashes:
        """[1], the `permutation_hash` of a task whose permutation leaves every image as it is."""
        return hash_rows(self._images.alike[None])

    def describe(self) -> dict[str, Any]:
        """Returns JSON-able facts that, with a seed, determine every example of the stream."""
        return {
            "kind": self.kind,
            "images": self._fingerprint,
            "tasks": [self.tasks.start, self.tasks.stop],
            "examples_per_task": self.examples,
        }

    @cached_property
    def _fingerprint(self) -> str:
        return self._images.fingerprint()
