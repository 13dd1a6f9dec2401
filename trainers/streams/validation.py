"""Holds a share of each task's training examples out of training, to choose by."""

from typing import Any, cast

import numpy as np

from trainers.schedule import generator
from trainers.streams.base import DataError, Examples, Labels, TaskStream
from trainers.streams.wrapper import StreamWrapper


def hold_out(stream: TaskStream, share: float, validates: bool, of_class: int | None = None) -> TaskStream:
    """Returns the stream without a share of each task's training examples, which no batch and no memory has.

    validates: whether its tests are these examples, and not the test set; of_class: how many of each class, None for
    all, as of an episodic memory that is kept to choose by. They are drawn once for each seed and task,
    class by class: of n examples round(share · n), halves upwards, as many for every seed. A class has its part of them
    rounded down, and the classes that lose most by that have one more (largest remainders).
    """
    return cast(TaskStream, _HeldOut(stream, share, validates, of_class))


class _HeldOut(StreamWrapper):
    """A stream whose tasks train on a part of their examples."""

    def __init__(self, stream: TaskStream, share: float, validates: bool, of_class: int | None) -> None:
        super().__init__(stream)
        self._share, self._validates, self._of_class = share, validates, of_class
        self._known: dict[tuple[int, int], Labels] = {}

    def held(self, seed: int, task: int) -> Labels:
        """Returns positions of the examples that are held out, in the stream's order. Raises DataError without any."""
        if (seed, task) not in self._known:
            self._known[seed, task] = self._draw(seed, task)
        return self._known[seed, task]

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training examples that are left."""
        return int(self._stream.size(seed, task)) - len(self.held(seed, task))

    def order(self, seed: int, task: int) -> Labels:
        """Returns positions of the training examples that are left, in the stream's order."""
        order = self._stream.order(seed, task)
        return order[~np.isin(order, self.held(seed, task))]

    def test(self, seed: int, task: int) -> Examples:
        """Returns the examples that are held out, or the test set."""
        if self._validates:
            tests = self._stream.train(seed, task, self.held(seed, task))
            return tests if self._of_class is None else _first_of_class(tests, self._of_class)
        return self._stream.test(seed, task)

    def describe(self) -> dict[str, Any]:
        """Returns the stream's facts, the share, and the type of the tests where they are no test sets."""
        facts = self._stream.describe() | {"validation": self._share}
        facts |= {"tests": "validation"} if self._validates else {}
        return facts | ({} if self._of_class is None else {"tests": "memory", "tests_of_class": self._of_class})

    def _draw(self, seed: int, task: int) -> Labels:
        """Returns positions of the examples that are held out."""
        order, draws = self._stream.order(seed, task), generator(seed, "validation", task)
        # Labels alone where the stream has them so: with all pixels a split would take as long as a task's first step.
        labels_of = getattr(self._stream, "training_labels", None)
        labels = labels_of(order) if labels_of else self._stream.train(seed, task, order).labels
        classes, counts = np.unique(labels, return_counts=True)
        parts, number = self._share * counts, int(self._share * len(order) + 0.5)
        if not number:
            raise DataError(
                f"validation must hold out an example of every task; of task {task} {self._share:g} of {len(order)} "
                "is none"
            )
        quotas = np.floor(parts).astype(np.int64)
        # Seeds that are trained together have tasks of one size: the number must not depend on how classes fall.
        quotas[np.argsort(quotas - parts, kind="stable")[: number - quotas.sum()]] += 1
        held = np.zeros(len(order), np.bool_)
        for label, quota in zip(classes, quotas, strict=True):
            held[draws.permutation(np.flatnonzero(labels == label))[:quota]] = True
        return np.asarray(order[held])


def _first_of_class(examples: Examples, count: int) -> Examples:
    """Returns the first examples of each class, in their order."""
    labels = examples.labels
    rows = np.sort(np.concatenate([np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]))
    return Examples(examples.inputs[rows], labels[rows])
