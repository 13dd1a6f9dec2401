"""Floating point operations of one member's run, counted from shapes, sizes and the schedule's rules.

Counted are the matrix products and convolutions of every pass through the network: forward and backward of mini-batches
and of reference batches, of what a method's end of a task needs (MAS), of frozen columns (PROGNN), and the forward
passes of all tests. A multiplication and an addition are two.

Not counted is what is done for each number rather than each product, which is small beside it: activations, batch
normalisation, pooling and losses; the update; the rules themselves (inner products of gradients, penalties, GEM's
quadratic program); the choice of batches. Nor what engines save or add: zero pixels left out, padding, first tasks
that members share. Each class is taken to fill its place in the memory, where the task shows examples enough.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from trainers.cohort import LEARNING_CURVE_BATCHES, TrainConfig
from trainers.cost.network_flops import Work, column_works, work_of
from trainers.methods import METHODS, Columns, Penalty
from trainers.methods.base import PER_TASK, RESERVOIR
from trainers.networks import MLP, ResNet, make_network
from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.disjoint import PERMUTATIONS


class Reference(NamedTuple):
    """Examples and batches of references in all steps of a task."""

    examples: int
    batches: int


class RunFlop(NamedTuple):
    """Of one member, by the stream's tasks: all training on it, and all tests from its start to the next one's."""

    training: tuple[float, ...]
    tests: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.training) + sum(self.tests)


def run_flop(method: str, config: TrainConfig, stream: TaskStream, transfer: bool, seed: int = 0) -> RunFlop:
    """FLOP of one member's run on the stream, as this file counts them; transfer: as for `train_cohort`."""
    works = _works(method, config, stream)
    alike = getattr(stream, "content", "") == PERMUTATIONS  # all tasks are tested with the same images
    tested_once = stream.tasks[:1] if alike else stream.tasks
    tests = [len(stream.test(seed, task).labels) for task in tested_once] * (len(stream.tasks) if alike else 1)
    training = tuple(_training(method, config, stream, works, seed))
    grows = isinstance(METHODS[method].rule, Columns)
    steps = [steps_of(stream, config, seed, task) for task in range(len(works))]
    tested = (_tested(task, steps, transfer, grows) for task in range(len(works)))
    return RunFlop(training, tuple(sum(times * _test(works[j], tests[j]) for j, times in one) for one in tested))


def steps_of(stream: TaskStream, config: TrainConfig, seed: int, task: int) -> int:
    """Steps of the stream's task number `task`, counted from 0."""
    return -(-stream.size(seed, stream.tasks[task]) // config.batch_size)


def references(method: str, config: TrainConfig, stream: TaskStream, seed: int = 0) -> list[Reference]:
    """Of each of the stream's tasks."""
    kind, place = METHODS[method].memory, config.memory * stream.classes
    sizes = [stream.size(seed, task) for task in stream.tasks]
    if kind == RESERVOIR:
        return _reservoir(config, place * len(sizes), sizes)
    found, stored = [], 0
    for task, size in enumerate(sizes):
        steps = steps_of(stream, config, seed, task)
        drawn = stored if kind == PER_TASK or config.memory_batch is None else min(config.memory_batch, stored)
        batches = (task if kind == PER_TASK else 1) if drawn else 0
        found.append(Reference(steps * drawn, steps * batches))
        stored += min(place, size) if kind else 0
    return found


def _reservoir(config: TrainConfig, capacity: int, sizes: list[int]) -> list[Reference]:
    """Before each step every example seen so far is stored, up to the capacity. A step's batches pass as one."""
    found, seen = [], 0
    for size in sizes:
        stored = np.minimum(seen + np.arange(0, size, config.batch_size), capacity)
        drawn = stored if config.memory_batch is None else np.minimum(stored, config.memory_batch)
        found.append(Reference(int(drawn.sum()), 0))
        seen += size
    return found


def _works(method: str, config: TrainConfig, stream: TaskStream) -> list[Work]:
    """Of the network at each of the stream's tasks."""
    net, count = make_network(config, stream), len(stream.tasks)
    size = cast(ImageStream, stream).pixels.shape[1] if isinstance(net, ResNet) else 0
    if isinstance(METHODS[method].rule, Columns):
        assert isinstance(net, (MLP, ResNet))
        return column_works(net, count, size)
    return [work_of(net, size)] * count


def _training(method: str, config: TrainConfig, stream: TaskStream, works: list[Work], seed: int) -> Iterator[float]:
    for task, reference in enumerate(references(method, config, stream, seed)):
        size, steps = stream.size(seed, stream.tasks[task]), steps_of(stream, config, seed, task)
        found = works[task].trained(size + reference.examples, steps + reference.batches)
        rule = METHODS[method].rule
        once_more = isinstance(rule, Penalty) and rule.looks_back and task < len(works) - 1
        yield found + (works[task].trained(size, steps) if once_more else 0.0)


def _tested(task: int, steps: list[int], transfer: bool, grows: bool) -> Iterator[tuple[int, int]]:
    """(a task, how often it is tested) while `task` is the newest.

    What a growing network knows of tasks before the last one stays as it was tested.
    """
    for seen in range(max(task - 1, 0) if grows else 0, task + 1):
        yield seen, 1
    if transfer:
        yield task, min(LEARNING_CURVE_BATCHES, steps[task])
        yield from ((other, 1) for other in range(task + 1, min(task + 2, len(steps))))
        yield from ((untrained, 1) for untrained in range(len(steps) if task == 0 else 0))


def _test(work: Work, examples: int) -> float:
    """The classes of a joint embedding are counted once a test."""
    return examples * work.forward + work.fixed_forward
