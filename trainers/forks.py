"""Forks: runs that continue another run with other hyperparameters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.cohort import Learner
from trainers.hyperparameters import BATCH_SIZE, STEPS, Hyperparameters, Value
from trainers.passes import steps_of_task

if TYPE_CHECKING:  # forks are plain values, too
    from trainers.streams.base import TaskStream


@dataclass(frozen=True)
class Fork(Learner):
    """A learner that was another one, of the same method and seed, until the end of a task.

    `train_cohort` begins it with what was kept of the other run after that task (`Training.keep` "all"). Raises
    ValueError, in one line, where that cannot be.
    """

    origin: Learner
    """Who trained the tasks up to `after`; may be a fork itself."""
    after: int
    """The last of these tasks: its position in the stream, counted from 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        begun = self.origin.after + 1 if isinstance(self.origin, Fork) else 0
        if self.after < begun:
            raise ValueError(f"a fork must come after task {begun} or a later one of its origin, got {self.after}")
        if (self.method, self.seed) != (self.origin.method, self.origin.seed):
            raise ValueError(
                f"a fork has the method and the seed of its origin, got {self.method}, {self.seed} "
                f"and {self.origin.method}, {self.origin.seed}"
            )
        for one in self.declared.hyperparameters:
            before, now = (values.get(one.name) for values in (self.origin.hyperparameters, self.hyperparameters))
            # A pass that is cut offers a reservoir as many examples as the mini-batches hold.
            fixed = one.fixed or (one.name == BATCH_SIZE.name and self.hyperparameters.get(STEPS.name) is not None)
            if fixed and before != now:
                raise ValueError(f"{one.name} must stay the same throughout a run, got {before} and then {now}")


def fork(origin: Learner, after: int, **values: Value) -> Fork:
    """Returns the learner that goes on from the end of a task with these values; those not given stay.

    >>> fork(Learner.of("agem", seed=3), 1, lr=0.02).hyperparameters.lr
    0.02
    >>> fork(Learner.of("agem", seed=3), 1, memory=10)
    Traceback (most recent call last):
    ValueError: memory must stay the same throughout a run, got 25 and then 10
    """
    return Fork(origin.method, origin.hyperparameters.but(**values), origin.seed, origin, after)


def values_at(learner: Learner, task: int) -> Hyperparameters:
    """Returns the values with which a task is trained: its position in the stream, counted from 0."""
    while isinstance(learner, Fork) and task <= learner.after:
        learner = learner.origin
    return learner.hyperparameters


def steps_of(learner: Learner, stream: "TaskStream") -> list[int]:
    """Returns the SGD steps at each of the stream's tasks."""
    from trainers.streams.union import union_of  # brings NumPy along

    stream = union_of(learner.declared, learner.hyperparameters, stream)
    return [
        steps_of_task(stream.size(learner.seed, number), values_at(learner, task))
        for task, number in enumerate(stream.tasks)
    ]


def described(learner: Learner) -> dict[str, Any]:
    """Returns the facts that distinguish the learner within its method, JSON-able."""
    own: dict[str, Any] = {"hyperparameters": learner.identity, "seed": learner.seed}
    if isinstance(learner, Fork):
        own |= {"origin": described(learner.origin), "after": learner.after}
    return own
