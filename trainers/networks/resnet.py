"""Residual networks (He et al., 2016) for M members at once.

The reduced ResNet-18 of GEM, and the standard one. Members lie beside each other in the channels, so that one grouped
convolution is every member's own, and so is batch normalisation, which treats channels one by one. Parameters are named
and shaped as torchvision has them.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from trainers.networks.base import Statistics
from trainers.networks.by_autograd import ByAutograd
from trainers.networks.draws import uniform
from trainers.networks.heads import Head, Views
from trainers.networks.layout import Layout

REDUCED, STANDARD = (20, 40, 80, 160), (64, 128, 256, 512)
BLOCKS = 2  # in each stage
MOMENTUM, EPS = 0.1, 1e-5  # of batch normalisation, as in PyTorch


class Convolution(NamedTuple):
    """A convolution without bias, and the batch normalisation behind it, by their names."""

    name: str
    norm: str
    inputs: int
    outputs: int
    kernel: int
    stride: int


class _Block(NamedTuple):
    """Two convolutions beside a shortcut, which has a convolution where the shape changes."""

    first: Convolution
    second: Convolution
    shortcut: Convolution | None


@dataclass(frozen=True)
class ResNet(ByAutograd):
    """widths: channels of the four stages. large: a 7×7 stem with stride 2 and max-pooling, instead of a 3×3 one.

    subtracted: see `losses.output_delta`.
    """

    widths: tuple[int, ...]
    large: bool
    head: Head
    subtracted: bool = False
    normalises = together = recordable = True
    least = 1

    @cached_property
    def stem(self) -> Convolution:
        """The first convolution, of the images."""
        kernel, stride = (7, 2) if self.large else (3, 1)
        return Convolution("conv1", "bn1", 3, self.widths[0], kernel, stride)

    @cached_property
    def blocks(self) -> tuple[_Block, ...]:
        """All blocks, stage after stage; from the second stage on, the first one halves the maps' sides."""
        blocks, inputs = [], self.widths[0]
        for stage, width in enumerate(self.widths, start=1):
            for number in range(BLOCKS):
                name, stride = f"layer{stage}.{number}", 2 if stage > 1 and number == 0 else 1
                shortcut = Convolution(f"{name}.downsample.0", f"{name}.downsample.1", inputs, width, 1, stride)
                blocks.append(
                    _Block(
                        Convolution(f"{name}.conv1", f"{name}.bn1", inputs, width, 3, stride),
                        Convolution(f"{name}.conv2", f"{name}.bn2", width, width, 3, 1),
                        shortcut if stride > 1 or inputs != width else None,
                    )
                )
                inputs = width
        return tuple(blocks)

    @cached_property
    def layout(self) -> Layout:
        """Layout of the trainable parameters."""
        of_each = (
            (
                (
                    f"{convolution.name}.weight",
                    (convolution.outputs, convolution.inputs, convolution.kernel, convolution.kernel),
                ),
                *((f"{convolution.norm}.{kind}", (convolution.outputs,)) for kind in ("weight", "bias")),
            )
            for convolution in self._convolutions
        )
        return Layout((*chain.from_iterable(of_each), *self.head.shapes(self.widths[-1])))

    @cached_property
    def statistics_layout(self) -> Layout:
        """Layout of batch normalisation's moving averages."""
        kinds = ("running_mean", "running_var")
        return Layout(
            tuple(
                (f"{convolution.norm}.{kind}", (convolution.outputs,))
                for convolution in self._convolutions
                for kind in kinds
            )
        )

    def activations(self, size: int) -> int:
        """Returns the number of values that all convolutions put out for one image of size × size."""
        side = -(-size // self.stem.stride)
        values = self.stem.outputs * side**2
        side = -(-side // 2) if self.large else side
        for block in self.blocks:
            side = -(-side // block.first.stride)
            values += sum(convolution.outputs * side**2 for convolution in block if convolution is not None)
        return values

    def init(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Returns one row: kernels within ±1/√(k·C_in), k a kernel's side; γ = 1, β = 0.

        A-GEM's released code begins like that.
        """
        row = torch.zeros(1, self.row)
        views = self.layout.views(row)
        for convolution in self._convolutions:
            kernel = views[f"{convolution.name}.weight"][0]
            kernel.copy_(uniform(rng, kernel.shape, (convolution.kernel * convolution.inputs) ** -0.5))
            views[f"{convolution.norm}.weight"].fill_(1.0)
        self.head.init(views, rng)
        return cast(NDArray[np.float32], row[0].numpy())

    def statistics(self, params: Tensor) -> Statistics:
        """Returns the moving averages of untrained networks: mean 0, variance 1."""
        matrix = params.new_zeros(len(params), self.statistics_layout.row)
        for name, view in self.statistics_layout.views(matrix).items():
            view.fill_(float(name.endswith("var")))
        return {"statistics": matrix}

    def _forward(self, leaves: Views, statistics: Statistics, x: Tensor, training: bool) -> Tensor:
        layers = Layers(leaves, self.statistics_layout.views(statistics["statistics"]), training)
        return self.head.logits(leaves, layers.features(self, x))

    @property
    def _convolutions(self) -> list[Convolution]:
        return [self.stem, *(convolution for block in self.blocks for convolution in block if convolution is not None)]


class Layers:
    """The layers of M networks at work: activations are [B, M·C, H, W], a member's channels beside each other.

    views, statistics: parameters and moving averages [M, …] by name. training: batches are normalised by their own
    statistics, and the moving averages follow in place; otherwise by the moving averages, which stay.
    """

    def __init__(self, views: Views, statistics: Views, training: bool) -> None:
        self.views, self._statistics, self._training = views, statistics, training
        self._members = len(next(iter(views.values())))

    def features(self, net: ResNet, x: Tensor) -> Tensor:
        """Returns [M, B, F] after the global average pooling."""
        h = self.stem(net, x)
        for block in net.blocks:
            h = self.block(block, h)
        return self.average_pool(h)

    def stem(self, net: ResNet, x: Tensor, beside: Tensor | None = None) -> Tensor:
        """Returns the first layers for images x [1 or M, B, H, W, 3]; those that all members share are not repeated.

        Here and in `block`, `beside` is added before the last ReLU.
        """
        images = x.permute(1, 0, 4, 2, 3).flatten(1, 2).contiguous(memory_format=torch.channels_last)
        h = self.convolve_and_normalise(net.stem, images, groups=len(x))
        h = (h if beside is None else h + beside).relu_()
        return functional.max_pool2d(h, 3, 2, 1) if net.large else h

    def block(self, block: _Block, x: Tensor, beside: Tensor | None = None) -> Tensor:
        """Returns the output [B, M·C, H, W] of a residual block, behind its last ReLU."""
        h = self.convolve_and_normalise(block.first, x).relu_()
        h = self.convolve_and_normalise(block.second, h)
        h = h + (x if block.shortcut is None else self.convolve_and_normalise(block.shortcut, x))
        return (h if beside is None else h + beside).relu_()

    def average_pool(self, h: Tensor) -> Tensor:
        """Returns [M, B, C] of [B, M·C, H, W]."""
        return h.mean((2, 3)).view(len(h), self._members, -1).transpose(0, 1)

    def convolve_and_normalise(self, convolution: Convolution, x: Tensor, groups: int | None = None) -> Tensor:
        """Returns the convolution of x [B, groups·C_in, H, W] after batch normalisation.

        The moving averages may move.

        groups: how many members x holds, all of them unless it is said.
        """
        kernel, stride = self.views[f"{convolution.name}.weight"].flatten(0, 1), convolution.stride
        if convolution.kernel == 1:
            # The same, by leaving out first what a stride passes over: oneDNN's strided 1×1 convolution is slow, and
            # its backward pass was seen to write past its memory on a processor without AVX-512.
            x, stride = x[:, :, ::stride, ::stride].contiguous(memory_format=torch.channels_last), 1
        h = functional.conv2d(x, kernel, None, stride, convolution.kernel // 2, 1, groups or self._members)
        mean, var = (self._statistics[f"{convolution.norm}.{kind}"] for kind in ("running_mean", "running_var"))
        flat_mean, flat_var = mean.flatten(), var.flatten()
        weight, bias = (self.views[f"{convolution.norm}.{kind}"].flatten() for kind in ("weight", "bias"))
        h = functional.batch_norm(h, flat_mean, flat_var, weight, bias, self._training, MOMENTUM, EPS)
        if self._training and self._members > 1:  # of several members flatten has made copies
            mean.copy_(flat_mean.view_as(mean))
            var.copy_(flat_var.view_as(var))
        return h
