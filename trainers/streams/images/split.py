"""Streams of tasks with a few classes each: disjoint or re-occurring."""

import hashlib
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.scenarios import CLASS, TASK
from trainers.schedule import generator, training_order
from trainers.streams.base import DataError, Examples, Labels, Pixels
from trainers.streams.competing import chosen_scenario
from trainers.streams.hashes import PixelHashes
from trainers.streams.images.image_set import ImageSet
from trainers.streams.task_order import drawn_classes


class _ClassStream(ABC):
    """Tasks of `classes_per_task` classes each; inputs are positions in `pixels`, labels are output units.

    A stream that starts with task 0 takes the classes in the order of their numbers, whatever the seed; one that
    starts later draws them, by seed, from those that the tasks before it cannot have. Where a class occurs in f
    tasks of the stream, its training images are cut, in their order, into f chunks of ⌊n/f⌋, one for each of them: no
    image is shown twice, and the remainder is not shown. The test set of a task is that of its classes, whole.

    examples_per_task: shows so many of each task's training images, or all where there are fewer; None shows all.
    embedding: offers `attributes`. class_order: see `SplitStream`. Raises DataError when the images have too few
    classes, fewer examples in every task (of seed 0) than wanted, or no attributes for the embedding; and for an
    impossible scenario.
    """

    kind: str
    balanced: bool
    scenarios: tuple[str, ...] = (TASK, CLASS)
    """The scenarios that it can have, the usual one first."""

    def __init__(
        self,
        images: ImageSet,
        tasks: range,
        classes_per_task: int,
        examples_per_task: int | None = None,
        embedding: bool = False,
        scenario: str | None = None,
        class_order: int = 0,
    ) -> None:
        self.scenario = chosen_scenario(scenario, self.scenarios, self.kind)
        self.tasks, self.classes = tasks, classes_per_task
        self.pixels: Pixels = images.pixels
        self.mean: NDArray[np.float32] = images.mean
        self._images, self._at_most, self._class_order = images, examples_per_task, class_order
        self._cuts: dict[int, tuple[Labels, tuple[Labels, ...]]] = {}
        self._check_classes(tasks.stop * classes_per_task)
        largest = max(len(images) for images in self._cut(0)[1])
        if examples_per_task is not None and not 1 <= examples_per_task <= largest:
            raise DataError(
                f"examples-per-task must lie in 1…{largest}, the size of the largest task, got {examples_per_task}"
            )
        if embedding and images.attributes is None:
            raise DataError("a joint embedding needs attributes of the classes, which these images do not have")
        self._attributes = images.attributes if embedding else None

    @property
    def outputs(self) -> int:
        """Number of output units: one for each class of the images, unless a kind of stream has more."""
        return len(self._images.classes)

    @property
    def attributes(self) -> NDArray[np.float32] | None:
        """[outputs, A], of each output's class, repeated for every block of outputs; None without an embedding."""
        table = self._attributes
        return None if table is None else np.tile(table, (self.outputs // len(table), 1))

    def heads(self, seed: int) -> Labels:
        """Returns the task [outputs] that each output belongs to, −1 where it is none of this stream's."""
        units = np.full(self.outputs, -1, dtype=np.int64)
        for place, (task, classes) in enumerate(zip(self.tasks, self._cut(seed)[0], strict=True)):
            units[self._units(place, classes)] = task
        return units

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training images that the task shows."""
        available = self._available(seed, task)
        return available if self._at_most is None else min(self._at_most, available)

    def order(self, seed: int, task: int) -> Labels:
        """Returns places among the task's training images, in the order in which it shows them."""
        return training_order(seed, task, self._available(seed, task), self.size(seed, task))

    def train(self, seed: int, task: int, order: Labels) -> Examples:
        """Returns positions in `pixels`, and output units, of the task's training images at `order`."""
        (_, train), place = self._cut(seed), self.tasks.index(task)
        return self._examples(place, train[place][order])

    def test(self, seed: int, task: int) -> Examples:
        """Returns positions in `pixels`, and output units, of the whole test set, class by class."""
        (classes, _), place = self._cut(seed), self.tasks.index(task)
        return self._examples(place, np.concatenate([self._images.test_of[label] for label in classes[place]]))

    def room(self, rows: int) -> Labels:
        """Returns zeros [rows] for positions."""
        return np.zeros(rows, dtype=np.int64)

    @property
    def hashes(self) -> PixelHashes:
        """Hashes of the bytes of every image; kept where the images are."""
        return self._images.hashes

    @property
    def differences(self) -> PixelHashes:
        """Difference hashes of the images, kept as well."""
        return self._images.differences

    def describe(self) -> dict[str, Any]:
        """Returns facts as `TaskStream.describe` does.

        `examples_per_task` is the mean of seed 0, for estimates; what was asked for is `at_most`, None for all.
        """
        table = self._attributes
        return {
            "kind": self.kind,
            "images": self._images.fingerprint,
            "pixels": list(self.pixels.shape[1:]),
            "tasks": [self.tasks.start, self.tasks.stop],
            "classes_per_task": self.classes,
            "examples_per_task": round(sum(self.size(0, task) for task in self.tasks) / len(self.tasks)),
            "at_most": self._at_most,
            "joint_embedding": table is not None,
            # The fingerprint of the images does not cover them.
            "attributes": None if table is None else hashlib.sha256(table.tobytes()).hexdigest()[:16],
        } | (
            ({} if self.scenario == TASK else {"scenario": self.scenario})
            | ({"class_order": self._class_order} if self._class_order else {})
        )  # older results have no name for the usual ones

    @abstractmethod
    def _draw(self, seed: int, labels: Labels) -> Labels:
        """Returns classes [tasks, c] of a stream that starts later, out of `labels`."""

    @abstractmethod
    def _units(self, place: int, labels: Labels) -> Labels:
        """Returns the output units of classes in the stream's task number `place`, counted from 0."""

    def _check_classes(self, needed: int) -> None:
        """Raises DataError where the images have fewer classes."""
        if len(self._images.classes) < needed:
            raise DataError(
                f"{self.tasks.stop} tasks of {self.classes} classes each need {needed} "
                f"classes, the images have {len(self._images.classes)}",
                len(self._images.classes),
            )

    def _available(self, seed: int, task: int) -> int:
        """Returns the number of training images that the task could show."""
        return len(self._cut(seed)[1][self.tasks.index(task)])

    def _examples(self, place: int, positions: Labels) -> Examples:
        """Returns the images at these positions, as the stream's task number `place` labels them."""
        return Examples(positions, self._units(place, self._images.labels[positions]))

    def _cut(self, seed: int) -> tuple[Labels, tuple[Labels, ...]]:
        """Returns the classes [tasks, c] and the positions of the training images of each task; cached."""
        if seed not in self._cuts:
            labels = np.arange(self.tasks.start * self.classes, len(self._images.classes))
            shape = (len(self.tasks), self.classes)
            classes = self._draw(seed, labels) if self.tasks.start else labels[: math.prod(shape)].reshape(shape)
            if self._class_order:
                places = drawn_classes(self._class_order, self.tasks.start, *shape)
                classes = classes.reshape(-1)[list(places)].reshape(shape)
            self._cuts[seed] = classes, _chunks(self._images, classes)
        return self._cuts[seed]


class SplitStream(_ClassStream):
    """Disjoint classes (Split CIFAR-100, Split CUB): those of a later start are shuffled and cut into groups.

    Output unit = class. Accuracy on a task is that on its test set. With a class_order other than 0 the classes of the
    stream are shuffled among its tasks, by a generator of that number.
    """

    kind, balanced = "split classes", False

    def with_class_order(self, number: int) -> "SplitStream":
        """Returns the stream with its classes shuffled among its tasks, by a generator of that number."""
        arguments = self._images, self.tasks, self.classes, self._at_most, self._attributes is not None, self.scenario
        return SplitStream(*arguments, class_order=number)

    def _draw(self, seed: int, labels: Labels) -> Labels:
        shuffled = generator(seed, "classes").permutation(labels)
        return shuffled[: len(self.tasks) * self.classes].reshape(-1, self.classes)

    def _units(self, place: int, labels: Labels) -> Labels:
        return labels


class ReoccurringStream(_ClassStream):
    """Classes that come back (Split AWA): a later start draws each task's, distinct within it, independently.

    One block of output units for each task of the stream, so that a class that comes back has new ones. Accuracy on a
    task is the mean of its classes' accuracies. A class that might be drawn must have a training image for each task of
    the stream, so that no chunk of any seed is empty; DataError otherwise.
    """

    kind, balanced = "re-occurring classes", True
    scenarios = (TASK,)  # a class that comes back would compete with itself

    @property
    def outputs(self) -> int:
        """Number of output units: a block of all classes for each task of the stream."""
        return len(self.tasks) * len(self._images.classes)

    def _check_classes(self, needed: int) -> None:
        # Each task draws from all classes that are left: as many as one task shows are enough.
        super()._check_classes((self.tasks.start + 1) * self.classes if self.tasks.start else needed)
        images, tasks = self._images, len(self.tasks)
        for label in range(self.tasks.start * self.classes, len(images.classes)) if self.tasks.start else ():
            if (count := len(images.train_of[label])) < tasks:
                raise DataError(
                    f"classes that re-occur in up to {tasks} tasks need as many training images, "
                    f"{images.classes[label]} has {count}"
                )

    def _draw(self, seed: int, labels: Labels) -> Labels:
        return np.stack(
            [generator(seed, "classes", task).choice(labels, self.classes, replace=False) for task in self.tasks]
        )

    def _units(self, place: int, labels: Labels) -> Labels:
        return place * len(self._images.classes) + labels


def _chunks(images: ImageSet, classes: Labels) -> tuple[Labels, ...]:
    """Returns the positions of each task's training images, for the tasks' classes [tasks, c].

    Each time a class comes, its next chunk is taken.
    """
    chunks = {}
    for label, times in zip(*np.unique(classes, return_counts=True), strict=True):
        of_class = images.train_of[label]
        # Whole chunks only: the remainder is shown nowhere.
        chunks[label] = iter(of_class[: len(of_class) // times * times].reshape(times, -1))
    return tuple(np.concatenate([next(chunks[label]) for label in row]) for row in classes)
