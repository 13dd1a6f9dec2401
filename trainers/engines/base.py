"""What the training loop asks of an engine, and the state of the learners it trains."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.hyperparameters import Hyperparameters
from trainers.methods.penalty import State


@dataclass(frozen=True)
class Learners:
    """M learners on the way: what changes while they train, and what tells them apart."""

    params: Tensor
    """[M, D]."""
    seed: Tensor
    """[M], each an index into the engine's seeds."""
    own: Mapping[str, Tensor]
    """The hyperparameters in which they may differ, by name; float64 [M] each."""
    first_bad: Tensor
    """[M], the step of this task at which the loss first was not finite; -1 where it never was."""
    projected: Tensor
    """[M], how often g was projected in this task."""
    state: State
    """The arrays [M, D] of a penalty and the network's statistics [M, …]."""

    @classmethod
    def of(cls, params: Tensor, seed: Tensor, own: Mapping[str, Sequence[float]], state: State) -> "Learners":
        """Nothing is counted yet."""
        device = params.device
        values = {name: torch.tensor(some, dtype=torch.float64, device=device) for name, some in own.items()}
        bad = torch.full((len(params),), -1, device=device)
        return cls(params, seed, values, bad, torch.zeros(len(params), device=device), state)

    def part(self, rows: slice) -> "Learners":
        """Some of the learners, as views."""
        own, state = ({name: array[rows] for name, array in arrays.items()} for arrays in (self.own, self.state))
        return Learners(self.params[rows], self.seed[rows], own, self.first_bad[rows], self.projected[rows], state)

    def values(self, shared: Hyperparameters) -> Hyperparameters:
        """All hyperparameters, those of their own as tensors [M] of the parameters' type."""
        return shared.but(**{name: values.to(self.params.dtype) for name, values in self.own.items()})

    def reset(self) -> None:
        """Forgets what was counted in the task before."""
        # In place: recorded graphs and views of these arrays stay good.
        self.first_bad.fill_(-1)
        self.projected.zero_()


class Engine(Protocol):
    """Trains learners of some seeds in lockstep on the task that is loaded. Steps are numbered within the task."""

    @property
    def steps(self) -> int:
        """Steps of the loaded task."""
        ...

    @property
    def reference(self) -> bool:
        """Whether the loaded task's steps have a reference batch."""
        ...

    def start(self) -> Tensor:
        """Parameters [S, D] of the untrained networks, one of each seed."""
        ...

    def state(self, params: Tensor) -> State:
        """What the method keeps of untrained networks besides their parameters."""
        ...

    def load_task(self, task: int) -> None:
        """Makes the task's training set and batches ready."""
        ...

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner, in place."""
        ...

    def finish(self, learners: Learners, first: bool) -> None:
        """Ends the loaded task, after its last step, for methods that look back; `first`: of the stream."""
        ...

    def remember(self, task: int) -> None:
        """Writes examples of the finished task into the memory."""
        ...

    def accuracy(self, learners: Learners, task: int) -> NDArray[np.float64]:
        """Share of the task's test set that each learner classifies correctly, [M]."""
        ...


def accuracies(hits: NDArray[np.bool_], labels: NDArray[np.int64], balanced: bool) -> NDArray[np.float64]:
    """[M], the share of hits [M, n]; balanced: the mean over the classes in labels [M, n] of each one's share.

    >>> hits, labels = np.array([[True, False, False, True]]), np.array([[0, 0, 0, 1]])
    >>> float(accuracies(hits, labels, False)[0]), round(float(accuracies(hits, labels, True)[0]), 4)
    (0.5, 0.6667)
    """
    if not balanced:
        share: NDArray[np.float64] = hits.sum(axis=1) / hits.shape[1]
        return share
    classes = [[mine[one == label].mean() for label in np.unique(one)] for mine, one in zip(hits, labels, strict=True)]
    return np.array([np.mean(shares) for shares in classes])


def steps_between(lengths: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int, range]]:
    """The steps first…last−1 by segment: (segment's number, its first step, steps counted within the segment).

    >>> list(steps_between([4, 1], 2, 5))
    [(0, 0, range(2, 4)), (1, 4, range(0, 1))]
    """
    start = 0
    for number, length in enumerate(lengths):
        begin, end = max(first - start, 0), min(last - start, length)
        if begin < end:
            yield number, start, range(begin, end)
        start += length


def is_due(step: int, every: int) -> bool:
    """Whether what comes every so many steps comes before this step of a task.

    >>> [step for step in range(8) if is_due(step, 3)]
    [2, 5]
    """
    return (step + 1) % every == 0
