"""The first layer's side of a CPU step: examples as dense rows, or as lists of their non-zero pixels."""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.engines import kernels
from trainers.engines.products import Products

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class Inputs(Protocol):
    """A set of examples, and the batch of it that is at hand. `weight` is the first layer's, [P, N]."""

    def take(self, rows: Rows) -> None:
        """Makes these examples the batch."""
        ...

    def split(self, current: int) -> None:
        """Says that the batch's first `current` examples make g and the rest g_ref; needed before what follows."""
        ...

    def forward(self, weight: Tensor, bias: Tensor, out: Tensor) -> None:
        """out [B, N] = ReLU(x·weight + bias)."""
        ...

    def gram(self) -> Floats:
        """Inner products of the current examples."""
        ...

    def products(self, delta: Tensor, g_ref: Tensor) -> tuple[float, float]:
        """Writes g_ref [P, N] from delta [B, N]; returns (g·g_ref, ‖g_ref‖²)."""
        ...

    def update(self, weight: Floats, g_ref: Floats, b: np.float32, delta: Floats, a: np.float32) -> None:
        """weight += b·g_ref + a·g, where g comes from the current rows of delta."""
        ...


class DenseInputs:
    """For small or dense images: one gather a batch, then matrix products."""

    def __init__(self, examples: Bytes, scale: Floats, products: Products) -> None:
        self._examples, self._scale, self._products = examples, scale, products
        self._buffer = torch.empty(0, examples.shape[1])
        self._current = 0

    def take(self, rows: Rows) -> None:
        if len(self._buffer) < len(rows):
            self._buffer = torch.empty(len(rows), self._examples.shape[1])
        self._x = self._buffer[: len(rows)]
        kernels.gather(rows, self._examples, self._scale, self._x.numpy())

    def split(self, current: int) -> None:
        self._now, self._ref = self._x[:current].numpy(), self._x[current:].T
        self._current = current
        self._gram: Floats = kernels.gram(self._now)

    def forward(self, weight: Tensor, bias: Tensor, out: Tensor) -> None:
        self._products.affine(self._x, weight, bias, out)
        out.relu_()

    def gram(self) -> Floats:
        return self._gram

    def products(self, delta: Tensor, g_ref: Tensor) -> tuple[float, float]:
        self._products.product(self._ref, delta[self._current :], g_ref)
        found: tuple[float, float] = kernels.weight_products(self._now, delta[: self._current].numpy(), g_ref.numpy())
        return found

    def update(self, weight: Floats, g_ref: Floats, b: np.float32, delta: Floats, a: np.float32) -> None:
        kernels.update_weight(weight, g_ref, b, self._now, delta, a)


class SparseInputs:
    """For images most of whose pixels are zero."""

    def __init__(self, examples: Bytes, scale: Floats) -> None:
        self._examples, self._scale, self._pixels = kernels.sparse(examples), scale, examples.shape[1]
        self._now = self._ref = kernels.ByPixel.empty(self._pixels, 0)

    def take(self, rows: Rows) -> None:
        self._rows = rows

    def split(self, current: int) -> None:
        now, ref = self._rows[:current], self._rows[current:]
        self._current = current
        self._now = self._sorted(now, self._now)
        self._ref = self._sorted(ref, self._ref)
        self._gram: Floats = kernels.sparse_gram(*self._now, current)

    def _sorted(self, rows: Rows, into: kernels.ByPixel) -> kernels.ByPixel:
        """Buffers grow as needed and are used again."""
        if len(into.value) < len(rows) * self._pixels:
            into = kernels.ByPixel.empty(self._pixels, len(rows) * self._pixels)
        kernels.sort_by_pixel(rows, *self._examples, self._scale, *into)
        return into

    def forward(self, weight: Tensor, bias: Tensor, out: Tensor) -> None:
        kernels.sparse_forward(self._rows, *self._examples, self._scale, weight.numpy(), bias.numpy(), out.numpy())

    def gram(self) -> Floats:
        return self._gram

    def products(self, delta: Tensor, g_ref: Tensor) -> tuple[float, float]:
        now, ref = delta[: self._current].numpy(), delta[self._current :].numpy()
        found: tuple[float, float] = kernels.sparse_weight_products(*self._now, now, *self._ref, ref, g_ref.numpy())
        return found

    def update(self, weight: Floats, g_ref: Floats, b: np.float32, delta: Floats, a: np.float32) -> None:
        kernels.sparse_update_weight(weight, g_ref, b, *self._now, delta, a)
