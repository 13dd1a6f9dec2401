"""The pool of examples of a seed: episodic memory and current task."""

import numpy as np
from numpy.typing import NDArray

from trainers.hyperparameters import Hyperparameters
from trainers.methods.losses import Losses
from trainers.methods.rules import PER_TASK, RESERVOIR, Method
from trainers.passes import steps_of_first, steps_of_pass, steps_of_task
from trainers.reservoir import Reservoir
from trainers.schedule import (
    Indices,
    Segment,
    generator,
    memory_choice,
    reference_batches,
    task_batches,
    task_segments,
)
from trainers.streams.base import Examples, TaskStream
from trainers.streams.competing import competing_outputs, distillation_outputs


def slots(stream: TaskStream, seed: int, method: Method, values: Hyperparameters) -> int:
    """Returns the number of slots of the episodic memory.

    As many as are asked for, but no more than there are examples to fill them.
    """
    if method.memory is None:
        return 0
    per_task: int = values.memory * stream.classes
    sizes = [stream.size(seed, task) for task in stream.tasks]
    if method.memory == RESERVOIR:  # takes examples in as they are seen, of the last task, too
        return min(per_task * len(sizes), sum(sizes))
    return sum(min(per_task, size) for size in sizes[:-1])


def smallest_batch(stream: TaskStream, seed: int, method: Method, values: Hyperparameters, together: bool) -> int:
    """Returns the size of the smallest batch that passes through a network on its own in training.

    together: whether reference batches pass with the mini-batches.
    """
    sizes = [stream.size(seed, task) for task in stream.tasks]
    # The last mini-batch of a pass may be short; a pass that is cut does without it.
    batches: list[int] = [
        values.batch_size if steps_of_first(size, values) < steps_of_pass(size, values) else last
        for size in sizes
        for last in (size % values.batch_size or values.batch_size,)
    ]
    place: int = values.memory * stream.classes if method.memory else 0
    if together or not place:
        return min(batches)
    if method.memory == PER_TASK:
        return min(*batches, *(min(place, size) for size in sizes[:-1]))
    # What is stored only grows: after a first task, or of a reservoir after the first step.
    first: int = values.batch_size if method.memory == RESERVOIR else sizes[0]
    drawn: int = values.memory_batch or place
    return min(*batches, place, first, drawn)


class Pool:
    """A matrix of rows: memory slots first, then the current task in training order, so a batch is one gather.

    inputs [rows, …] as the stream has them; labels [rows]. Slots that are not filled yet hold zeros and no schedule
    names them. shown: examples of the current task; first_pass: steps of the first pass over them.
    """

    def __init__(self, stream: TaskStream, seed: int, method: Method, values: Hyperparameters) -> None:
        self._stream, self.seed, self._memory, self._values = stream, seed, method.memory, values
        self.slots = slots(stream, seed, method, values)
        self._parts: list[int] = []  # what is stored of each task
        draws = (method.rule.draws, method.rule.stores) if isinstance(method.rule, Losses) else ()
        self._reservoir = Reservoir(self.slots, seed, *draws)
        rows = self.slots + max(stream.size(seed, task) for task in stream.tasks)
        self.inputs = stream.room(rows)
        self.labels = np.zeros(rows, dtype=np.int64)
        self.shown = self.first_pass = self._newest = 0
        self._tests: dict[tuple[int, int | None], Examples] = {}
        self._competing: dict[int, NDArray[np.bool_] | None] = {}

    @property
    def stored(self) -> int:
        """Number of examples in the memory's slots."""
        return sum(self._parts)

    def load_task(self, task: int) -> tuple[Segment, ...]:
        """Puts the task's training set behind the memory and returns all its batches.

        Those of every pass: a later one shows the same rows in another order.
        """
        number, stream = self._stream.tasks[task], self._stream
        self._newest = task
        order = stream.order(self.seed, number)
        self.shown, current = len(order), slice(self.slots, self.slots + len(order))
        self.inputs[current], self.labels[current] = stream.train(self.seed, number, order)
        steps, self.first_pass = (count(len(order), self._values) for count in (steps_of_task, steps_of_first))
        batches = task_batches(self.seed, number, len(order), self._values.batch_size, steps, self.slots)
        draw = self._values.get("memory_batch")  # of each previous task GEM takes all
        if self._memory == RESERVOIR:
            return self._reservoir.segments(number, batches, draw, self.first_pass)
        reference = reference_batches(self.seed, number, self.stored, draw, steps)
        parts = tuple(self._parts) if self._memory == PER_TASK else (reference.shape[1],) if self.stored else ()
        return task_segments(batches, reference, parts)

    def remember(self, task: int) -> None:
        """Copies examples of the finished task into the memory, where the next task reads them."""
        # Nothing comes after the last task that could read it.
        if self.slots == 0 or task == len(self._stream.tasks) - 1:
            return
        if self._memory == RESERVOIR:
            slots, rows = self._reservoir.settle()
        else:
            number, labels = self._stream.tasks[task], self.labels[self.slots : self.slots + self.shown]
            rows = self.slots + memory_choice(self.seed, number, labels, self._values.memory)
            slots = self.stored + np.arange(len(rows))
            self._parts.append(len(rows))
        self.inputs[slots], self.labels[slots] = self.inputs[rows], self.labels[rows]

    def competing(self, tested: int = 0) -> NDArray[np.bool_] | None:
        """Returns the competing outputs, as `streams.competing` has them, while the current task is the newest one.

        tested: position of a task that is tested, which is the newest one if it comes later.
        """
        newest = max(self._newest, tested)
        if newest not in self._competing:
            self._competing[newest] = competing_outputs(self._stream, self.seed, newest)
        return self._competing[newest]

    def sample(self, count: int) -> Indices:
        """Returns rows of so many of the current task's examples, or all, of those that its first pass shows.

        Drawn uniformly without replacement, by a generator of their own.
        """
        draw = generator(self.seed, "representations", self._stream.tasks[self._newest])
        examples = min(self.shown, self.first_pass * self._values.batch_size)
        return self.slots + draw.permutation(examples)[:count]

    @property
    def distillation_outputs(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """`streams.competing.distillation_outputs` of the current task."""
        return distillation_outputs(self._stream, self.seed, self._newest)

    def test(self, task: int, images: int | None = None) -> Examples:
        """Returns the task's test set, or so many of its examples; kept, as every later task is tested on it too.

        They are drawn once, uniformly without replacement and so not by class, in the test set's order, by a generator
        of their own: what is drawn for training stays as it is.
        """
        if (task, images) not in self._tests:
            number = self._stream.tasks[task]
            if images is None:
                self._tests[task, images] = self._stream.test(self.seed, number)
            else:
                inputs, labels = self.test(task)
                draw = generator(self.seed, "measure", number)
                rows = np.sort(draw.choice(len(labels), min(images, len(labels)), replace=False))
                self._tests[task, images] = Examples(inputs[rows], labels[rows])
        return self._tests[task, images]
