"""The two float32 matrix products that torch has on a CPU, under one interface.

torch.mm calls MKL, which takes a slow path on AMD processors with AVX-512: there oneDNN, reached through the linear
layer that torch keeps for compiled models, is more than twice as fast. `engines/pixel_choice.py` measures which of the
two is faster here.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Products(NamedTuple):
    """product(a, b, out) writes a·b; affine(a, b, bias, out) writes a·b + bias."""

    product: Callable[[Tensor, Tensor, Tensor], None]
    affine: Callable[[Tensor, Tensor, Tensor, Tensor], None]


def _mkl_product(a: Tensor, b: Tensor, out: Tensor) -> None:
    torch.mm(a, b, out=out)


def _mkl_affine(a: Tensor, b: Tensor, bias: Tensor, out: Tensor) -> None:
    torch.addmm(bias, a, b, out=out)


def _onednn_product(a: Tensor, b: Tensor, out: Tensor) -> None:
    out.copy_(torch.ops.mkldnn._linear_pointwise(a, b.T, None, "none", [], ""))


def _onednn_affine(a: Tensor, b: Tensor, bias: Tensor, out: Tensor) -> None:
    out.copy_(torch.ops.mkldnn._linear_pointwise(a, b.T, bias, "none", [], ""))


PRODUCTS = {"mkl": Products(_mkl_product, _mkl_affine), "onednn": Products(_onednn_product, _onednn_affine)}
