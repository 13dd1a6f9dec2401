"""Tasks that move the pixels of the same images: by a permutation, or by a rotation."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.scenarios import DOMAIN
from trainers.schedule import generator, training_order
from trainers.streams.base import DataError, Examples, Images
from trainers.streams.competing import chosen_scenario
from trainers.streams.hashes import Hashes, hash_rows

DENSITY_SAMPLE = 1000  # images
BLANK = -1
"""The source of a pixel that comes from beyond the image, and is 0."""
HALF_TURN = 180.0  # degrees
MOST_DRAWS = 200  # of an angle; the chance that none of them is new is nil unless hardly a rotation is left


class _MovedPixels(ABC):
    """Every task shows all images with their pixels moved in its own way, which differs between seeds and tasks.

    The labels are the same in every task: all share the classes and the outputs. `available` is the number of training
    images, `examples` how many of them each task shows.

    Raises DataError where examples_per_task does not lie in 1…available, None shows all; and for another scenario than
    the domain-incremental one.
    """

    kind: str
    motions: str
    """What the tasks do to the pixels, in the plural."""
    scenario = DOMAIN

    def __init__(
        self, images: Images, tasks: range, examples_per_task: int | None = None, scenario: str | None = None
    ) -> None:
        chosen_scenario(scenario, (DOMAIN,), self.kind)
        self.tasks, self.images = tasks, images
        self.inputs, self.largest = int(images.train.inputs.shape[1]), images.largest
        self.classes = self.outputs = images.classes
        self.available = len(images.train.labels)
        self.examples = self.available if examples_per_task is None else examples_per_task
        if not 1 <= self.examples <= self.available:
            raise DataError(
                f"examples-per-task must lie in 1…{self.available}, the size of the training set, got {self.examples}"
            )

    @abstractmethod
    def source(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns the pixel [P] that each pixel of the task comes from; BLANK for none."""

    @cached_property
    def density(self) -> float:
        """Share of pixels that are not zero, from a sample."""
        return float(np.mean(self.images.train.inputs[:DENSITY_SAMPLE] != 0))

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training examples that the task shows: as many in every task."""
        return self.examples

    def order(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns positions of the training examples that the task shows, in its order."""
        return training_order(seed, task, self.available, self.examples)

    def train(self, seed: int, task: int, order: NDArray[np.int64]) -> Examples:
        """Returns the training examples at `order`, their pixels [n, P] moved."""
        inputs, labels = self.images.train
        # Rows first: the other way round the whole training set would be copied.
        return Examples(self._move(inputs[order], seed, task), labels[order])

    def training_labels(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the labels [n] of the training examples at `order`, the same in every task."""
        return self.images.train.labels[order]

    def test(self, seed: int, task: int) -> Examples:
        """Returns the whole test set, its pixels [n, P] moved."""
        inputs, labels = self.images.test
        return Examples(self._move(inputs, seed, task), labels)

    def room(self, rows: int) -> NDArray[np.uint8]:
        """Returns zeros [rows, P] for bytes of pixels."""
        return np.zeros((rows, self.inputs), dtype=np.uint8)

    def permutation_hash(self, seed: int, task: int) -> Hashes:
        """Returns a hash [1] of the change that the task makes to the images; all tasks show the same ones."""
        return self._hash(self.source(seed, task))

    def describe(self) -> dict[str, Any]:
        """Returns a JSON description that, with a seed, determines every example of the stream."""
        return {
            "kind": self.kind,
            "images": self._fingerprint,
            "tasks": [self.tasks.start, self.tasks.stop],
            "examples_per_task": self.examples,
        }

    @cached_property
    def _fingerprint(self) -> str:
        return self.images.fingerprint()

    def _move(self, inputs: NDArray[np.uint8], seed: int, task: int) -> NDArray[np.uint8]:
        source = self.source(seed, task)
        moved = np.take(inputs, source, axis=1)  # `inputs[:, source]`, faster
        moved[:, source == BLANK] = 0
        return moved

    def _hash(self, source: NDArray[np.int64]) -> Hashes:
        return hash_rows(self.images.alike[source][None])


class PermutedStream(_MovedPixels):
    """Every task, the first included, permutes the pixels of all images in its own uniformly random way."""

    kind, motions = "permuted pixels", "permutations"

    def permutation(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns the pixel [P] that each pixel of the task comes from."""
        return generator(seed, "permutation", task).permutation(self.inputs)

    def source(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns the permutation of the task."""
        return self.permutation(seed, task)

    @property
    def unchanged(self) -> Hashes:
        """[1], the `permutation_hash` of a task whose permutation leaves every image as it is."""
        return self._hash(np.arange(self.inputs))


class RotatedStream(_MovedPixels):
    """Every task turns all images by its own angle, uniform in [0°, 180°), around their middle.

    As in Dark Experience for General Continual Learning (Buzzega et al., 2020) and its code: pixels take the nearest
    value, and what comes from beyond the image is black. An angle is drawn again where the pixels come from the same
    places as in an earlier task of the seed. Raises DataError where images are not square, too, or too small for so
    many tasks.
    """

    kind, motions = "rotated pixels", "rotations"
    interpolation = "nearest"

    def __init__(
        self, images: Images, tasks: range, examples_per_task: int | None = None, scenario: str | None = None
    ) -> None:
        super().__init__(images, tasks, examples_per_task, scenario)
        if isqrt(self.inputs) ** 2 != self.inputs:
            raise DataError(f"images that are rotated must be square, got {self.inputs:,} pixels")
        self._angles: dict[int, list[float]] = {}

    def angle(self, seed: int, task: int) -> float:
        """Returns the task's angle in degrees, counter-clockwise."""
        angles = self._angles.setdefault(seed, [])
        while len(angles) <= task:
            angles.append(self._another(seed, angles))
        return angles[task]

    def source(self, seed: int, task: int) -> NDArray[np.int64]:
        """Returns the nearest pixel [P] that each pixel comes from; BLANK for none."""
        return rotation(isqrt(self.inputs), self.angle(seed, task))

    def permutation_hash(self, seed: int, task: int) -> Hashes:
        """Returns [1], of the rotation and the seed.

        There are only some thousand rotations of an image to the nearest pixel, so that seeds have some in common; a
        learner sees those of its seed alone.
        """
        return hash_rows(np.append(self.source(seed, task), seed)[None])

    def _another(self, seed: int, angles: Sequence[float]) -> float:
        """Returns the angle of the task after these ones, of the tasks so far."""
        draws, side = generator(seed, "rotation", len(angles)), isqrt(self.inputs)
        earlier = {rotation(side, angle).tobytes() for angle in angles}
        for angle in draws.uniform(0, HALF_TURN, MOST_DRAWS).tolist():
            if rotation(side, angle).tobytes() not in earlier:
                return float(angle)
        raise DataError(f"images of {side} × {side} pixels have too few rotations for {len(angles) + 1} tasks")

    def describe(self) -> dict[str, Any]:
        """Returns a JSON description that, with a seed, determines every example of the stream."""
        return super().describe() | {"interpolation": self.interpolation, "degrees": [0, HALF_TURN]}


@lru_cache(maxsize=256)
def rotation(side: int, degrees: float) -> NDArray[np.int64]:
    """Returns the source [side²] of each pixel of an image that was turned counter-clockwise; BLANK for beyond it.

    >>> rotation(2, 90.0).tolist()
    [1, 3, 0, 2]
    """
    angle, half = np.deg2rad(degrees), (side - 1) / 2
    row, column = np.indices((side, side)) - half
    # The pixel that is turned onto each place; rows count downwards. Rounded first, so that 90° is exact.
    from_row = np.round(np.cos(angle) * row + np.sin(angle) * column + half, 9)
    from_column = np.round(np.cos(angle) * column - np.sin(angle) * row + half, 9)
    nearest = np.floor(np.stack([from_row, from_column]) + 0.5).astype(np.int64)
    inside = ((nearest >= 0) & (nearest < side)).all(axis=0)
    source = np.where(inside, nearest[0] * side + nearest[1], BLANK).ravel()
    source.flags.writeable = False
    return source
