"""Trained networks as a `state_dict` for ordinary modules of torch.

With their names and shapes, and without padding.

network            loads into
mlp                nn.Sequential(Linear, ReLU, …, Linear), whose layers are numbered: 0.weight, 0.bias, 2.weight, …
resnet18           torchvision's resnet18; of a reduced one a module with its names; a joint embedding is multiplied out
                   with the attributes of its classes into the linear layer `fc`
of users           what their factory makes
columns of ours    a module with `columns`, a list of such networks, and for residual ones `laterals`, below

Of column k of an mlp, `columns.k.l` is layer l, over the units of layer l − 1 of columns 0…k beside each other (of the
first layer: the pixels). Of a residual one, `laterals.k.s` is added before the last ReLU of stage s (0 the stem): a 1×1
convolution, with the stage's stride, of the maps of columns 0…k − 1 beside each other, from before that stage (for
stage 0 of the image, once); `laterals.k.5` is a linear layer from their pooled features to the logits.
"""

import itertools
from typing import cast

import torch
from torch import Tensor

from trainers.cohort import Architecture
from trainers.networks import OwnNetwork, make_network, make_resnet
from trainers.networks.heads import JointEmbedding, Views
from trainers.networks.mlp import MLP, Layer
from trainers.networks.progressive.laterals import LOGITS
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.resnet import ResNet
from trainers.streams.base import ImageStream, PixelStream, TaskStream

State = dict[str, Tensor]


def state_dict(
    architecture: Architecture, stream: TaskStream, columns: bool, params: Tensor, statistics: Tensor | None
) -> State:
    """Returns the parameters and moving averages of one learner, by name.

    columns: whether its method grows a column for each task; params [D], statistics [S]: its row of a result, without
    statistics where the network has none.
    """
    if architecture.own:
        return cast(OwnNetwork, make_network(architecture, stream)).state_dict(params, statistics)
    if architecture.perceptron and columns:
        sizes = (cast(PixelStream, stream).inputs, *architecture.hidden, stream.outputs)
        return _of_columns(MLPColumns(sizes, len(stream.tasks)), params)
    if architecture.perceptron:
        return _of_mlp(cast(MLP, make_network(architecture, stream)), params)
    net, statistics = make_resnet(architecture, cast(ImageStream, stream)), cast(Tensor, statistics)
    if columns:
        return _of_resnet_columns(ResNetColumns(net, len(stream.tasks)), params[None], statistics[None])
    return _of_resnet(net, net.layout.views(params[None]), net.statistics_layout.views(statistics[None]))


def _of_mlp(net: MLP, params: Tensor) -> State:
    layers = net.layers(params[None])
    state: State = {}
    for number, ((k, n), (weight, bias)) in enumerate(zip(itertools.pairwise(net.sizes), layers, strict=True)):
        # Between two layers stands a ReLU, which has a number, too.
        state |= _layer(str(2 * number), Layer(weight[0, :k, :n], bias[0, :n]))
    return state


def _of_columns(net: MLPColumns, params: Tensor) -> State:
    state: State = {}
    for number, column in enumerate(net.columns(params)):
        for index, (weight, bias) in enumerate(column):
            k, n = net.sizes[index : index + 2]
            sources, width = (number + 1 if index else 1), net.widths[index]
            real = [weight[source * width : source * width + k, :n] for source in range(sources)]
            state |= _layer(f"columns.{number}.{index}", Layer(torch.cat(real), bias[:n]))
    return state


def _layer(name: str, layer: Layer) -> State:
    return {f"{name}.weight": layer.weight.T.clone(), f"{name}.bias": layer.bias.clone()}


def _of_resnet(net: ResNet, views: Views, averages: Views) -> State:
    """Returns the state of a residual network.

    views, averages: parameters and moving averages [1, …] by name.
    """
    state = {
        name: view[0].clone() for name, view in (views | averages).items() if name.partition(".")[0] != "embedding"
    }
    if isinstance(net.head, JointEmbedding):
        state["fc.weight"] = net.head.classes(views["embedding.weight"])[0]
        state["fc.bias"] = views["embedding.bias"][0].clone()
    return state


def _of_resnet_columns(net: ResNetColumns, params: Tensor, statistics: Tensor) -> State:
    state: State = {}
    for number in range(net.count):
        views, averages = net.views(params, number), net.averages(statistics, number)
        column_views = {name: view for name, view in views.items() if not name.startswith("lateral")}
        state |= {
            f"columns.{number}.{name}": value for name, value in _of_resnet(net.net, column_views, averages).items()
        }
        for stage in range(LOGITS + 1) if number else ():
            weight, bias = views[f"lateral{stage}.weight"][0], views[f"lateral{stage}.bias"][0]
            if stage == 0:  # the same image for all columns
                weight = weight.view(len(weight), number, -1).sum(1)
            kernel = weight if stage == LOGITS else weight[..., None, None]
            state |= {
                f"laterals.{number}.{stage}.weight": kernel.clone(),
                f"laterals.{number}.{stage}.bias": bias.sum(0),
            }
    return state
