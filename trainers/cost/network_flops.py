"""Counts the floating point operations of a pass through a network.

From the shapes of its products and convolutions alone.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from trainers.networks.base import Network
from trainers.networks.heads import Linear
from trainers.networks.mlp import MLP
from trainers.networks.own.network import OwnNetwork
from trainers.networks.progressive.laterals import LOGITS, Laterals
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.resnet import BLOCKS, Convolution, ResNet


class Work(NamedTuple):
    """FLOP of a network; a multiplication and an addition are two."""

    forward: float
    """Of one example's forward pass."""
    backward: float
    """Of its backward pass, which makes the gradient of the parameters."""
    fixed_forward: float = 0.0
    """Of a batch's forward pass besides, however many examples it has."""
    fixed_backward: float = 0.0
    """Of a batch's backward pass besides."""

    def plus(self, forward: float, backward: float = 0.0) -> "Work":
        """Returns the work with so much more for each example."""
        return self._replace(forward=self.forward + forward, backward=self.backward + backward)

    def training_flop(self, examples: float, batches: float) -> float:
        """Returns the FLOP of both passes of so many examples in so many batches."""
        return examples * (self.forward + self.backward) + batches * (self.fixed_forward + self.fixed_backward)


def work_of(net: Network, size: int = 0) -> Work:
    """Returns the work of a network, without the padding of its layers.

    size: side of the images of a residual network. The work of a user's network was counted by torch, in passes of tiny
    batches.

    >>> work = work_of(MLP((784, 256, 256, 10)))
    >>> work.forward == 2 * (784 * 256 + 256 * 256 + 256 * 10), work.backward == 2 * work.forward - 2 * 784 * 256
    (True, True)
    """
    if isinstance(net, OwnNetwork):
        return Work(*net.facts.flop)
    return _resnet(net, size) if isinstance(net, ResNet) else mlp_work(cast(MLP, net).sizes)


def mlp_work(sizes: Sequence[int]) -> Work:
    """Returns the work of a multilayer perceptron; its images need no gradient."""
    first, *later = (2.0 * k * n for k, n in pairwise(sizes))
    # Backward, each layer makes the gradient of its weights, and all but the first that of their inputs.
    return Work(first + sum(later), first + 2 * sum(later))


def column_works(net: MLP | ResNet, count: int, size: int = 0) -> list[Work]:
    """Returns the work of each column of a progressive network.

    `forward` runs all columns before it, too, which have no gradient.
    """
    if isinstance(net, ResNet):
        return [_resnet_column(ResNetColumns(net, count), number, size) for number in range(count)]
    return [_mlp_column(MLPColumns(net.sizes, count), number) for number in range(count)]


def _resnet(net: ResNet, size: int) -> Work:
    sides = _sides(net, size)
    stem = _convolution(net.stem, sides[0])
    blocks = ((block, sides[1 + number // BLOCKS]) for number, block in enumerate(net.blocks))
    later = sum(
        _convolution(convolution, side) for block, side in blocks for convolution in block if convolution is not None
    )
    return _head(net).plus(stem + later, stem + 2 * later)


def _head(net: ResNet) -> Work:
    """Returns the work of the logits.

    A joint embedding makes its classes once a batch, of which the attributes need no gradient.
    """
    logits = 2.0 * net.widths[-1] * net.head.outputs
    if isinstance(net.head, Linear):
        return Work(logits, 2 * logits)
    (_, (attributes, features)), *_ = net.head.shapes(net.widths[-1])
    made = 2.0 * net.head.outputs * attributes * features
    return Work(logits, 2 * logits, made, made)


def _mlp_column(net: MLPColumns, number: int) -> Work:
    """Returns the work of a column of a progressive perceptron.

    Earlier columns stop before their outputs. Layer l > 1 takes the units of all columns; only those of its own column
    have a gradient.
    """
    first, *later = (2.0 * k * n for k, n in pairwise(net.sizes))
    earlier = sum(first + (column + 1) * sum(later[:-1]) for column in range(number))
    laterals = number * sum(later)
    return mlp_work(net.sizes).plus(earlier + laterals, laterals)


def _resnet_column(net: ResNetColumns, number: int, size: int) -> Work:
    """Returns the work of a column of a progressive residual network.

    Laterals have the gradient of their weights alone; earlier columns stop before their logits.
    """
    alone, sides = _resnet(net.net, size), _sides(net.net, size)
    *earlier, last = (_laterals(Laterals(net.net, column), sides) for column in range(number + 1))
    stopped = sum(alone.forward - _head(net.net).forward + sum(stages) for *stages, _ in earlier)
    return alone.plus(stopped + sum(last), sum(last))


def _laterals(laterals: Laterals, sides: list[int]) -> list[float]:
    """Returns the FLOP of the laterals' forward passes for one image: of the stem, the stages and the logits.

    An image passes through the laterals of all earlier columns at once.
    """
    widths, number = laterals.net.widths, laterals.number
    if not number:
        return [0.0] * (LOGITS + 1)
    inputs = (3, *(number * width for width in (widths[0], *widths)))
    outputs = (widths[0], *widths, laterals.net.head.outputs)
    return [2.0 * k * n * side**2 for k, n, side in zip(inputs, outputs, (*sides, 1), strict=True)]


def _sides(net: ResNet, size: int) -> list[int]:
    """Returns the sides of the maps that the stem's convolution and the four stages put out."""
    # Rounded up: padded convolutions put out one value for every place where a stride begins.
    stem = -(-size // net.stem.stride)
    sides, side = [stem], -(-stem // 2) if net.large else stem  # a pool halves what a large stem puts out
    for block in net.blocks[::BLOCKS]:
        side = -(-side // block.first.stride)
        sides.append(side)
    return sides


def _convolution(convolution: Convolution, side: int) -> float:
    """Returns the FLOP of the forward pass of an image; side: of the output."""
    return 2.0 * convolution.outputs * side**2 * convolution.kernel**2 * convolution.inputs
