"""What the training loop asks of an engine, and the state of the members it trains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Learners:
    """M members on the way: what changes while they train, and the two things that tell them apart.

    params [M, D]; epsilon [M]; seed [M], each an index into the engine's seeds; first_bad [M], the step of this task
    at which the loss first was not finite, -1 where it never was; projected [M], how often g was projected.
    """

    params: Tensor
    epsilon: Tensor
    seed: Tensor
    first_bad: Tensor
    projected: Tensor

    @classmethod
    def of(cls, params: Tensor, epsilon: Tensor, seed: Tensor) -> "Learners":
        bad = torch.full((len(params),), -1, device=params.device)
        return cls(params, epsilon, seed, bad, torch.zeros(len(params), device=params.device))

    def reset(self) -> None:
        """Forgets what was counted in the task before."""
        self.first_bad.fill_(-1)
        self.projected.zero_()


class Engine(Protocol):
    """Trains members of some seeds in lockstep on the task that is loaded. Steps are numbered within the task."""

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

    def load_task(self, task: int) -> None:
        """Makes the task's training set and batches ready."""
        ...

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner, in place."""
        ...

    def remember(self, task: int) -> None:
        """Writes examples of the finished task into the memory."""
        ...

    def accuracy(self, learners: Learners, task: int) -> NDArray[np.float64]:
        """Share of the task's test set that each learner classifies correctly, [M]."""
        ...


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
