"""A multilayer perceptron for M members at once, with a hand-derived backward pass.

Every member's parameters are one row of a matrix [M, D]. Rows, and every array within a row, start on 64-byte
boundaries: with rows of odd length, two members with the same seed and data drifted apart by 0.2 % accuracy because
their arrays were aligned differently. Padding stays zero, in parameters and gradients, so it changes no norm.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALIGNMENT = 16  # float32 values in 64 bytes
WEIGHT_SPREAD = 0.1
BIAS_START = 0.1


class Layer(NamedTuple):
    """Views of one layer in a parameter matrix: weight [M, out, in], bias [M, out]."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class MLP:
    """Fully connected ReLU network; sizes = (inputs, hidden…, outputs)."""

    sizes: tuple[int, ...]

    @property
    def parameters(self) -> int:
        """Trainable parameters of one member, without padding."""
        return sum((k + 1) * n for k, n in zip(self.sizes, self.sizes[1:], strict=False))

    @property
    def row(self) -> int:
        """Length of a row of the parameter matrix, with padding."""
        return sum(_padded(k * n) + _padded(n) for k, n in zip(self.sizes, self.sizes[1:], strict=False))

    def init(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """One row: weights truncated normal (σ = 0.1, cut at ±2σ), all biases 0.1, as in A-GEM's released code."""
        row = torch.zeros(1, self.row)
        for weight, bias in self.layers(row):
            weight.copy_(torch.from_numpy(_truncated_normal(rng, tuple(weight.shape))))
            bias.fill_(BIAS_START)
        result: NDArray[np.float32] = row[0].numpy()
        return result

    def layers(self, matrix: Tensor) -> list[Layer]:
        """Views into a matrix [M, row] of parameters or gradients."""
        views, start = [], 0
        for k, n in zip(self.sizes, self.sizes[1:], strict=False):
            weight = matrix[:, start : start + k * n].view(-1, n, k)
            start += _padded(k * n)
            views.append(Layer(weight, matrix[:, start : start + n]))
            start += _padded(n)
        return views

    def activations(self, layers: list[Layer], x: Tensor) -> list[Tensor]:
        """[x, h_1, …, logits] for x [M, B, inputs]; every h [M, B, n] is behind its ReLU."""
        outputs = [x]
        for weight, bias in layers:
            outputs.append(torch.baddbmm(bias[:, None], outputs[-1], weight.mT))
            if len(outputs) < len(self.sizes):
                outputs[-1].relu_()
        return outputs

    def gradients(
        self, layers: list[Layer], x: Tensor, target: Tensor, row_weight: Tensor, current: int, into: list[list[Layer]]
    ) -> Tensor:
        """Gradients of the mean cross-entropy over the first `current` rows of the batch and over the rest.

        x [M, B, inputs]; target [B, classes] one-hot; row_weight [B, 1] = 1/rows of its part. The gradient of the
        first part is written into `into[0]`, that of the rest into `into[1]`. Returns the sum of both losses [M].
        """
        outputs = self.activations(layers, x)
        log_p = torch.log_softmax(outputs[-1], dim=2)
        weighted = target * row_weight
        loss = -(log_p * weighted).sum((1, 2))
        delta = log_p.exp_().sub_(target).mul_(row_weight)
        parts = [slice(0, current), slice(current, x.shape[1])]
        for index in reversed(range(len(layers))):
            for part, gradient in zip(parts, into, strict=False):
                torch.bmm(delta[:, part].mT, outputs[index][:, part], out=gradient[index].weight)
                torch.sum(delta[:, part], dim=1, out=gradient[index].bias)
            if index:
                delta = torch.bmm(delta, layers[index].weight)
                torch.ops.aten.threshold_backward(delta, outputs[index], 0, grad_input=delta)
        return loss


def _padded(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    values = rng.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
    return values * np.float32(WEIGHT_SPREAD)
