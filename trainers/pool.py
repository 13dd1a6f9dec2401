"""The examples that one seed's run can see at a moment: its episodic memory and the current task's training set."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import TrainConfig
from trainers.schedule import Segment, memory_choice, task_segments, training_order
from trainers.streams.base import TaskStream


class Batches(NamedTuple):
    """A schedule segment on the device: rows [steps, B] of the pool, row_weight [B, 1] = 1/rows of its part."""

    rows: Tensor
    row_weight: Tensor
    current: int
    reference: int


class Pool:
    """One matrix of rows: memory slots first, then the current task in training order, so a batch is one gather."""

    def __init__(self, stream: TaskStream, seed: int, config: TrainConfig, uses_memory: bool, device: str) -> None:
        self._stream, self._seed, self._config, self._device = stream, seed, config, torch.device(device)
        slots_per_task = config.memory * stream.classes if uses_memory else 0
        self._capacity = slots_per_task * (len(stream.tasks) - 1)  # the last task's memory is never read
        self._stored = 0
        rows = self._capacity + stream.examples
        self._inputs = torch.zeros(rows, stream.inputs, dtype=torch.uint8, device=self._device)
        self._targets = torch.zeros(rows, stream.classes, device=self._device)
        self._labels = np.empty(0, dtype=np.int64)
        self.test = lru_cache(maxsize=None)(self._test)

    def load_task(self, task: int) -> list[Batches]:
        """Puts the task's training set behind the memory and returns all its batches."""
        number, stream, config = self._stream.tasks[task], self._stream, self._config
        order = training_order(self._seed, number, stream.available, stream.examples)
        inputs, self._labels = stream.train(self._seed, number, order)
        self._inputs[self._capacity :] = torch.from_numpy(inputs).to(self._device)
        one_hot = torch.nn.functional.one_hot(torch.from_numpy(self._labels), stream.classes)
        self._targets[self._capacity :] = one_hot.to(self._device, torch.float32)
        segments = task_segments(
            self._seed, number, len(order), config.batch_size, self._capacity, self._stored, config.memory_batch
        )
        return [self._batches(segment) for segment in segments]

    def remember(self, task: int) -> None:
        """Copies examples of the finished task into the memory, where the next task reads them."""
        if self._capacity == 0 or task == len(self._stream.tasks) - 1:
            return
        chosen = memory_choice(self._seed, self._stream.tasks[task], self._labels, self._config.memory)
        rows = torch.from_numpy(self._capacity + chosen).to(self._device)
        slots = slice(self._stored, self._stored + len(chosen))
        self._inputs[slots], self._targets[slots] = self._inputs[rows], self._targets[rows]
        self._stored += len(chosen)

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(inputs [B, P] as the network sees them, one-hot targets [B, classes])."""
        return self.scale(self._inputs[rows]), self._targets[rows]

    def scale(self, stored: Tensor) -> Tensor:
        return stored.to(torch.float32).div_(self._stream.largest)

    def _test(self, task: int) -> tuple[Tensor, Tensor]:
        """The task's test set: (bytes [n, P], labels [n]); `test` keeps it, every later task is tested on it too."""
        inputs, labels = self._stream.test(self._seed, self._stream.tasks[task])
        return torch.from_numpy(inputs).to(self._device), torch.from_numpy(labels).to(self._device)

    def _batches(self, segment: Segment) -> Batches:
        parts = [n for n in (segment.current, segment.reference) for _ in range(n)]
        weight = 1 / torch.tensor(parts, dtype=torch.float32, device=self._device)[:, None]
        rows = torch.from_numpy(segment.rows).to(self._device)
        return Batches(rows, weight, segment.current, segment.reference)
