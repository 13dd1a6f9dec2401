"""Networks over a matrix of parameters [M, D], one row a member."""

from typing import cast

import torch

from trainers.cohort import Architecture
from trainers.networks.base import Network
from trainers.networks.heads import Head, JointEmbedding, Linear
from trainers.networks.mlp import MLP
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.streams.base import ImageStream, PixelStream, TaskStream


def make_network(architecture: Architecture, stream: TaskStream, subtracted: bool = False) -> Network:
    """The network that the architecture names, for the stream's inputs and outputs.

    subtracted: see `losses.output_delta`; without a meaning where no gradient is asked for.
    """
    if architecture.network == "mlp":
        return MLP((cast(PixelStream, stream).inputs, *architecture.hidden, stream.outputs), subtracted)
    return make_resnet(architecture, cast(ImageStream, stream), subtracted)


def make_resnet(architecture: Architecture, stream: ImageStream, subtracted: bool = False) -> ResNet:
    """The reduced or the standard ResNet-18, with one linear layer or a joint embedding behind it."""
    large = architecture.network == "resnet18"
    known = stream.attributes
    head: Head = Linear(stream.outputs, not large) if known is None else JointEmbedding(torch.tensor(known))
    return ResNet(STANDARD if large else REDUCED, large, head, subtracted)


__all__ = ["MLP", "Network", "ResNet", "make_network", "make_resnet"]
