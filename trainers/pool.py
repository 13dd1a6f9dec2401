"""The examples that one seed's run can see at a moment: its episodic memory and the current task's training set."""

from functools import lru_cache

import numpy as np

from trainers.cohort import TrainConfig
from trainers.schedule import Segment, memory_choice, task_segments, training_order
from trainers.streams.base import Examples, TaskStream


class Pool:
    """One matrix of rows: memory slots first, then the current task in training order, so a batch is one gather.

    inputs [rows, P] bytes; labels [rows]. Slots that are not filled yet hold zeros and no schedule names them.
    """

    def __init__(self, stream: TaskStream, seed: int, config: TrainConfig, uses_memory: bool) -> None:
        self._stream, self._seed, self._config = stream, seed, config
        slots_per_task = config.memory * stream.classes if uses_memory else 0
        self.capacity = slots_per_task * (len(stream.tasks) - 1)  # the last task's memory is never read
        self.stored = 0
        rows = self.capacity + stream.examples
        self.inputs = np.zeros((rows, stream.inputs), dtype=np.uint8)
        self.labels = np.zeros(rows, dtype=np.int64)
        self.test = lru_cache(maxsize=None)(self._test)

    def load_task(self, task: int) -> tuple[Segment, ...]:
        """Puts the task's training set behind the memory and returns all its batches."""
        number, stream, config = self._stream.tasks[task], self._stream, self._config
        order = training_order(self._seed, number, stream.available, stream.examples)
        self.inputs[self.capacity :], self.labels[self.capacity :] = stream.train(self._seed, number, order)
        return task_segments(
            self._seed, number, len(order), config.batch_size, self.capacity, self.stored, config.memory_batch
        )

    def remember(self, task: int) -> None:
        """Copies examples of the finished task into the memory, where the next task reads them."""
        if self.capacity == 0 or task == len(self._stream.tasks) - 1:
            return
        chosen = memory_choice(self._seed, self._stream.tasks[task], self.labels[self.capacity :], self._config.memory)
        slots = slice(self.stored, self.stored + len(chosen))
        self.inputs[slots], self.labels[slots] = (part[self.capacity + chosen] for part in (self.inputs, self.labels))
        self.stored += len(chosen)

    def _test(self, task: int) -> Examples:
        """The task's test set; `test` keeps it, as every later task is tested on it too."""
        return self._stream.test(self._seed, self._stream.tasks[task])
