"""Inputs of the first layer on a CPU: dense, or without zeros.

Examples are dense rows, or lists of their non-zero pixels.
"""

from typing import NamedTuple, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.engines.compiled import kernels, sparse
from trainers.engines.compiled.kernels import Floats
from trainers.engines.compiled.products import MatrixProducts
from trainers.schedule import Indices

Bytes = NDArray[np.uint8]
Sums = tuple[float, float, float]
"""(‖g‖², g·g_ref, ‖g_ref‖²) over one layer."""


class Layer(NamedTuple):
    """A layer of a member, or g_ref of it: weight [K, N] and bias [N], each as a tensor and as an array."""

    weight: Tensor
    bias: Tensor
    weight_array: Floats
    bias_array: Floats

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor) -> "Layer":
        """Returns the layer with both views of the same memory."""
        return cls(weight, bias, weight.numpy(), bias.numpy())

    @property
    def arrays(self) -> tuple[Floats, Floats]:
        """The weight and the bias as arrays, which is what kernels take."""
        return self.weight_array, self.bias_array


class DenseInputs:
    """For small or dense images: one gather a batch, then matrix products.

    examples [n, P] in bytes; scale [256]: what the network sees of each byte.
    """

    def __init__(self, examples: Bytes, scale: Floats, products: MatrixProducts) -> None:
        self._examples, self._scale, self._products = examples, scale, products
        self._buffer = torch.empty(0, examples.shape[1])

    def take(self, rows: Indices) -> None:
        """Gathers these examples as float32 rows [B, P]."""
        # Grows to the largest batch so far and is used again: no step allocates.
        if len(self._buffer) < len(rows):
            self._buffer = torch.empty(len(rows), self._examples.shape[1])
        self._x = self._buffer[: len(rows)]
        kernels.gather(rows, self._examples, self._scale, self._x.numpy())

    def split(self, current: int) -> None:
        """Cuts the batch into the first `current` examples, of g, and, transposed for its product, those of g_ref."""
        self._current, self._now, self._ref = current, self._x[:current].numpy(), self._x[current:].T

    def forward(self, layer: Layer, out: Tensor) -> None:
        """Writes ReLU(x·weight + bias) into out [B, N]."""
        self._products.affine(self._x, layer.weight, layer.bias, out)
        out.relu_()

    def products(self, delta: Floats, g_ref: Layer) -> Sums:
        """Writes g_ref from delta [B, N] by a matrix product, and returns the sums over this layer."""
        self._products.product(self._ref, torch.from_numpy(delta[self._current :]), g_ref.weight)
        return cast(Sums, kernels.layer_products(self._now, delta, self._current, *g_ref.arrays))

    def update(self, layer: Layer, g_ref: Layer, b: np.float32, delta: Floats, a: np.float32) -> None:
        """Adds b·g_ref + a·g to the layer, g from the current rows of delta."""
        kernels.update_layer(layer.arrays, g_ref.arrays, b, self._now, delta, a)


class SparseInputs:
    """For images most of whose pixels are zero; examples and scale as `DenseInputs` has them.

    All examples are turned into lists once, at the first step of a task, and only the lists are kept.
    """

    def __init__(self, examples: Bytes, scale: Floats) -> None:
        self._examples, self._pixels = sparse.without_zeros(examples, scale), examples.shape[1]
        self._now = self._ref = sparse.ByPixel.empty(self._pixels, 0)

    def take(self, rows: Indices) -> None:
        """Makes these examples the batch; nothing is gathered."""
        self._rows = rows

    def split(self, current: int) -> None:
        """Turns the examples of g and of g_ref into lists by pixel, once for all learners."""
        self._current = current
        self._now = self._sort_by_pixel(self._rows[:current], self._now)
        self._ref = self._sort_by_pixel(self._rows[current:], self._ref)
        # Of the inputs alone, so that all learners share it; ‖g‖² needs no more of them.
        self._gram: Floats = sparse.gram(*self._now, current)

    def _sort_by_pixel(self, rows: Indices, into: sparse.ByPixel) -> sparse.ByPixel:
        """Returns the examples by pixel, in buffers that grow as needed and are used again."""
        if len(into.value) < len(rows) * self._pixels:
            into = sparse.ByPixel.empty(self._pixels, len(rows) * self._pixels)
        sparse.sort_by_pixel(rows, self._examples, *into)
        return into

    def forward(self, layer: Layer, out: Tensor) -> None:
        """Writes ReLU(x·weight + bias) into out [B, N], from the non-zero pixels."""
        sparse.forward(self._rows, self._examples, *layer.arrays, out.numpy())

    def products(self, delta: Floats, g_ref: Layer) -> Sums:
        """Writes g_ref row by row, and returns the sums over this layer."""
        return cast(Sums, sparse.layer_products(self._now, self._gram, self._ref, delta, self._current, *g_ref.arrays))

    def update(self, layer: Layer, g_ref: Layer, b: np.float32, delta: Floats, a: np.float32) -> None:
        """Adds b·g_ref + a·g to the layer."""
        sparse.update_layer(layer.arrays, g_ref.arrays, b, self._now, delta, a)


Inputs: TypeAlias = DenseInputs | SparseInputs
"""A set of examples, its current batch, and the first layer's arithmetic; `split` precedes all but `take`."""
