"""Networks over a matrix of parameters [M, D], one row a member."""

from typing import cast

import torch

from trainers.cohort import IMAGE_NETWORKS, Architecture, find_plugged
from trainers.networks.base import Network
from trainers.networks.heads import Head, JointEmbedding, Linear
from trainers.networks.mlp import MLP
from trainers.networks.own.making import NetworkError
from trainers.networks.own.network import OwnNetwork
from trainers.networks.own.trial import own_network
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.streams.base import ImageStream, PixelStream, TaskStream


def make_network(architecture: Architecture, stream: TaskStream, subtracted: bool = False) -> Network:
    """Returns the network that the architecture names, for the stream's inputs and outputs.

    subtracted: see `losses.output_delta`; without a meaning where no gradient is asked for. Raises NetworkError and
    ForeignError, in one line, where one of the user's own cannot be trained.
    """
    if architecture.own:
        return _make_own(architecture, stream, subtracted)
    if architecture.perceptron:
        sizes = (cast(PixelStream, stream).inputs, *architecture.hidden, stream.outputs)
        return MLP(sizes, subtracted, architecture.start)
    return make_resnet(architecture, cast(ImageStream, stream), subtracted)


def make_resnet(architecture: Architecture, stream: ImageStream, subtracted: bool = False) -> ResNet:
    """Returns the reduced or the standard ResNet-18, with one linear layer or a joint embedding behind it."""
    large = architecture.network == "resnet18"
    attributes = stream.attributes
    head: Head = Linear(stream.outputs, not large) if attributes is None else JointEmbedding(torch.tensor(attributes))
    return ResNet(STANDARD if large else REDUCED, large, head, subtracted)


def _make_own(architecture: Architecture, stream: TaskStream, subtracted: bool) -> OwnNetwork:
    """Makes a user's network for a stream of pixels or of images."""
    plugged = find_plugged(architecture.network)
    if not hasattr(stream, "pixels"):
        return own_network(plugged, cast(PixelStream, stream).inputs, stream.outputs, subtracted)
    images = cast(ImageStream, stream)
    if images.attributes is not None:
        raise NetworkError(
            f"network {plugged.name}: a joint embedding of attributes is for {' and '.join(IMAGE_NETWORKS)}; take the "
            "dataset without attributes"
        )
    height, width, channels = images.pixels.shape[1:]
    return own_network(plugged, (channels, height, width), stream.outputs, subtracted)


__all__ = ["MLP", "Network", "NetworkError", "OwnNetwork", "ResNet", "make_network", "make_resnet"]
