"""EWC (Kirkpatrick et al., 2017) in the online form of A-GEM's released code: one Fisher estimate, one θ*.

The estimate is a moving average in which the last `fisher_every` steps weigh 0.9; the importance is the estimate
scaled to [0, 1]. Where a task has fewer steps than `fisher_every`, it stays zero and the method is plain SGD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.hyperparameters import Hyperparameters
from trainers.methods.base import Method
from trainers.methods.penalty import (
    FISHER_EVERY,
    STRENGTH,
    Penalty,
    State,
    Step,
    TaskEnd,
    gather_squares,
    normalised,
    refresh_fisher,
)

if TYPE_CHECKING:
    from torch import Tensor


def observe(state: State, step: Step, direction: Tensor) -> None:
    """Adds the square of the mini-batch's gradient to the sum for the next Fisher estimate."""
    gather_squares(state, step)


def refresh(state: State, params: Tensor, values: Hyperparameters) -> None:
    """Takes the mean of the squares since the last refresh into the Fisher estimate, and starts them anew."""
    refresh_fisher(state, values)
    state["squares"].zero_()


def finish(state: State, end: TaskEnd) -> None:
    """Takes the Fisher estimate, scaled to [0, 1], as the importance; squares of an unfinished mean are dropped."""
    state["importance"].copy_(normalised(state["fisher"], end.real))
    state["squares"].zero_()


EWC = Method(
    "EWC",
    "Kirkpatrick et al., 2017",
    Penalty(("squares", "fisher"), finish, observe, refresh),
    own=(STRENGTH, FISHER_EVERY),
)
