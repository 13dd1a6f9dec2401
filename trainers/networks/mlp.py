"""A multilayer perceptron for M members, with a hand-derived backward pass.

Every member's parameters are one row of a matrix [M, D]. The outputs of every layer are padded to a multiple of 16
floats, so that every row and every array within it starts on a 64-byte boundary: with rows of odd length, two members
with the same seed and data drifted apart by 0.2 % accuracy because their arrays were aligned differently, and matrix
products with 10 columns take twice the time of those with 16. Padding is zero in parameters, gradients and hidden
units, so it changes nothing.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import STARTS
from trainers.networks.base import Batch, Pull, Statistics
from trainers.networks.draws import LAYERS
from trainers.networks.layout import consecutive, pad
from trainers.networks.losses import entropy_delta, mean_square


class Layer(NamedTuple):
    """Views of one layer in a parameter matrix: weight [M, in, out], bias [M, out], both with padding."""

    weight: Tensor
    bias: Tensor


def layers_of(matrix: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Layer]:
    """Returns views into a matrix [..., D] of layers of these shapes (in, out), each weight in front of its bias."""
    arrays = torch.split(matrix, [size for k, n in shapes for size in (k * n, n)], dim=-1)
    return [
        Layer(weight.view(*weight.shape[:-1], *shape), bias)
        for shape, weight, bias in zip(shapes, arrays[::2], arrays[1::2], strict=True)
    ]


@dataclass(frozen=True)
class MLP:
    """Fully connected ReLU network; sizes = (inputs, hidden…, outputs). subtracted: see `losses.output_delta`."""

    sizes: tuple[int, ...]
    subtracted: bool = False
    start: str = STARTS[0]
    """How `init` draws, one of `draws.LAYERS`."""
    normalises = False
    together = recordable = True
    least = 1

    @property
    def widths(self) -> tuple[int, ...]:
        """The sizes as they are stored: all but the inputs padded."""
        return (self.sizes[0], *map(pad, self.sizes[1:]))

    @property
    def row(self) -> int:
        """Length of a row of the parameter matrix, with padding."""
        return sum((k + 1) * n for k, n in itertools.pairwise(self.widths))

    def init(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Returns one row of weights and biases [row], drawn layer by layer as `start` says."""
        row = torch.zeros(1, self.row)
        for (k, n), (weight, bias) in zip(itertools.pairwise(self.sizes), self.layers(row), strict=True):
            weight[0, :k, :n], bias[0, :n] = LAYERS[self.start](rng, k, n)
        return cast(NDArray[np.float32], row[0].numpy())

    def layers(self, matrix: Tensor) -> list[Layer]:
        """Returns views into a matrix [M, row] of parameters or gradients."""
        return layers_of(matrix, list(itertools.pairwise(self.widths)))

    def layer_views(self, matrix: Tensor) -> list[Tensor]:
        """Returns views [M, in + 1, out] into a matrix [M, row]: weights, and as those of an input 1 the biases."""
        shapes = [(k + 1, n) for k, n in itertools.pairwise(self.widths)]
        parts = torch.split(matrix, [k * n for k, n in shapes], dim=1)
        return [part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def real(self) -> Tensor:
        """[row], False where a row is padding."""
        row = torch.zeros(1, self.row, dtype=torch.bool)
        for (k, n), (weight, bias) in zip(itertools.pairwise(self.sizes), self.layers(row), strict=True):
            weight[0, :k, :n] = True
            bias[0, :n] = True
        return row[0]

    def activations(self, layers: list[Layer], x: Tensor) -> list[Tensor]:
        """Returns [x, h_1, …, logits] for x [M, B, inputs].

        h [M, B, width] is behind its ReLU, logits [M, B, classes].
        """
        outputs = [x]
        for weight, bias in layers:
            outputs.append(torch.baddbmm(bias[:, None], outputs[-1], weight))
            if len(outputs) < len(self.sizes):
                outputs[-1].relu_()
        return [*outputs[:-1], outputs[-1][..., : self.sizes[-1]]]

    def inputs(self, params: Tensor, x: Tensor) -> list[Tensor]:
        """Returns the inputs of the layers [M, B, in + 1], with the 1 of the bias, for x [M, B, inputs]."""
        *below, _ = self.activations(self.layers(params), x)
        return [torch.nn.functional.pad(inputs, (0, 1), value=1.0) for inputs in below]

    def statistics(self, params: Tensor) -> Statistics:
        """Returns {}: there are none."""
        return {}

    def logits(self, params: Tensor, statistics: Statistics, x: Tensor) -> Tensor:
        """Returns [M, B, classes] for x [M, B, inputs]."""
        return self.activations(self.layers(params), x)[-1]

    def gradients(
        self,
        params: Tensor,
        statistics: Statistics,
        batch: Batch,
        row_weight: Tensor,
        parts: Sequence[int],
        into: Sequence[Tensor],
    ) -> Tensor:
        """Writes gradients and returns losses, as `Network.gradients`."""
        layers = self.layers(params)
        outputs = self.activations(layers, batch.x)
        of_rows, delta = entropy_delta(outputs[-1], batch.labels, batch.allowed, row_weight, self.subtracted)
        losses = [part.sum(1) for part in torch.split(of_rows, list(parts), dim=1)]
        last = slice(-parts[-1], None)
        residual = mean_square(delta[:, last], row_weight[:, last])
        self._backward(layers, outputs, delta.mul_(row_weight), parts, [self.layers(gradient) for gradient in into])
        return torch.stack([*losses, residual], dim=1)

    def pull_back(
        self, params: Tensor, statistics: Statistics, x: Tensor, parts: Sequence[int], pull: Pull, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.pull_back`."""
        layers = self.layers(params)
        outputs = self.activations(layers, x)
        self._backward(layers, outputs, pull(outputs[-1]), [sum(parts)], [self.layers(into)])

    def sensitivity(
        self, params: Tensor, statistics: Statistics, x: Tensor, allowed: Tensor | None, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.sensitivity`."""
        self.pull_back(params, statistics, x, [x.shape[1]], lambda z: 2 * (z if allowed is None else z * allowed), into)

    def _backward(
        self, layers: list[Layer], outputs: list[Tensor], delta: Tensor, parts: Sequence[int], into: list[list[Layer]]
    ) -> None:
        """Writes the gradients by the parameters, from that by the logits, delta [M, B, classes].

        outputs: of `activations`. The gradient of each part of the batch is written into its layers.
        """
        # The padding's gradient is zero, and so stay its parameters.
        delta = torch.nn.functional.pad(delta, (0, self.widths[-1] - self.sizes[-1]))
        slices = consecutive(parts)
        for index in reversed(range(len(layers))):
            for part, gradient in zip(slices, into, strict=True):
                torch.bmm(outputs[index][:, part].mT, delta[:, part], out=gradient[index].weight)
                torch.sum(delta[:, part], dim=1, out=gradient[index].bias)
            if index:
                delta = torch.bmm(delta, layers[index].weight.mT)
                # In place: zero where the ReLU was shut.
                torch.ops.aten.threshold_backward(delta, outputs[index], 0, grad_input=delta)
