"""Forks: runs that continue another run with other hyperparameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from trainers.cohort import Learner
from trainers.hyperparameters import BATCH_SIZE, STEPS, Hyperparameter, Hyperparameters, Value
from trainers.passes import steps_of_task

if TYPE_CHECKING:  # forks are plain values, too
    from trainers.streams.base import TaskStream


@dataclass(frozen=True)
class Fork(Learner):
    """A learner that was another one, of the same method and seed, until the end of a task.

    `train_cohort` begins it with what was kept of the other run after that task, `train_path` trains that where it was
    not kept. Raises ValueError, in one line, where that cannot be.
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
        for hyperparameter in self.declared.hyperparameters:
            before, now = (
                values.get(hyperparameter.name) for values in (self.origin.hyperparameters, self.hyperparameters)
            )
            if is_fixed(hyperparameter, self.hyperparameters) and before != now:
                raise ValueError(
                    f"{hyperparameter.name} must stay the same throughout a run, got {before} and then {now}"
                )


def is_fixed(hyperparameter: Hyperparameter, values: Hyperparameters) -> bool:
    """Returns whether a hyperparameter must stay the same throughout a run, whose hyperparameters have these values."""
    # A pass that is cut offers a reservoir as many examples as the mini-batches hold.
    return hyperparameter.fixed or (hyperparameter.name == BATCH_SIZE.name and values.get(STEPS.name) is not None)


def fork(origin: Learner, after: int, **values: Value) -> Fork:
    """Returns the learner that goes on from the end of a task with these values; those not given stay.

    >>> fork(Learner.of("agem", seed=3), 1, lr=0.02).hyperparameters.lr
    0.02
    >>> fork(Learner.of("agem", seed=3), 1, memory=10)
    Traceback (most recent call last):
    ValueError: memory must stay the same throughout a run, got 25 and then 10
    """
    return Fork(origin.method, origin.hyperparameters.but(**values), origin.seed, origin, after)


def line_of(learner: Learner) -> list[Learner]:
    """Returns the learner and its origins, the newest first.

    >>> one = Learner.of("van", seed=3)
    >>> line_of(fork(one, 4, lr=0.02))[1:] == [one]
    True
    """
    return [learner, *(line_of(learner.origin) if isinstance(learner, Fork) else ())]


def values_at(learner: Learner, task: int) -> Hyperparameters:
    """Returns the values with which a task is trained: its position in the stream, counted from 0."""
    while isinstance(learner, Fork) and task <= learner.after:
        learner = learner.origin
    return learner.hyperparameters


Schedule = Sequence[tuple[int, Hyperparameters]]
"""(position of the first task, the values from that task on), in order of the tasks."""


def schedule_of(learner: Learner) -> tuple[tuple[int, Hyperparameters], ...]:
    """Returns (position of the first task, the values from that task on), for the first task and for each change.

    A fork that changes no value adds none.

    >>> one = fork(fork(Learner.of("van", seed=3), 0, lr=0.02), 4)
    >>> [(begin, values.lr) for begin, values in schedule_of(one)]
    [(0, 0.1), (1, 0.02)]
    """
    if not isinstance(learner, Fork):
        return ((0, learner.hyperparameters),)
    before = schedule_of(learner.origin)
    same = before[-1][1] == learner.hyperparameters
    return before if same else (*before, (learner.after + 1, learner.hyperparameters))


def learner_of(method: str, seed: int, schedule: Schedule) -> Learner:
    """Returns the learner that has these values from these tasks on, as `schedule_of` has them.

    >>> one = fork(fork(Learner.of("van", seed=3), 0, lr=0.02), 4, lr=0.03)
    >>> learner_of("van", 3, schedule_of(one)) == one
    True
    >>> learner_of("van", 3, schedule_of(one)[1:])
    Traceback (most recent call last):
    ValueError: a schedule must begin with task 0, got 1
    """
    if not schedule or schedule[0][0]:
        raise ValueError(f"a schedule must begin with task 0, got {schedule[0][0] if schedule else 'none'}")
    learner = Learner(method, schedule[0][1], seed)
    for begin, values in schedule[1:]:
        learner = Fork(method, values, seed, learner, begin - 1)
    return learner


def normal_form(learner: Learner) -> Learner:
    """Returns the learner without forks that change no value: it is trained alike, and equal to others of its schedule.

    >>> one = Learner.of("van", seed=3)
    >>> normal_form(fork(fork(one, 0), 4, lr=0.02)) == fork(one, 4, lr=0.02)
    True
    """
    return learner_of(learner.method, learner.seed, schedule_of(learner))


def steps_of(learner: Learner, stream: "TaskStream") -> list[int]:
    """Returns the SGD steps at each of the stream's tasks."""
    from trainers.streams.union import union_of  # brings NumPy along

    stream = union_of(learner.declared, learner.hyperparameters, stream)
    return [
        steps_of_task(stream.size(learner.seed, number), values_at(learner, task))
        for task, number in enumerate(stream.tasks)
    ]


def cut_of(learner: Learner, stream: "TaskStream", share: float) -> tuple[int, int | None]:
    """Returns (tasks, steps of the last of them, None for all), where a share of the stream's SGD steps ends.

    As `Training.until` and `Training.last_steps` have them; a part of a step is left out, but for the first one. share:
    in (0, 1], else raises ValueError.

    >>> from pathlib import Path
    >>> from trainers.streams import open_stream
    >>> stream = open_stream("permuted_digits", Path("."), range(3), examples_per_task=200)
    >>> [cut_of(Learner.of("van", seed=3), stream, share) for share in (0.001, 1 / 3, 0.35, 1)]
    [(1, 1), (1, None), (2, 1), (3, None)]
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share}")
    steps = steps_of(learner, stream)
    # Of the simple fraction that is meant: 0.29 * 100 is less than 29.
    steps_before = max(1, int(Fraction(share).limit_denominator(10**6) * sum(steps)))
    task, end = next((task, end) for task, end in enumerate(accumulate(steps)) if end >= steps_before)
    return task + 1, None if end == steps_before else steps[task] - (end - steps_before)


def describe(learner: Learner) -> dict[str, Any]:
    """Returns the facts that distinguish the learner within its method, JSON-able."""
    facts: dict[str, Any] = {"hyperparameters": learner.identity, "seed": learner.seed}
    if isinstance(learner, Fork):
        facts |= {"origin": describe(learner.origin), "after": learner.after}
    return facts
