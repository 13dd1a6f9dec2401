"""What a method is: a rule that makes the step from gradients, the memory it needs, and what its result depends on.

The rule of most methods is a `Mixing`: the direction is a·g + b·g_ref, where a and b depend on three inner products
and ε. It is written once, for one member with plain numbers (CPU) and for many with tensors [M] (GPU): `where` and
`root` take both. The other rules are `Penalty` (penalty.py), `Projection` (gem.py) and `Columns` (prognn.py).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from trainers.cohort import TrainConfig
from trainers.methods.penalty import Penalty

Number: TypeAlias = Any
"""A float (a bool where a condition is meant) for one member, or a tensor [M]."""

# Below this squared norm the squares of single components (about 1e-5 of it) leave float32's normal range and the
# direction g/‖g‖ is rounding noise; ‖g‖ itself is then under 1e-15.
SMALLEST_SQUARED_NORM = 1e-30

# Memories. After a task, m examples of each class are stored; g_ref comes from a draw of all that is stored …
SAMPLED = "sampled"
# … or there is one g_ref for each previous task, from all that is stored of it.
PER_TASK = "per task"
# Every example is offered to the memory as it is seen, from the first step on (reservoir sampling).
RESERVOIR = "reservoir"


class Products(NamedTuple):
    """Inner products of the two flattened gradients over all parameters.

    share: the mini-batch's share of all examples of the step, those of the reference batch included.
    """

    gg: Number
    gr: Number
    rr: Number
    share: Number = 0.5

    @classmethod
    def of(cls, g: Tensor, g_ref: Tensor, share: float = 0.5) -> "Products":
        """From g and g_ref, each [M, D]: one global L2 inner product over all parameters, [M]."""
        gr = _inner(g, g_ref)
        return cls(_inner(g, g), gr, _inner(g_ref, g_ref), torch.full_like(gr, share))


class Angle(NamedTuple):
    """Norms and cosine of the two gradients; harmless ones where a gradient vanishes."""

    usable: Number  # condition: both gradients are long enough to have a direction
    g_norm: Number
    r_norm: Number
    cosine: Number


class Mix(NamedTuple):
    """Coefficients of the direction a·g + b·g_ref and whether it was projected."""

    a: Number
    b: Number
    projected: Number


class Mixing(NamedTuple):
    """A rule without state: `mix(products, epsilon, config)`; not asked on steps without a reference batch.

    together: both batches are to pass through the network as one, of which the gradient is the mean over all examples.
    Without batch normalisation that is the same as their mix, and need not be done.
    """

    mix: Callable[[Products, Number, TrainConfig], Mix]
    together: bool = False


class Projection(NamedTuple):
    """A rule with one reference gradient for each previous task.

    direction(g [M, D], references [M, t, D], config) -> (direction [M, D], whether it was projected [M])
    """

    direction: Callable[[Tensor, Tensor, TrainConfig], tuple[Tensor, Tensor]]


class Columns(NamedTuple):
    """The rule of a network that grows by a column with every task: plain SGD on the newest column."""


@dataclass(frozen=True)
class Method:
    """memory: SAMPLED, PER_TASK, RESERVOIR, or None.

    settings: fields of Member and TrainConfig on which the method's results depend, besides those that every result
    depends on (seed, learning rate, batch size, network). late: those of them that need two earlier tasks to act.
    """

    rule: Mixing | Penalty | Projection | Columns
    memory: str | None = None
    settings: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    @property
    def first_task_is_sgd(self) -> bool:
        """Whether the first task is plain SGD and leaves nothing but parameters, as for every other such method."""
        return isinstance(self.rule, (Mixing, Projection)) and self.memory != RESERVOIR

    def tasks_needed(self, name: str) -> int:
        """The fewest tasks of a stream on which a hyperparameter can change a result.

        A step of the first task knows nothing of earlier ones: there is no reference gradient yet, no importance is
        above 0. Only a reservoir is read from the first task on.
        """
        if name not in self.settings or self.memory == RESERVOIR:
            return 1
        return 3 if name in self.late else 2


def where(condition: Number, then: Number, otherwise: Number) -> Number:
    """`then` where the condition holds: never a branch per member on tensors."""
    if isinstance(condition, Tensor):
        return torch.where(condition, then, otherwise)
    return then if condition else otherwise


def root(value: Number) -> Number:
    """The square root."""
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)


def angle(products: Products) -> Angle:
    """Norms and cosine, guarded in this one place: a vanishing gradient has no direction to project on."""
    usable = (products.gg > SMALLEST_SQUARED_NORM) & (products.rr > SMALLEST_SQUARED_NORM)
    g_norm = root(where(usable, products.gg, 1.0))
    r_norm = root(where(usable, products.rr, 1.0))
    # Two divisions: the product of two small norms could underflow where neither norm does.
    return Angle(usable, g_norm, r_norm, products.gr / g_norm / r_norm)


def choose(projected: Number, when_projected: tuple[Number, Number], otherwise: Number) -> Mix:
    """The projected coefficients where `projected`, else `otherwise`·g."""
    a, b = when_projected
    return Mix(where(projected, a, otherwise), where(projected, b, 0.0), projected)


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return torch.bmm(x[:, None], y[:, :, None])[:, 0, 0]
