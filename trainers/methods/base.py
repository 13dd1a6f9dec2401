"""What a method is: the step direction a·g + b·g_ref, where a and b depend on three inner products and ε.

A method is written once, for one member with plain numbers (CPU) and for many with tensors [M] (GPU): `where` and
`root` take both.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

Number: TypeAlias = Any
"""A float (a bool where a condition is meant) for one member, or a tensor [M]."""

# Below this squared norm the squares of single components (about 1e-5 of it) leave float32's normal range and the
# direction g/‖g‖ is rounding noise; ‖g‖ itself is then under 1e-15.
SMALLEST_SQUARED_NORM = 1e-30


class Products(NamedTuple):
    """Inner products of the two flattened gradients over all parameters."""

    gg: Number
    gr: Number
    rr: Number

    @classmethod
    def of(cls, g: Tensor, g_ref: Tensor) -> "Products":
        """From g and g_ref, each [M, D]: one global L2 inner product over all parameters, [M]."""
        return cls(_inner(g, g), _inner(g, g_ref), _inner(g_ref, g_ref))


class Options(NamedTuple):
    """Named readings of the paper's Algorithm 1; see `TrainConfig`."""

    trigger: str = "zero"
    scale: str = "unit"
    satisfied: str = "raw"


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


class Method(NamedTuple):
    """A method without state: `mix(products, epsilon, options)`. `uses_memory` asks for reference gradients."""

    uses_memory: bool
    uses_epsilon: bool
    mix: Callable[[Products, Number, Options], Mix]


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


def update(method: Method, g: Tensor, g_ref: Tensor, epsilon: Tensor, options: Options) -> Tensor:
    """The step direction [M, D] from g and g_ref [M, D] and epsilon [M]."""
    mix = method.mix(Products.of(g, g_ref), epsilon, options)
    direction: Tensor = mix.a[:, None] * g + mix.b[:, None] * g_ref
    return direction


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return torch.bmm(x[:, None], y[:, :, None])[:, 0, 0]
