"""Base class of engines for networks that grow.

Only the newest column trains, so finished ones never change.
"""

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import Cohort
from trainers.engines import optimizers
from trainers.engines.base import Engine, Learners
from trainers.engines.precision import set_precision
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.numeric_path import NumericPath
from trainers.persistence.array_store import fingerprint
from trainers.schedule import generator
from trainers.streams.base import TaskStream


class GrowingEngine(Engine):
    """Members one after another, each in products of its own: a result does not depend on who else is trained.

    The columns of all tasks are initialised at the start. Task number i of the stream trains and tests column i,
    whether it has been trained yet or not. Nothing is to be done between tasks: what was learnt of one stays in its
    column, and the next one's is there from the start.
    """

    _net: MLPColumns | ResNetColumns

    def __init__(self, cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, path: NumericPath) -> None:
        super().__init__(cohort, seeds, stream, path)
        self._known: dict[tuple[int, int, int | None, str], float] = {}
        self._task = 0

    def start(self) -> Tensor:
        """Returns the untrained columns of all tasks [S, D], one row for each seed, on the device."""
        first, *others = self._stream.tasks
        # The first column starts as every other method's network does.
        purposes = [("init", first), *(("column", task) for task in others)]
        rows = [self._net.init([generator(seed, *purpose) for purpose in purposes]) for seed in self._seeds]
        return torch.from_numpy(np.stack(rows)).to(self._device)

    def load_task(self, task: int) -> None:
        """Makes the task's column the newest one, and its training set and batches ready."""
        self._task = task
        # Without a memory the schedule names the same rows for every seed; what the rows hold is the seed's.
        self._segments = self._schedules(task)[0]

    def _begin(self, learners: Learners, first: int) -> None:
        """Counts an optimizer's steps from a task's first one: each column has its own moments, which begin at zero."""
        if first == 0 and optimizers.COUNT in learners.state:
            learners.state[optimizers.COUNT].zero_()

    def accuracy(self, learners: Learners, task: int, images: int | None = None) -> NDArray[np.float64]:
        """Returns each learner's accuracy [M] on the task, in [0, 1], by the task's own column.

        images: how many examples of the test set are tested, as `Pool.test` draws them; None for all.
        """
        set_precision(self._path)
        return np.array([self._accuracy(learners, row, task, images) for row in range(len(learners.params))])

    def _accuracy(self, learners: Learners, row: int, task: int, images: int | None) -> float:
        """Returns a learner's accuracy on a task; for a finished column that is unchanged, the stored one.

        A finished column is tested again after every later task; a hash of its parameters says whether it is the same.
        """
        if task >= self._task:
            return self._test(learners, row, task, images)
        key = (int(learners.seed[row]), task, images, fingerprint(self._test_state(learners, row, task).cpu().numpy()))
        if key not in self._known:
            self._known[key] = self._test(learners, row, task, images)
        return self._known[key]

    @abstractmethod
    def _test_state(self, learners: Learners, row: int, task: int) -> Tensor:
        """Returns all numbers of a member on which the test of column `task` depends."""

    @abstractmethod
    def _test(self, learners: Learners, row: int, task: int, images: int | None) -> float:
        """Returns a member's accuracy on a task; images: as for `accuracy`."""


def note_bad(first_bad: Tensor, loss: Tensor, start: int) -> None:
    """Writes the number of the first step without a finite loss, unless an earlier one is known; on the device.

    first_bad []; loss [steps], of the steps from `start` on.
    """
    bad = ~torch.isfinite(loss)
    # The first maximum of 0s and 1s is the first 1. No value is fetched from a GPU.
    step = torch.where(bad.any(), bad.int().argmax() + start, -1)
    first_bad.copy_(torch.where(first_bad < 0, step, first_bad))
