"""Counts the floating point operations of a run, by formula.

From shapes, sizes and the rules of the schedule. Counted are the matrix products and convolutions of every pass through
the network: forward and backward of mini-batches and of reference batches, of what a method's end of a task needs
(MAS, GPM), of frozen columns (PROGNN), of projected layers (GPM), and the forward passes of all tests. A multiplication
and an addition are two.

Not counted is what is done for each number rather than each product, which is small beside it: activations, batch
normalisation, pooling and losses; the update; the rules themselves (inner products of gradients, penalties, GEM's
quadratic program, GPM's decompositions); the choice of batches. Nor what engines save or add: zero pixels left out,
padding, first tasks that learners share. Each class is taken to fill its place in the memory, where the task shows
examples enough.

`later_steps` adds what does not grow with products, for the order of jobs and the ETA.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import numpy as np

from trainers.cohort import LEARNING_CURVE_BATCHES, Architecture, Learner
from trainers.cost.network_flops import Work, column_works, work_of
from trainers.forks import steps_of, values_at
from trainers.methods import PER_TASK, RESERVOIR, Columns, Losses, Penalty, Subspaces
from trainers.methods.subspaces import lengths_of
from trainers.networks import MLP, ResNet, make_network
from trainers.passes import examples_of_first, examples_of_task, steps_of_first
from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.competing import scenario_of
from trainers.streams.union import union_of

# What a step takes besides products, as measured on CPUs, told in examples: the FLOP of so many examples' way through
# the network and back.
OVERHEAD = 20  # fixed work: about what one of ten examples was measured to take besides them
WHOLE, ARRAY = 40, 6.5  # a penalty's whole gradient, and each array beside it


MEASURING = 0.15  # the largest share of a run's FLOP that tests inside tasks take when their distance is chosen here


def run_flop(
    learner: Learner,
    stream: TaskStream,
    architecture: Architecture,
    transfer: bool,
    measure: tuple[int, int] | None = None,
    examples: Sequence[int] | None = None,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the FLOP of a whole run by the stream's tasks: (of training, of tests up to the next task's start).

    transfer, measure: as for `Training`; tests inside a task are tests of that task. examples: `examples_of_tests`,
    where they are known.
    """
    works, together = works_of(learner, stream, architecture), learner.declared.union is not None
    examples = examples_of_tests(learner.seed, stream) if examples is None else examples
    # The classes of a joint embedding are made once a test.
    tests = [work.forward * count + work.fixed_forward for work, count in zip(works, examples, strict=True)]
    grows = isinstance(learner.declared.rule, Columns)
    first = [steps_of_first(stream.size(learner.seed, task), learner.hyperparameters) for task in stream.tasks]
    test_counts = (_test_counts(task, first, transfer and not together, grows) for task in range(len(works)))
    training = training_flop(learner, stream, works)
    ends = tuple(sum(times * tests[j] for j, times in counts) for counts in test_counts)
    inside = (0.0,) * len(works) if measure is None else inside_flop(learner, stream, works, measure, examples)
    return training, tuple(map(sum, zip(ends, inside, strict=True)))


def examples_of_tests(seed: int, stream: TaskStream) -> list[int]:
    """Returns the number of test examples of each task."""
    alike = hasattr(stream, "permutation_hash")  # with the same images, whose pixels take long to move
    counts = [len(stream.test(seed, task).labels) for task in (stream.tasks[:1] if alike else stream.tasks)]
    return counts * len(stream.tasks) if alike else counts


def inside_flop(
    learner: Learner, stream: TaskStream, works: list[Work], measure: tuple[int, int], examples: Sequence[int]
) -> tuple[float, ...]:
    """Returns the FLOP of tests inside each task.

    works: of the network at each task; measure: as for `Training`; examples: as of `examples_of_tests`.
    """
    every, images = measure
    grows = isinstance(learner.declared.rule, Columns)
    sizes = [min(images, count) for count in examples]
    tests = [work.forward * size + work.fixed_forward for work, size in zip(works, sizes, strict=True)]
    # A finished column is tested once more at the first point after its end.
    of_point = [tests[task] if grows else sum(tests[: task + 1]) for task in range(len(works))]
    again = [tests[task - 1] if grows and task else 0.0 for task in range(len(works))]
    points = [-(-steps // every) for steps in steps_of(learner, stream)]
    return tuple(count * cost + more for count, cost, more in zip(points, of_point, again, strict=True))


def measured_every(
    learner: Learner, stream: TaskStream, architecture: Architecture, transfer: bool, images: int
) -> tuple[int, float]:
    """Returns (the least distance N of tests inside tasks that take at most MEASURING of a run's FLOP, their share).

    The run's FLOP are those of training, of all other tests and of these. Where tests at the ends of tasks alone take
    more, N is the longest task. transfer: as for `Training`; images: of each task.
    """
    share = measured_share(learner, stream, architecture, transfer, images)
    low, high = 1, max(steps_of(learner, stream))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) <= MEASURING else (middle + 1, high)
    return low, share(low)


def measured_share(
    learner: Learner, stream: TaskStream, architecture: Architecture, transfer: bool, images: int
) -> Callable[[int], float]:
    """Returns a function from the distance of tests inside tasks to their share of a run's FLOP.

    transfer, images: as for `measured_every`.
    """
    works, examples = works_of(learner, stream, architecture), examples_of_tests(learner.seed, stream)
    others = sum(map(sum, run_flop(learner, stream, architecture, transfer, examples=examples)))

    def share(every: int) -> float:
        inside = sum(inside_flop(learner, stream, works, (every, images), examples))
        return inside / (others + inside)

    return share


def references(learner: Learner, stream: TaskStream) -> list[tuple[int, int]]:
    """Returns (examples, batches) of references in all steps of each task; 0 batches if they pass with mini-batches."""
    kind, values = learner.declared.memory, learner.hyperparameters
    if kind is None:
        return [(0, 0) for _ in stream.tasks]
    place, draw = values.memory * stream.classes, values.get("memory_batch")  # of each previous task GEM takes all
    sizes = [stream.size(learner.seed, task) for task in stream.tasks]
    if kind == RESERVOIR:
        offered = [examples_of_first(size, values) for size in sizes]
        replayed = _reservoir(values.batch_size, draw, place * len(sizes), offered, steps_of(learner, stream))
        if isinstance(rule := learner.declared.rule, Losses):  # each draw passes alone
            return [(rule.draws * examples, rule.draws * batches) for examples, batches in replayed]
        return [(examples, 0) for examples, _ in replayed]
    # A task with fewer examples than places is stored whole.
    stored = accumulate((min(place, size) for size in sizes[:-1]), initial=0)
    drawn = [count if draw is None else min(draw, count) for count in stored]
    passes = [(task if kind == PER_TASK else 1) if count else 0 for task, count in enumerate(drawn)]
    tasks = zip(steps_of(learner, stream), drawn, passes, strict=True)
    return [(steps * count, steps * times) for steps, count, times in tasks]


def _reservoir(
    batch_size: int, draw: int | None, slots: int, offered: list[int], steps: list[int]
) -> list[tuple[int, int]]:
    """Returns (examples, steps that have some) of each task; all seen before a step are stored, up to the slots.

    offered: examples that the first pass over each task shows.
    """
    most = slots if draw is None else min(slots, draw)
    tasks = zip(accumulate(offered[:-1], initial=0), offered, steps, strict=True)
    drawn = (np.minimum(before + np.minimum(np.arange(n) * batch_size, new), most) for before, new, n in tasks)
    return [(int(counts.sum()), int((counts > 0).sum())) for counts in drawn]


def works_of(learner: Learner, stream: TaskStream, architecture: Architecture) -> list[Work]:
    """Returns the work of the network at each of the stream's tasks.

    Raises ValueError where the method cannot train the network.
    """
    architecture.check(learner.declared)
    net, count = make_network(architecture, stream), len(stream.tasks)
    size = cast(ImageStream, stream).pixels.shape[1] if isinstance(net, ResNet) else 0
    if isinstance(learner.declared.rule, Columns):
        return column_works(cast(MLP | ResNet, net), count, size)
    first = later = work_of(net, size)
    if isinstance(learner.declared.rule, Subspaces):
        sizes = cast(MLP, net).sizes
        projected = zip(lengths_of(sizes, scenario_of(stream)), sizes[1:], strict=False)
        later = first._replace(fixed_backward=sum(2.0 * k * k * n for k, n in projected))
    return [first, *[later] * (count - 1)]


def training_flop(learner: Learner, stream: TaskStream, works: list[Work]) -> tuple[float, ...]:
    """Returns the FLOP of each task's steps, and of a method's work at the task's end.

    works: of the network at each task.
    """
    rule, steps = learner.declared.rule, steps_of(learner, stream)
    stream = union_of(learner.declared, learner.hyperparameters, stream)
    flop = []
    for task, (examples, batches) in enumerate(references(learner, stream)):
        size, work = stream.size(learner.seed, stream.tasks[task]), works[task]
        values = values_at(learner, task)
        once_more = isinstance(rule, Penalty) and rule.looks_back and task < len(works) - 1
        again = work.training_flop(examples_of_first(size, values), steps_of_first(size, values)) if once_more else 0.0
        if isinstance(rule, Losses) and rule.taught and task:  # the teacher's outputs
            again = work.forward * examples_of_task(size, values) + work.fixed_forward * steps[task]
        if isinstance(rule, Subspaces) and task < len(works) - 1:  # what every layer has as inputs
            again = work.forward * min(values.representations, examples_of_first(size, values))
        flop.append(work.training_flop(examples_of_task(size, values) + examples, steps[task] + batches) + again)
    return tuple(flop)


def _test_counts(task: int, first: list[int], transfer: bool, grows: bool) -> Iterator[tuple[int, int]]:
    """Yields (a task, how often it is tested) while `task` is the newest; first: steps of each task's first pass.

    What a growing network knows of tasks before the last one stays as it was tested.
    """
    for tested in range(max(task - 1, 0) if grows else 0, task + 1):
        yield tested, 1
    if transfer:
        # For LCA, the task after each of its first steps; for both, the next task before its first step; and for FWT,
        # the untrained network on every task.
        yield task, min(LEARNING_CURVE_BATCHES, first[task])
        yield from ((other, 1) for other in range(task + 1, min(task + 2, len(first))))
        yield from ((untrained, 1) for untrained in range(len(first) if task == 0 else 0))


class LaterSteps(NamedTuple):
    """The steps after the first task, which learners of a seed share; of a single task, its own steps."""

    steps: int
    """Of one learner."""
    each: float
    """What one takes, in FLOP, on average."""
    tests: float
    """What all tests take from the second task on, in FLOP."""
    first: float
    """What the first task takes with its tests, in FLOP; 0 of a single task."""
    weights: tuple[float, ...]
    """What one step of each of the stream's tasks takes with its share of the task's tests, in FLOP."""

    @property
    def work(self) -> float:
        """FLOP of all later steps, with the tests."""
        return self.steps * self.each + self.tests


def later_steps(
    learner: Learner,
    stream: TaskStream,
    architecture: Architecture,
    transfer: bool,
    measure: tuple[int, int] | None = None,
) -> LaterSteps:
    """Returns the later steps of a learner on a stream; transfer, measure: as for `Training`."""
    works, later = works_of(learner, stream, architecture), slice(min(1, len(stream.tasks) - 1), None)
    steps = sum(steps_of(learner, stream)[later])
    rule, fixed = learner.declared.rule, float(OVERHEAD)
    if isinstance(rule, Penalty):
        fixed += WHOLE + ARRAY * rule.state_arrays
    if isinstance(rule, (Losses, Subspaces)):
        fixed += WHOLE
    training, tests = run_flop(learner, stream, architecture, transfer, measure)
    besides = works[0].training_flop(fixed, 0)
    of_tasks = zip(training, tests, steps_of(learner, stream), strict=True)
    weights = tuple((trained + tested) / max(count, 1) + besides for trained, tested, count in of_tasks)
    first = sum(w * count for w, count in zip(weights[: later.start], steps_of(learner, stream), strict=False))
    return LaterSteps(steps, sum(training[later]) / steps + besides, sum(tests[later]), first, weights)
