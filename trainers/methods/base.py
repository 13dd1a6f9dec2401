"""What a method is: the step direction a·g + b·g_ref, where a and b depend on three inner products and ε."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

# Below this squared norm the squares of single components (about 1e-5 of it) leave float32's normal range and the
# direction g/‖g‖ is rounding noise; ‖g‖ itself is then under 1e-15.
SMALLEST_SQUARED_NORM = 1e-30


class Products(NamedTuple):
    """Inner products of the two flattened gradients, one row per member, each [M]."""

    gg: Tensor
    gr: Tensor
    rr: Tensor

    @classmethod
    def of(cls, g: Tensor, g_ref: Tensor) -> "Products":
        """From g and g_ref, each [M, D]: one global L2 inner product over all parameters."""
        return cls(_inner(g, g), _inner(g, g_ref), _inner(g_ref, g_ref))


class Options(NamedTuple):
    """Named readings of the paper's Algorithm 1; see `TrainConfig`."""

    trigger: str = "zero"
    scale: str = "unit"
    satisfied: str = "raw"


class Angle(NamedTuple):
    """Norms and cosine of the two gradients, each [M]; harmless ones where a gradient vanishes."""

    usable: Tensor  # bool: both gradients are long enough to have a direction
    g_norm: Tensor
    r_norm: Tensor
    cosine: Tensor


class Mix(NamedTuple):
    """Coefficients of the direction a·g + b·g_ref and whether it was projected, each [M]."""

    a: Tensor
    b: Tensor
    projected: Tensor


class Method(NamedTuple):
    """A method without state: `mix(products, epsilon [M], options)`. `uses_memory` asks for reference gradients."""

    uses_memory: bool
    uses_epsilon: bool
    mix: Callable[[Products, Tensor, Options], Mix]


def angle(products: Products) -> Angle:
    """Norms and cosine, guarded in this one place: a vanishing gradient has no direction to project on."""
    usable = (products.gg > SMALLEST_SQUARED_NORM) & (products.rr > SMALLEST_SQUARED_NORM)
    one = torch.ones_like(products.gg)
    g_norm = torch.where(usable, products.gg, one).sqrt()
    r_norm = torch.where(usable, products.rr, one).sqrt()
    # Two divisions: the product of two small norms could underflow where neither norm does.
    return Angle(usable, g_norm, r_norm, products.gr / g_norm / r_norm)


def choose(projected: Tensor, when_projected: tuple[Tensor, Tensor], otherwise: Tensor) -> Mix:
    """The projected coefficients where `projected`, else `otherwise`·g; a mask, never a branch per member."""
    a, b = when_projected
    return Mix(torch.where(projected, a, otherwise), torch.where(projected, b, torch.zeros_like(b)), projected)


def update(method: Method, g: Tensor, g_ref: Tensor, epsilon: Tensor, options: Options) -> Tensor:
    """The step direction [M, D] from g and g_ref [M, D] and epsilon [M]."""
    mix = method.mix(Products.of(g, g_ref), epsilon, options)
    return mix.a[:, None] * g + mix.b[:, None] * g_ref


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return torch.bmm(x[:, None], y[:, :, None])[:, 0, 0]
