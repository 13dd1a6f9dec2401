"""Methods with a penalty: g + 2λ·importance·(θ − θ*).

They pull parameters back to their values after the last task. They differ in how the importance of a parameter is
found. Their state is a set of arrays [M, D], changed in place; all are zero at the start but `anchor`, which is θ*, the
parameters at the end of the last task (at first the untrained network's). Penalties have no ½: the loss is L + λ Σ
importance (θ − θ*)².
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trainers.hyperparameters import MOST, OF_DATASET, Hyperparameter, Hyperparameters

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = Any  # methods are declared without torch, which takes seconds to load

State = dict[str, Tensor]
"""Name -> array [M, D]."""

PENALTY_FORMS = ("code", "paper")
NEW_WEIGHT = 0.9  # of the newest Fisher estimate in its moving average (A-GEM's released code)
DAMPING = 1e-3  # ξ of PI and RWALK

STRENGTH = Hyperparameter(
    "strength",
    "λ of a penalty, where it is not searched.",
    usual=OF_DATASET,
    per_learner=True,
    published="strength",
    per_method=True,
    label="λ",
    stability=1,
)
FISHER_EVERY = Hyperparameter(
    "fisher_every",
    "Steps between updates of the Fisher estimate of EWC and RWALK.",
    usual=OF_DATASET,
    default=10,
    low=1,
    high=MOST,
    whole=True,
    published="fisher_every",
)
PENALTY_FORM = Hyperparameter(
    "penalty_form",
    "MAS and RWALK as in the code that made the published numbers, or as in their own papers.",
    default="code",
    choices=PENALTY_FORMS,
)


class Step(NamedTuple):
    """A step of M learners."""

    params: Tensor
    """[M, D], before the step."""
    g: Tensor
    """[M, D], gradient of the unpenalised loss."""
    values: Hyperparameters
    """Those that are per learner are numbers of one learner or tensors [M], which `column` takes."""


class TaskEnd(NamedTuple):
    """The end of a task."""

    first: bool
    """Whether it is the first task of the stream."""
    params: Tensor
    """[M, D]."""
    real: Tensor
    """[D], False where a row is padding."""
    examples: int
    """How many different ones the task showed."""
    values: Hyperparameters
    """Those that are per learner are tensors [M]."""
    sensitivities: Callable[[], Iterator[Tensor]]
    """For every mini-batch of the task's first pass the gradient [M, D] of Σ ‖logits‖² over its examples, in a buffer
    that is used again.
    """


@dataclass(frozen=True)
class Penalty:
    """A rule that pulls parameters back to θ*, each by its importance."""

    arrays: tuple[str, ...]
    """Names of the state's arrays besides anchor, importance and `copies`."""
    finish: Callable[[State, TaskEnd], None]
    """finish(state, end) comes after every task but the last, before θ* moves."""
    observe: Callable[[State, Step, Tensor], None] | None = None
    """observe(state, step, direction) sees every step: θ ← θ − lr·direction."""
    refresh: Callable[[State, Tensor, Hyperparameters], None] | None = None
    """refresh(state, params, values) comes every `fisher_every` steps, before the step; a penalty that has it finds no
    importance without.
    """
    looks_back: bool = False
    """True if finish needs the mini-batches of the task's first pass again."""
    copies: tuple[str, ...] = ()
    """Names of arrays that begin where the parameters do, as θ* does; the others begin at zero."""

    @property
    def state_arrays(self) -> int:
        """Number of arrays of the parameters' size in the state."""
        return 2 + len(self.arrays) + len(self.copies)

    def start(self, params: Tensor) -> State:
        """Returns the state of untrained networks."""
        zeros = {name: params.new_zeros(params.shape) for name in ("importance", *self.arrays)}
        return {"anchor": params.clone(), **zeros, **{name: params.clone() for name in self.copies}}

    def direction(self, state: State, step: Step, along: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Returns the penalised gradient [M, D], or what an optimizer makes of it: along(gradient)."""
        pulled = (step.params - state["anchor"]).mul_(state["importance"])
        pulled.mul_(column(2 * step.values.strength)).add_(step.g)
        if along:
            pulled = along(pulled)
        if self.observe:
            self.observe(state, step, pulled)
        return pulled

    def end_task(self, state: State, end: TaskEnd) -> None:
        """Finds the importance anew and moves θ* to where the parameters are."""
        self.finish(state, end)
        state["anchor"].copy_(end.params)


def column(value: Any) -> Any:
    """Returns a number as it is, [M] as [M, 1]: what stands beside arrays [M, D]."""
    return value if isinstance(value, (int, float)) else value[:, None]


def gather_squares(state: State, step: Step, direction: Tensor) -> None:
    """Adds the element-wise square of the mini-batch's gradient to the sum for the next Fisher estimate."""
    state["squares"].addcmul_(step.g, step.g)


def gather_path(state: State, step: Step, direction: Tensor) -> None:
    """Adds −g·Δθ to ω, where Δθ is the coming step, the penalty's and the optimizer's part included."""
    state["path"].add_((direction * column(step.values.lr)).mul_(step.g))


def refresh_fisher(state: State, values: Hyperparameters) -> None:
    """Sets F ← 0.1 F + 0.9 · (mean square over the last `fisher_every` steps); does not forget the squares."""
    state["fisher"].mul_(1 - NEW_WEIGHT).add_(state["squares"], alpha=NEW_WEIGHT / values.fisher_every)


def normalise(values: Tensor, real: Tensor) -> Tensor:
    """Returns the values shifted and scaled to [0, 1] over each member's parameters together; padding stays zero."""
    # Padding is kept out of both: its zeros could be the lowest.
    lowest = values.where(real, math.inf).amin(dim=1, keepdim=True)
    highest = values.where(real, -math.inf).amax(dim=1, keepdim=True)
    # Where all values are alike, 0/1e-32 is 0; 1e-32 is lost beside any other difference.
    return ((values - lowest) / (highest - lowest + 1e-32)).mul_(real)
