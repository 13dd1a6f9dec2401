"""Reference rows: streams that show the tasks of another one together.

Joint training bounds A_T from above: at task k a new network is trained on the tasks up to k together. Training on
i.i.d. data takes the steps of the stream itself, but every task may appear in each of them: its lead over a method is
the cost of the order of the tasks.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trainers.hyperparameters import Hyperparameters
from trainers.methods.rules import JOINT, Method
from trainers.schedule import generator
from trainers.streams.base import Examples, Labels, TaskStream
from trainers.streams.wrapper import StreamWrapper


class _Union(StreamWrapper):
    """Shows examples of several tasks together; the tests, and all else, are those of the stream.

    A position among the training examples is (number of the task's place) · LARGEST + the position within the task.
    """

    LARGEST = 2**40

    def train(self, seed: int, task: int, order: Labels) -> Examples:
        """Returns the training examples at the positions `order`, of several tasks."""
        places, positions = np.divmod(order, self.LARGEST)
        inputs, labels = self._stream.room(len(order)), np.empty(len(order), dtype=np.int64)
        for place in np.unique(places):
            rows = places == place
            inputs[rows], labels[rows] = self._stream.train(seed, self._stream.tasks[place], positions[rows])
        return Examples(inputs, labels)

    def _together(self, seed: int, places: Sequence[int], purpose: str, draw: int) -> Labels:
        """Returns the positions of all examples that tasks show, in one random order."""
        of_task = [place * self.LARGEST + self._stream.order(seed, self._stream.tasks[place]) for place in places]
        return np.asarray(generator(seed, purpose, draw).permutation(np.concatenate(of_task)))


class JointStream(_Union):
    """At every `every`-th task, and at the last one, shows the tasks so far together; at others nothing.

    every: None for the last one alone.
    """

    def __init__(self, stream: TaskStream, every: int | None) -> None:
        super().__init__(stream)
        self._every = every

    def size(self, seed: int, task: int) -> int:
        """Returns the number of training examples that are shown; 0 where nothing is trained."""
        return sum(self._stream.size(seed, self._stream.tasks[place]) for place in self._places(task))

    def order(self, seed: int, task: int) -> Labels:
        """Returns their positions, in a random order."""
        return self._together(seed, self._places(task), "joint", task)

    def _places(self, task: int) -> range:
        """Returns the places in the stream of the tasks that are shown."""
        count = self._stream.tasks.index(task) + 1
        trains = count == len(self._stream.tasks) or (self._every is not None and count % self._every == 0)
        return range(count if trains else 0)


class IidStream(_Union):
    """Shows the examples of all tasks in one random order, cut into as many parts, of the tasks' sizes."""

    mixed = True
    """All classes are seen from the first part on."""

    def __init__(self, stream: TaskStream) -> None:
        super().__init__(stream)
        self._orders: dict[int, list[NDArray[np.int64]]] = {}

    def order(self, seed: int, task: int) -> Labels:
        """Returns the positions of a part."""
        tasks = self._stream.tasks
        if seed not in self._orders:
            ends = np.cumsum([self._stream.size(seed, number) for number in tasks])
            self._orders[seed] = np.split(self._together(seed, range(len(tasks)), "iid", 0), ends[:-1])
        return self._orders[seed][tasks.index(task)]


def union_of(method: Method, values: Hyperparameters, stream: TaskStream) -> TaskStream:
    """Returns the stream on which learners of a method are trained: its own, or with tasks together."""
    if method.union is None or isinstance(stream, _Union):
        return stream
    return cast(TaskStream, JointStream(stream, values.joint_every) if method.union == JOINT else IidStream(stream))
