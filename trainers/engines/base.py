"""Base classes of engines, and the state of the learners in training.

Engines differ in how they take steps and tests. Where the examples come from, how a penalty ends a task and what is
counted of a task's schedule is the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers import numeric_path
from trainers.cohort import Architecture, Cohort
from trainers.engines import optimizers
from trainers.engines.precision import set_precision
from trainers.hyperparameters import Hyperparameters
from trainers.methods.losses import Losses
from trainers.methods.penalty import Penalty, State, TaskEnd
from trainers.methods.rules import JOINT
from trainers.methods.subspaces import Subspaces, lengths_of
from trainers.networks import MLP, make_network
from trainers.networks.weights import start_rows
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.schedule import Segment
from trainers.streams.base import PixelStream, TaskStream
from trainers.streams.competing import scenario_of


@dataclass(frozen=True)
class Learners:
    """M learners on the way: what changes while they train, and what tells them apart."""

    params: Tensor
    """[M, D]."""
    seed: Tensor
    """[M], each an index into the engine's seeds."""
    own: Mapping[str, Tensor]
    """The hyperparameters in which they may differ, by name; float64 [M] each, on "mps" float32."""
    first_bad: Tensor
    """[M], the step of this task at which the loss first was not finite; -1 where it never was."""
    projected: Tensor
    """[M], how often g was projected in this task."""
    state: State
    """The arrays of a rule, [M, D] of a penalty, an optimizer's, and the network's statistics [M, …]."""

    @classmethod
    def of(cls, params: Tensor, seed: Tensor, own: Mapping[str, Sequence[float]], state: State) -> "Learners":
        """Returns learners with no step counted yet."""
        # float64: the compiled engine reads the learners' values back as they are.
        kind = torch.float32 if params.device.type in numeric_path.WITHOUT_FLOAT64 else torch.float64
        values = {name: torch.tensor(numbers, dtype=kind, device=params.device) for name, numbers in own.items()}
        bad, projected = (torch.full((len(params),), start, device=params.device) for start in (-1, 0.0))
        return cls(params, seed, values, bad, projected, state)

    def part(self, rows: slice) -> "Learners":
        """Returns some of the learners, as views: training the part trains these."""
        own, state = ({name: array[rows] for name, array in arrays.items()} for arrays in (self.own, self.state))
        return Learners(self.params[rows], self.seed[rows], own, self.first_bad[rows], self.projected[rows], state)

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        """All tensors that a step reads or changes."""
        return (self.params, *self.state.values(), self.first_bad, self.projected, self.seed, *self.own.values())

    def values(self, shared: Hyperparameters, of_rate: float = 1.0) -> Hyperparameters:
        """Returns all hyperparameters, those of their own as tensors [M] of the parameters' type.

        of_rate: the task's factor of the learning rate.
        """
        own = {**self.own, "lr": self.own["lr"] * of_rate}
        return shared.but(**{name: values.to(self.params.dtype) for name, values in own.items()})

    def reset(self) -> None:
        """Forgets the counts of the task before."""
        # In place: recorded graphs and views of these arrays stay good.
        self.first_bad.fill_(-1)
        self.projected.zero_()


class Engine(ABC):
    """Trains learners of some seeds in lockstep on the task that is loaded. Steps are numbered within the task."""

    steps = 0
    """Steps of the loaded task, of all its passes, or as `cut` leaves them."""
    first_pass = 0
    """Steps of its first pass."""
    tasks = 0
    """Tasks begun so far, the loaded one included."""
    of_rate = 1.0
    """The loaded task's factor of the learning rate."""

    def __init__(self, cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, path: NumericPath) -> None:
        self._stream, self._seeds, self._path, self._device = stream, seeds, path, torch.device(path.device)
        self._rule, self._shared = cohort.declared.rule, cohort.shared
        self._plain = optimizers.is_plain(cohort.shared)
        self._anew = cohort.declared.union == JOINT  # such a training is the first one of its network
        self._without = 0  # the loaded task's steps without a reference batch
        self._pools = [Pool(stream, seed, cohort.declared, cohort.shared) for seed in seeds]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def start(self) -> Tensor:
        """Returns the parameters [S, D] of the untrained networks, one of each seed, on the device."""

    def state(self, params: Tensor) -> State:
        """Returns the state of untrained networks [M, D]: arrays of the rule and of the optimizer."""
        of_rule = self._rule.start(params) if isinstance(self._rule, Penalty) else {}
        if isinstance(self._rule, Losses):
            of_rule = self._rule.start(params, self._pools[0].slots, self._stream.outputs)
        return of_rule | optimizers.start_state(params, self._shared)

    @abstractmethod
    def load_task(self, task: int) -> None:
        """Makes the task's training set and batches ready; task: its position in the stream, counted from 0."""

    def cut(self, steps: int) -> None:
        """Makes so many steps the loaded task's last; those before stay what they are. steps: 1 or more, not more."""
        self.steps = steps

    @property
    def reference(self) -> bool:
        """True if some of the loaded task's steps have a reference batch."""
        return self._without < self.steps

    @abstractmethod
    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner, in place; raises PrecisionError."""

    def finish(self, learners: Learners, first: bool) -> None:  # noqa: B027
        """Ends the loaded task, after its last step, for methods that look back; `first`: of the stream."""

    def remember(self, task: int) -> None:
        """Writes examples of the finished task into every seed's memory, where the method has one."""
        for pool in self._pools:
            pool.remember(task)

    def _values(self, learners: Learners) -> Hyperparameters:
        """Returns all hyperparameters, with the loaded task's learning rates."""
        return learners.values(self._shared, self.of_rate)

    @abstractmethod
    def accuracy(self, learners: Learners, task: int, images: int | None = None) -> NDArray[np.float64]:
        """Returns the share [M] of the task's test set that each learner classifies correctly.

        images: how many of its examples are tested, as `Pool.test` draws them; None for all.
        """

    def close(self) -> None:  # noqa: B027
        """Gives up what it holds of the device besides arrays; nothing is trained after it."""

    def _schedules(self, task: int) -> list[tuple[Segment, ...]]:
        """Loads the task into the pools; returns the schedule of each seed."""
        schedules, self.tasks = [pool.load_task(task) for pool in self._pools], task + 1
        with np.errstate(over="ignore"):  # a rate beyond all numbers is a run that diverges
            self.of_rate = float(np.float64(self._shared.lr_factor) ** (0 if self._anew else task))
        # Seeds that are trained together have tasks of the same size, and so segments of the same length.
        self.steps = sum(len(segment.rows) for segment in schedules[0])
        self.first_pass = self._pools[0].first_pass
        # A reservoir is empty in a task's first steps, never in its last.
        self._without = sum(len(segment.rows) for segment in schedules[0] if not segment.reference)
        return schedules


class FixedEngine(Engine):
    """For a network that all tasks share, random or pretrained at the start."""

    def __init__(
        self, cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, architecture: Architecture, path: NumericPath
    ) -> None:
        super().__init__(cohort, seeds, stream, path)
        self._net, self._pretrained = make_network(architecture, stream, path.subtracted), architecture.pretrained

    def start(self) -> Tensor:
        """Returns the parameters [S, D] of the untrained networks, one of each seed; raises DataError."""
        return start_rows(self._net, self._seeds, self._stream.tasks, self._pretrained).to(self._device)

    def state(self, params: Tensor) -> State:
        """Returns the state of untrained networks [M, D], also the spans of every layer's inputs."""
        if not isinstance(self._rule, Subspaces):
            return super().state(params)
        lengths = lengths_of(cast(MLP, self._net).widths, scenario_of(self._stream))
        return super().state(params) | self._rule.start(params, lengths)

    def finish(self, learners: Learners, first: bool) -> None:
        """Ends the loaded task: a penalty's importance is found anew and θ* moves, a teacher is made, or spans grow."""
        if isinstance(self._rule, Losses):
            self._rule.end_task(learners.state, learners.params)
        if isinstance(self._rule, Subspaces):
            self._grow(learners, self._rule)
        if isinstance(self._rule, Penalty):
            set_precision(self._path)
            real, values = self._net.real.to(self._device), self._values(learners)
            # As many as the first pass shows, which `steps` may cut: sensitivities are of its mini-batches.
            examples = min(self._pools[0].shown, self.first_pass * int(self._shared.batch_size))
            sensitivities = partial(self._sensitivities, learners)
            self._rule.end_task(learners.state, TaskEnd(first, learners.params, real, examples, values, sensitivities))

    def _grow(self, learners: Learners, rule: Subspaces) -> None:
        """Adds every layer's inputs to its span."""
        set_precision(self._path)
        net, largest = cast(MLP, self._net), cast(PixelStream, self._stream).largest
        # One by one: a member's rounding, and so its span, is the same in any cohort.
        for row, seed in enumerate(learners.seed.tolist()):
            member, pool = learners.part(slice(row, row + 1)), self._pools[seed]
            rows = pool.sample(int(self._shared.representations))
            x = torch.from_numpy(pool.inputs[rows]).to(self._device, torch.float32).div_(largest)
            inputs = [layer[0] for layer in net.inputs(member.params, x.to(member.params.dtype)[None])]
            values = self._shared.but(**{name: float(value) for name, value in member.own.items()})
            rule.end_task(member.state, inputs, values, self.tasks - 1)

    @abstractmethod
    def _sensitivities(self, learners: Learners) -> Iterator[Tensor]:
        """Yields the gradients of `TaskEnd.sensitivities`, in one buffer: each overwrites the one before."""


def parts(length: int, size: int) -> list[slice]:
    """Returns consecutive slices of `size` that cover `length` rows; the last one may be short.

    >>> parts(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(begin, min(begin + size, length)) for begin in range(0, length, size)]


def steps_between(lengths: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int, range]]:
    """Yields the steps first…last−1 by segment: (segment's number, its first step, steps counted within the segment).

    >>> list(steps_between([4, 1], 2, 5))
    [(0, 0, range(2, 4)), (1, 4, range(0, 1))]
    """
    for number, (start, end) in enumerate(pairwise(accumulate(lengths, initial=0))):
        if steps := range(max(first, start) - start, min(last, end) - start):
            yield number, start, steps


def is_due(step: int, every: int) -> bool:
    """Returns whether what comes every `every` steps comes before this step of a task.

    >>> [step for step in range(8) if is_due(step, 3)]
    [2, 5]
    """
    return (step + 1) % every == 0
