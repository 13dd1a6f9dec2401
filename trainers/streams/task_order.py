"""Orders of a stream's tasks: drawn by number, or listed."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from trainers.schedule import generator
from trainers.streams.base import TaskStream
from trainers.streams.wrapper import StreamWrapper

Order: TypeAlias = int | tuple[int, ...]
"""The number of a drawn order, 0 for the stream's own; or the numbers of all tasks, in their order."""


def in_order(stream: TaskStream, order: Order) -> TaskStream:
    """Returns the stream with its tasks in another order; each keeps its examples, wherever it stands.

    A stream whose classes are split into tasks has a drawn order of its classes in place of one of its tasks.
    """
    if order == 0 or order == tuple(stream.tasks):
        return stream
    if isinstance(order, tuple):
        return cast(TaskStream, _Ordered(stream, order))
    if splits_classes(stream):
        return cast(TaskStream, cast(Any, stream).with_class_order(order))
    places = drawn_order(order, min(stream.tasks), len(stream.tasks))
    return cast(TaskStream, _Ordered(stream, [stream.tasks[place] for place in places]))


def splits_classes(stream: TaskStream) -> bool:
    """Returns whether an order of the stream is one of its classes."""
    return hasattr(stream, "with_class_order")


@lru_cache(maxsize=4096)
def drawn_order(number: int, first: int, tasks: int) -> tuple[int, ...]:
    """Returns the places of tasks in the order of that number: no two numbers have the same one.

    first: number of the stream's first task. Number 0 is the stream's own order, the others are drawn uniformly, by a
    generator of their own, whatever the seed. Raises ValueError where there are no more orders of so many tasks.

    >>> drawn_order(0, 0, 3), len({drawn_order(number, 0, 3) for number in range(6)})
    ((0, 1, 2), 6)
    """
    if tasks <= MOST_TASKS and number >= math.factorial(tasks):
        raise ValueError(f"orders must be <= {math.factorial(tasks)}, as {tasks} tasks have no more, got {number + 1}")
    if number == 0:
        return tuple(range(tasks))
    earlier = {drawn_order(index, first, tasks) for index in range(number)}
    draws = generator(number, "task order", first)
    while True:
        if (order := tuple(draws.permutation(tasks).tolist())) not in earlier:
            return order


@lru_cache(maxsize=4096)
def drawn_classes(number: int, first: int, tasks: int, per_task: int) -> tuple[int, ...]:
    """Returns the places of a stream's classes, task after task, in the order of that number, as `drawn_order`.

    per_task: classes of a task. No two numbers give every task the same classes. Raises ValueError where there are no
    more.

    >>> drawn_classes(0, 0, 2, 2), len({drawn_classes(number, 0, 2, 2) for number in range(6)})
    ((0, 1, 2, 3), 6)
    """
    count = tasks * per_task
    if count <= MOST_TASKS and number >= (most := math.factorial(count) // math.factorial(per_task) ** tasks):
        raise ValueError(
            f"orders must be <= {most}, as {count} classes in {tasks} tasks have no more, got {number + 1}"
        )
    if number == 0:
        return tuple(range(count))
    earlier = {_sets(drawn_classes(index, first, tasks, per_task), per_task) for index in range(number)}
    draws = generator(number, "class order", first)
    while True:
        order = tuple(draws.permutation(count).tolist())
        if _sets(order, per_task) not in earlier:
            return order


def _sets(classes: tuple[int, ...], per_task: int) -> tuple[frozenset[int], ...]:
    """Returns the classes of each task, whatever their order."""
    return tuple(frozenset(classes[place : place + per_task]) for place in range(0, len(classes), per_task))


MOST_TASKS = 12
"""Tasks, or classes, of which there may be fewer orders than a study asks for; of more there are enough."""


class _Ordered(StreamWrapper):
    """A stream whose tasks stand in another order."""

    def __init__(self, stream: TaskStream, tasks: Sequence[int]) -> None:
        super().__init__(stream)
        self.tasks = tuple(tasks)

    def describe(self) -> dict[str, Any]:
        """Returns the stream's facts, and the order of its tasks."""
        return self._stream.describe() | {ORDER: list(self.tasks)}


ORDER = "order"
"""Part of a description: the tasks' numbers, in their order."""


def with_first_task_of(described: dict[str, Any]) -> dict[str, Any]:
    """Returns a description of the first task: the same in all orders that begin with it.

    Of a stream in its own order, the description itself.
    """
    if ORDER not in described:
        return described
    first, *_ = tasks = described[ORDER]
    return {name: value for name, value in described.items() if name != ORDER} | (
        {} if first == min(tasks) else {"first": first}
    )
