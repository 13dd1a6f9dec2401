"""Progressive neural networks (Rusu et al. 2016) of perceptrons.

One column of full width a task, as in A-GEM's released code. With k columns before it, layer l of column k there is,
for all layers (no ReLU at the last),

    h^k_l = ReLU(W_l h^k_{l−1} + b_l + Σ_{j<k} (U^{k,j}_l h^j_{l−1} + c^{k,j}_l)),    h^j_0 = the image.

Only W, b, U and c of the newest column train, by plain SGD. What is stored here is smaller and trains in exactly the
same way (up to rounding), because parameters that are only ever summed also have the same gradient:

* At l = 1, W and every U multiply the image, so only their sum S acts. Each of the k+1 summands has the gradient of S
  and takes a step of −lr·∂S: together (k+1)·lr·∂S. So S is one matrix with learning rate (k+1)·lr, and starts as a sum
  of k+1 independent draws.
* b and all c of a layer are summed in the same way: one bias that starts at (k+1)·0.1, with learning rate (k+1)·lr.
* At l > 1 the inputs differ. W and every U are stacked into one matrix over [h^0, …, h^{k−1}, h^k], learning rate lr.

A column's own units stand last, so that the inputs of column j are the first j+1 parts of those of every later column:
one matrix [rows, columns·width] a layer holds the hidden units of all columns, and none is copied.
Padding and its reasons are those of `MLP`; column 0 is stored as an MLP is.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.networks.draws import BIAS_START, truncated_normal
from trainers.networks.layout import consecutive
from trainers.networks.mlp import MLP, Layer, layers_of

Column = list[Layer]
"""One column of one member: weight [in, out], bias [out] of every layer, with padding."""

Affine = Callable[[Tensor, Tensor, Tensor, Tensor], object]
"""affine(a, b, bias, out) writes a·b + bias."""


@dataclass(frozen=True)
class MLPColumns:
    """A column for each of `count` tasks; sizes = (inputs, hidden…, outputs) of a single column.

    subtracted: see `losses.output_delta`.
    """

    sizes: tuple[int, ...]
    count: int
    subtracted: bool = False

    @property
    def widths(self) -> tuple[int, ...]:
        """The sizes as they are stored: all but the inputs padded."""
        return MLP(self.sizes).widths

    @property
    def row(self) -> int:
        """Length of a row of the parameter matrix: all columns, with padding."""
        return int(self._slices[-1].stop)

    def init(self, rngs: Sequence[np.random.Generator]) -> NDArray[np.float32]:
        """Returns one row, with every column from its own generator.

        Weights and biases of the uncollapsed network are drawn as in `MLP`.
        """
        row = torch.zeros(self.row)
        for number, (column, rng) in enumerate(zip(self.columns(row), rngs, strict=True)):
            for index, (weight, bias) in enumerate(column):
                k, n = self.sizes[index : index + 2]
                for source in range(number + 1):
                    begin = source * self.widths[index] if index else 0
                    weight[begin : begin + k, :n] += truncated_normal(rng, (n, k)).T
                bias[:n] = (number + 1) * BIAS_START
        return cast(NDArray[np.float32], row.numpy())

    def columns(self, row: Tensor) -> list[Column]:
        """Returns views into one member's row [D] of the parameter matrix."""
        return [layers_of(row[part], self._shapes(number)) for number, part in enumerate(self._slices)]

    @cached_property
    def _slices(self) -> list[slice]:
        return consecutive(sum((k + 1) * n for k, n in self._shapes(number)) for number in range(self.count))

    def slice(self, number: int) -> slice:
        """Returns the place of column `number` in a row."""
        return self._slices[number]

    def buffers(self, x: Tensor, columns: int) -> list[Tensor]:
        """Returns for each hidden layer a matrix [rows, columns·width] without values, for the rows of x."""
        return [x.new_empty(len(x), columns * width) for width in self.widths[1:-1]]

    def of_column(self, hidden: Sequence[Tensor], number: int) -> list[Tensor]:
        """Returns the parts [..., width] of the hidden units that belong to column `number`."""
        return [units[..., number * w : (number + 1) * w] for units, w in zip(hidden, self.widths[1:-1], strict=True)]

    def fill(self, columns: Sequence[Column], x: Tensor, hidden: list[Tensor], affine: Affine) -> None:
        """Writes the hidden units of these columns (all from 0 on) for x [rows, inputs]."""
        for number, column in enumerate(columns):
            inputs = [x, *(h[:, : (number + 1) * w] for h, w in zip(hidden, self.widths[1:-1], strict=True))]
            for layer, below, out in zip(column, inputs, self.of_column(hidden, number), strict=False):
                affine(below, layer.weight, layer.bias, out)
                out.relu_()

    def logits(self, columns: Sequence[Column], x: Tensor, affine: Affine) -> Tensor:
        """Returns the output [rows, classes] of the last of these columns for x [rows, inputs]."""
        hidden = self.buffers(x, len(columns))
        self.fill(columns, x, hidden, affine)
        out = x.new_empty(len(x), self.widths[-1])
        affine(hidden[-1], columns[-1][-1].weight, columns[-1][-1].bias, out)
        return out[:, : self.sizes[-1]]

    def _shapes(self, number: int) -> list[tuple[int, int]]:
        """Returns (inputs, outputs) of the layers of column `number` as they are stored."""
        return [(k * (number + 1) if i else k, n) for i, (k, n) in enumerate(itertools.pairwise(self.widths))]
