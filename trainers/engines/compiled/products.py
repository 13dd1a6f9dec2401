"""The two float32 matrix products of torch on a CPU.

torch.mm calls MKL, which takes a slow path on AMD processors with AVX-512: there oneDNN, reached through the linear
layer that torch keeps for compiled models, is more than twice as fast. `engines/pixel_choice.py` measures which of the
two is faster here.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trainers.networks.progressive.mlp import Affine


class MatrixProducts(NamedTuple):
    """product(a, b, out) writes a·b; affine(a, b, bias, out) writes a·b + bias."""

    product: Callable[[Tensor, Tensor, Tensor], object]
    affine: Affine


def _onednn(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> None:
    # The operation has no form that writes into a given tensor.
    out.copy_(torch.ops.mkldnn._linear_pointwise(a, b.T, bias, "none", [], ""))


PRODUCTS = {
    "mkl": MatrixProducts(
        product=lambda a, b, out: torch.mm(a, b, out=out),
        affine=lambda a, b, bias, out: torch.addmm(bias, a, b, out=out),
    ),
    "onednn": MatrixProducts(product=lambda a, b, out: _onednn(a, b, None, out), affine=_onednn),
}


def available() -> list[str]:
    """Returns the names of the products that this build of torch has: on a Mac there is no oneDNN."""
    has_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return [name for name in PRODUCTS if has_onednn or name != "onednn"]
