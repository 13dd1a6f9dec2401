"""Estimates the memory of a cohort before training."""

from typing import cast

from trainers.capacity import GIB
from trainers.cohort import Architecture, Cohort, Learner
from trainers.engines import optimizers
from trainers.engines.feed import on_device
from trainers.methods import PER_TASK, RESERVOIR, Columns, Losses, Method, Penalty, Projection, Subspaces
from trainers.methods.subspaces import lengths_of, wide
from trainers.networks import MLP, Network, OwnNetwork, ResNet, make_network
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.numeric_path import NumericPath
from trainers.passes import examples_of_task, steps_of_task
from trainers.pool import slots
from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.competing import scenario_of
from trainers.streams.union import union_of

FLOAT, INDEX = 4, 8  # bytes
LISTED = 6  # of a pixel in a list of those that are not zero: its number and its value
COPIES = 3  # of the parameters and what goes with them, while a graph is compared with the code
ALONE = (Projection, Columns)  # the kinds of rules whose steps no graph holds
PER_OUTPUT = 3.3  # bytes that a step takes for each byte of the outputs of all convolutions, as measured
PER_KEPT = 1.6  # of a user's network, for each byte that its forward pass keeps; measured were 1.2 to 1.8


def bytes_of_one(learner: Learner, stream: TaskStream, architecture: Architecture) -> int:
    """Returns the bytes of one more learner: parameters, and the arrays of its method and of an optimizer.

    A growing network has a column a task.
    """
    architecture.check(learner.declared)
    optimised = 0 if learner.declared.foreign else optimizers.arrays(learner.hyperparameters)
    rule, net, tasks = learner.declared.rule, make_network(architecture, stream), len(stream.tasks)
    if isinstance(rule, Columns):
        grown = ResNetColumns(net, tasks) if isinstance(net, ResNet) else MLPColumns(cast(MLP, net).sizes, tasks)
        return FLOAT * grown.row * (1 + optimised)
    arrays = rule.state_arrays if isinstance(rule, Penalty) else int(isinstance(rule, Losses) and rule.taught)
    stored = slots(stream, learner.seed, learner.declared, learner.hyperparameters) * _draws(learner.declared)[1]
    spans = lengths_of(cast(MLP, net).widths, scenario_of(stream)) if isinstance(rule, Subspaces) else []
    numbers = stored * stream.outputs + sum(span * wide(span) for span in spans)
    return FLOAT * (net.row * (1 + optimised + arrays) + numbers)


def bytes_at_work(learner: Learner, stream: TaskStream, architecture: Architecture, count: int) -> int:
    """Returns the bytes of a step of `count` learners in one batch: activations and gradients."""
    net, method, values = make_network(architecture, stream), learner.declared, learner.hyperparameters
    stored = slots(stream, 0, method, values)
    largest = -(-stored // max(1, len(stream.tasks) - 1))  # of the parts that GEM's gradients are computed from
    drawn = largest if method.memory == PER_TASK else min(values.get("memory_batch") or stored, stored)
    # Reference batches and the mini-batch pass one after another, but for those of a reservoir, which are one.
    drawn *= _draws(method)[0]
    batch = drawn + values.batch_size if method.memory == RESERVOIR else max(drawn, values.batch_size)
    gradients = len(stream.tasks) if isinstance(method.rule, Projection) else 1 + (method.memory is not None)
    # What an optimizer makes of its arrays is of their size, for a moment.
    gradients += optimizers.arrays(values)
    return int(count * (batch * _activations(net, stream) + 2 * gradients * FLOAT * net.row))


def bytes_of_seed(learner: Learner, stream: TaskStream, path: NumericPath) -> int:
    """Returns the bytes that learners of a seed share: memory, largest task with its schedule, tests of all tasks.

    With lists of pixels that are not zero, where these are made beside the images, and in the place of the tests'.
    """
    method, values, seed = learner.declared, learner.hyperparameters, learner.seed
    stored, largest = slots(stream, seed, method, values), max(stream.size(seed, task) for task in stream.tasks)
    drawn = stored if method.memory == PER_TASK else min(values.get("memory_batch") or stored, stored)
    steps = steps_of_task(largest, values)
    tests = sum(part.nbytes for part in stream.test(seed, stream.tasks[0])) * len(stream.tasks)
    row = stream.room(1).nbytes + INDEX  # an example and its label
    listed = path.listed and not isinstance(method.rule, Columns)
    lists = LISTED * float(getattr(stream, "density", 0.0)) if listed else 0.0
    draws, stores = _draws(method)
    schedule = (steps * draws * drawn + examples_of_task(largest, values)) * (1 + stores) * INDEX
    return int((stored + largest) * row * (1 + lists) + schedule + tests * (lists or 1))


def _draws(method: Method) -> tuple[int, bool]:
    """Returns (draws of the memory in a step, whether logits are stored)."""
    return (method.rule.draws, method.rule.stores) if isinstance(method.rule, Losses) else (1, False)


def bytes_of(cohort: Cohort, stream: TaskStream, architecture: Architecture, path: NumericPath) -> int:
    """Returns the bytes of a cohort on the device that trains it.

    The images that all tasks share are included where they go there.
    """
    count, seeds = len(cohort.learners), len({learner.seed for learner in cohort.learners})
    first = min(cohort.learners, key=lambda learner: learner.seed)
    stream = union_of(first.declared, first.hyperparameters, stream)
    alone = path.one_by_one or not make_network(architecture, stream).together
    # A graph has memory of its own beside that of steps without it; what it leaves is compared with copies.
    copies, worked = (COPIES, 2) if path.device == "cuda" and not isinstance(first.declared.rule, ALONE) else (1, 1)
    return (
        bytes_of_images(stream, path)
        + copies * count * bytes_of_one(first, stream, architecture)
        + bytes_of_seed(first, stream, path) * (1 if path.one_seed_at_a_time else seeds)
        + worked * bytes_at_work(first, stream, architecture, 1 if alone else count)
    )


def bytes_of_images(stream: TaskStream, path: NumericPath) -> int:
    """Returns the bytes of images that a GPU has once for all cohorts of a process.

    0 where they stay on the host, or are on the GPU already.
    """
    pixels = getattr(stream, "pixels", None)
    return 0 if path.device == "cpu" or pixels is None or on_device(pixels, path.device) else int(pixels.nbytes)


def check_images(stream: TaskStream, path: NumericPath, free: int | None) -> None:
    """Raises MemoryError, with one line, where images do not fit into `free` bytes; fewer members would not."""
    needed = bytes_of_images(stream, path)
    if free is not None and needed > free:
        raise MemoryError(
            f"the images need {needed / GIB:.1f} GiB of the GPU, of which {free / GIB:.1f} GiB may be taken; "
            "a smaller image-size takes less"
        )


def _activations(net: Network, stream: TaskStream) -> int:
    """Returns bytes that one example's activations take in training."""
    if isinstance(net, OwnNetwork):
        return int(PER_KEPT * net.facts.kept)
    if isinstance(net, ResNet):
        return int(FLOAT * PER_OUTPUT * net.activations(cast(ImageStream, stream).pixels.shape[1]))
    return FLOAT * 2 * sum(cast(MLP, net).widths)
