"""EWC (Kirkpatrick et al., 2017), online.

As in A-GEM's released code: one Fisher estimate, one θ*. The estimate is a moving average in which the last
`fisher_every` steps weigh 0.9; the importance is the estimate scaled to [0, 1]. Where a task has fewer steps than
`fisher_every`, it stays zero and the method is plain SGD.
"""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.penalty import (
    FISHER_EVERY,
    STRENGTH,
    Penalty,
    State,
    TaskEnd,
    Tensor,
    gather_squares,
    normalise,
    refresh_fisher,
)
from trainers.methods.rules import Method


def refresh(state: State, params: Tensor, values: Hyperparameters) -> None:
    """Takes the mean of the squares since the last refresh into the Fisher estimate, and starts them anew."""
    refresh_fisher(state, values)
    state["squares"].zero_()


def finish(state: State, end: TaskEnd) -> None:
    """Takes the Fisher estimate, scaled to [0, 1], as the importance; squares of an unfinished mean are dropped."""
    state["importance"].copy_(normalise(state["fisher"], end.real))
    state["squares"].zero_()


EWC = Method(
    "EWC",
    "Kirkpatrick et al., 2017",
    Penalty(("squares", "fisher"), finish, gather_squares, refresh),
    own=(STRENGTH, FISHER_EVERY),
)
