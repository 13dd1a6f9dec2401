"""Bytes that a method keeps from task to task beside its network."""

from typing import cast

from trainers.cohort import Architecture, Learner
from trainers.footprint import FLOAT, bytes_of_one
from trainers.methods import Columns, Losses, Penalty, Subspaces
from trainers.methods.subspaces import lengths_of
from trainers.networks import MLP, make_network
from trainers.pool import slots
from trainers.streams.base import TaskStream, bytes_of_example
from trainers.streams.competing import scenario_of

EXAMPLES, LOGITS, ARRAYS, BASES, COLUMNS = "examples", "logits", "arrays", "bases", "columns"
"""Kinds of what is kept: images with their labels; logits beside them; arrays of the network's size, a teacher among
them; bases of layers' inputs; columns of a network that grows."""


def bytes_kept(learner: Learner, stream: TaskStream, architecture: Architecture) -> dict[str, int]:
    """Returns the bytes that a learner keeps from task to task beside the network of one task, by kind; no zeros.

    Examples are those of a full memory, or of all tasks where these are shown together. Arrays are those of a penalty
    (importance, θ*, paths, …), or a teacher. Bases are square matrices, which they may come to fill. What an optimizer
    remembers is not counted, as every method may have it.
    """
    declared, sizes = learner.declared, dict.fromkeys((EXAMPLES, LOGITS, ARRAYS, BASES, COLUMNS), 0)
    if declared.foreign:
        return {}
    stored = slots(stream, learner.seed, declared, learner.hyperparameters)
    if declared.union is not None:
        stored = sum(stream.size(learner.seed, task) for task in stream.tasks)
    sizes[EXAMPLES] = stored * bytes_of_example(stream)
    net = make_network(architecture, stream)
    if isinstance(declared.rule, Penalty):
        sizes[ARRAYS] = declared.rule.state_arrays * FLOAT * int(net.real.sum())
    if isinstance(declared.rule, Losses):
        sizes[LOGITS] = stored * stream.outputs * FLOAT * declared.rule.stores
        sizes[ARRAYS] = FLOAT * int(net.real.sum()) * declared.rule.taught
    if isinstance(declared.rule, Subspaces):
        sizes[BASES] = FLOAT * sum(length**2 for length in lengths_of(cast(MLP, net).sizes, scenario_of(stream)))
    if isinstance(declared.rule, Columns):
        plain = Learner(learner.method, learner.hyperparameters.but(optimizer="sgd", momentum=0.0), learner.seed)
        sizes[COLUMNS] = bytes_of_one(plain, stream, architecture) - FLOAT * net.row
    return {kind: count for kind, count in sizes.items() if count}


def largest_memory(budget: int, learner: Learner, stream: TaskStream, architecture: Architecture) -> int:
    """Returns the most examples per class and task with which a learner keeps at most `budget` bytes; 0 for none.

    More than the stream has are not asked for: with the result, the memory may hold every example.
    """

    def total_bytes(memory: int) -> int:
        values = learner.hyperparameters.but(memory=memory)
        return sum(bytes_kept(Learner(learner.method, values, learner.seed), stream, architecture).values())

    low, high = 0, max(stream.size(learner.seed, task) for task in stream.tasks)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total_bytes(middle) <= budget else (low, middle - 1)
    return low
