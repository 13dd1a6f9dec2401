"""Tasks with a few classes each of a dataset of pixels: Split MNIST."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.scenarios import DOMAIN, SCENARIOS
from trainers.schedule import training_order
from trainers.streams.base import DataError, Examples, Images, Labels
from trainers.streams.competing import chosen_scenario
from trainers.streams.permuted import DENSITY_SAMPLE
from trainers.streams.task_order import drawn_classes


class SplitPixelsStream:
    """Task number i has the classes i·c … i·c + c − 1, whatever the seed; labels are output units.

    With a class_order other than 0 these are shuffled among the tasks first, by a generator of that number.

    Task- and class-incremental, each class has its output. Domain-incremental, the first class of every task has output
    0, the next one output 1. As in van de Ven & Tolias 2019 (arXiv 1904.07734).

    examples_per_task: shows so many of each task's training images, or all where there are fewer; None shows all.
    Raises DataError for an unknown scenario, and where there are too few classes or examples.
    """

    kind = "split pixels"

    def __init__(
        self,
        images: Images,
        tasks: range,
        classes_per_task: int,
        examples_per_task: int | None = None,
        scenario: str | None = None,
        class_order: int = 0,
    ) -> None:
        self.scenario = chosen_scenario(scenario, SCENARIOS, self.kind)
        self.tasks, self.classes, self.images, self._at_most = tasks, classes_per_task, images, examples_per_task
        self.inputs, self.largest = int(images.train.inputs.shape[1]), images.largest
        if tasks.stop * classes_per_task > images.classes:
            raise DataError(
                f"{tasks.stop} tasks of {classes_per_task} classes each need {tasks.stop * classes_per_task} classes, "
                f"the images have {images.classes}",
                images.classes,
            )
        places = drawn_classes(class_order, tasks.start, len(tasks), classes_per_task)
        classes, self._class_order = tasks.start * classes_per_task + np.array(places), class_order
        self._classes = dict(zip(tasks, classes.reshape(-1, classes_per_task), strict=True))
        self._of_task = {task: np.flatnonzero(self._are_of(images.train.labels, task)) for task in tasks}
        largest = max(map(len, self._of_task.values()))
        if examples_per_task is not None and not 1 <= examples_per_task <= largest:
            raise DataError(
                f"examples-per-task must lie in 1…{largest}, the size of the largest task, got {examples_per_task}"
            )
        if smallest := [task for task, examples in self._of_task.items() if not len(examples)]:
            raise DataError(f"task {smallest[0]} has no training image; its classes are missing in the images")

    @property
    def outputs(self) -> int:
        """Number of outputs: one a class of the images, or of a task in the domain-incremental scenario."""
        return self.classes if self.scenario == DOMAIN else self.images.classes

    @cached_property
    def density(self) -> float:
        """Share of pixels that are not zero, from a sample."""
        return float(np.mean(self.images.train.inputs[:DENSITY_SAMPLE] != 0))

    def heads(self, seed: int) -> Labels:
        """Returns the task [outputs] that each output belongs to, −1 where it is none of this stream's."""
        if self.scenario == DOMAIN:
            return np.full(self.outputs, self.tasks.start)
        units = np.full(self.outputs, -1, dtype=np.int64)
        for task, classes in self._classes.items():
            units[classes] = task
        return units

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training examples that the task shows."""
        available = len(self._of_task[task])
        return available if self._at_most is None else min(self._at_most, available)

    def order(self, seed: int, task: int) -> Labels:
        """Returns places among the task's training examples, in the order in which it shows them."""
        return training_order(seed, task, len(self._of_task[task]), self.size(seed, task))

    def train(self, seed: int, task: int, order: Labels) -> Examples:
        """Returns the task's training examples [n, P] at `order`."""
        inputs, labels = self.images.train
        places = self._of_task[task][order]
        return Examples(inputs[places], self._units(labels[places], task))

    def test(self, seed: int, task: int) -> Examples:
        """Returns the task's whole test set [n, P]."""
        inputs, labels = self.images.test
        places = np.flatnonzero(self._are_of(labels, task))
        return Examples(inputs[places], self._units(labels[places], task))

    def room(self, rows: int) -> NDArray[np.uint8]:
        """Returns zeros [rows, P] for bytes of pixels."""
        return np.zeros((rows, self.inputs), dtype=np.uint8)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON description that, with a seed, determines every example of the stream.

        `examples_per_task` is a mean, for estimates of time; `at_most` is the number that was asked for, None for all.
        """
        return {
            "kind": self.kind,
            "scenario": self.scenario,
            "images": self._fingerprint,
            "tasks": [self.tasks.start, self.tasks.stop],
            "classes_per_task": self.classes,
            "examples_per_task": round(sum(self.size(0, task) for task in self.tasks) / len(self.tasks)),
            "at_most": self._at_most,
        } | ({"class_order": self._class_order} if self._class_order else {})

    def with_class_order(self, number: int) -> "SplitPixelsStream":
        """Returns the stream with its classes shuffled among its tasks, by a generator of that number."""
        arguments = self.images, self.tasks, self.classes, self._at_most, self.scenario
        return SplitPixelsStream(*arguments, class_order=number)

    @cached_property
    def _fingerprint(self) -> str:
        return self.images.fingerprint()

    def _are_of(self, labels: Labels, task: int) -> NDArray[np.bool_]:
        return np.isin(labels, self._classes[task])

    def _units(self, labels: Labels, task: int) -> Labels:
        if self.scenario != DOMAIN:
            return labels
        return np.asarray((labels[:, None] == self._classes[task]).argmax(axis=1))
