"""Split streams: classes that are disjoint between tasks, and classes that come back."""

import numpy as np

from trainers.schedule import generator
from trainers.streams.base import DataError, Labels
from trainers.streams.images.classes import ClassStream


class SplitStream(ClassStream):
    """Disjoint classes (Split CIFAR-100, Split CUB): those of a later start are shuffled and cut into groups.

    Output unit = class. Accuracy on a task is that on its test set.
    """

    kind, balanced = "split classes", False

    def _draw(self, seed: int, labels: Labels) -> Labels:
        shuffled = generator(seed, "classes").permutation(labels)
        return shuffled[: len(self.tasks) * self.classes].reshape(-1, self.classes)

    def _units(self, place: int, labels: Labels) -> Labels:
        return labels


class ReoccurringStream(ClassStream):
    """Classes that come back (Split AWA): a later start draws each task's, distinct within it, independently.

    One block of output units for each task of the stream, so that a class that comes back has new ones. Accuracy on a
    task is the mean of its classes' accuracies. A class that might be drawn must have a training image for each task of
    the stream, so that no chunk of any seed is empty; DataError otherwise.
    """

    kind, balanced = "re-occurring classes", True

    @property
    def outputs(self) -> int:
        """Output units: a block of all classes for each task of the stream."""
        return len(self.tasks) * len(self._images.classes)

    def _needed(self) -> int:
        return super()._needed() if self.tasks.start == 0 else (self.tasks.start + 1) * self.classes

    def _check_classes(self) -> None:
        super()._check_classes()
        images, tasks = self._images, len(self.tasks)
        for label in range(self.tasks.start * self.classes, len(images.classes)) if self.tasks.start else ():
            if (found := len(images.train_of[label])) < tasks:
                raise DataError(
                    f"classes that re-occur in up to {tasks} tasks need as many training images, "
                    f"{images.classes[label]} has {found}"
                )

    def _draw(self, seed: int, labels: Labels) -> Labels:
        return np.stack(
            [generator(seed, "classes", task).choice(labels, self.classes, replace=False) for task in self.tasks]
        )

    def _units(self, place: int, labels: Labels) -> Labels:
        return place * len(self._images.classes) + labels
