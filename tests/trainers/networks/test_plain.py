"""Networks as ordinary modules of torch load them: the same logits, whatever lies between the parameters here."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from tests.support.made_images import made_images
from tests.support.torch_resnet import ProgressiveResNet, TorchResNet
from trainers.cohort import Architecture
from trainers.engines.compiled.products import PRODUCTS
from trainers.networks import make_network, make_resnet
from trainers.networks.plain import state_dict
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.resnet import REDUCED
from trainers.streams.images.split import SplitStream
from trainers.streams.permuted import PermutedStream
from trainers.streams.pixels import digits

TINY = Architecture(hidden=(20, 12))  # neither fills its padding
COUNT = 3


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    return PermutedStream(digits.load(tmp_path_factory.mktemp("none")), range(COUNT))


def some(row, seed=0):
    """Parameters, or variances, that are all different."""
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.01, 0.2, row).astype(np.float32))


@pytest.fixture(params=[None, 4], ids=["one layer", "joint embedding"])
def images(request):
    return SplitStream(made_images(classes=6, train=2, test=1, size=16, attributes=request.param), range(COUNT), 2)


def test_an_mlp(stream):
    net = make_network(TINY, stream)
    params, x = torch.from_numpy(net.init(np.random.default_rng(0))), torch.rand(5, 64)
    plain = nn.Sequential(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 10))
    plain.load_state_dict(state_dict(TINY, stream, False, params, None))
    torch.testing.assert_close(plain(x).detach(), net.logits(params[None], {}, x[None])[0])


class PlainColumns(nn.Module):
    def __init__(self, sizes, count):
        super().__init__()
        pairs = list(itertools.pairwise(sizes))
        self.columns = nn.ModuleList(
            nn.ModuleList(nn.Linear(k * (number + 1 if at else 1), n) for at, (k, n) in enumerate(pairs))
            for number in range(count)
        )

    def forward(self, x, number):
        below = [x] * (number + 1)
        for layer in range(len(self.columns[0]) - 1):
            beside = [x if layer == 0 else torch.cat(below[: k + 1], dim=1) for k in range(number + 1)]
            below = [torch.relu(self.columns[k][layer](beside[k])) for k in range(number + 1)]
        return self.columns[number][-1](torch.cat(below, dim=1))


def test_columns_of_mlps(stream):
    net = MLPColumns((64, 20, 12, 10), COUNT)
    rngs = [np.random.default_rng(number) for number in range(COUNT)]
    params, x = torch.from_numpy(net.init(rngs)), torch.rand(5, 64)
    plain = PlainColumns((64, 20, 12, 10), COUNT)
    plain.load_state_dict(state_dict(TINY, stream, True, params, None))
    for number in range(COUNT):
        ours = net.logits(net.columns(params)[: number + 1], x, PRODUCTS["mkl"].affine)
        torch.testing.assert_close(plain(x, number).detach(), ours)


def resnet(images):
    """An untrained network and its moving averages, which are those of no batch."""
    net = make_resnet(Architecture("reduced_resnet18"), images)
    return net, some(net.row), some(net.statistics_layout.row, seed=1)


def test_a_residual_network(images):
    """A joint embedding, too: multiplied out it is one linear layer."""
    net, params, averages = resnet(images)
    x = torch.rand(1, 4, 16, 16, 3)
    ours = net.logits(params[None], {"statistics": averages[None]}, x)[0]
    plain = TorchResNet(REDUCED, False, net.head.outputs).eval()
    plain.load_state_dict(state_dict(Architecture("reduced_resnet18"), images, False, params, averages))
    torch.testing.assert_close(plain(x[0].permute(0, 3, 1, 2)).detach(), ours)


@pytest.mark.slow
def test_the_standard_one_is_torchvisions():
    models = pytest.importorskip("torchvision.models")
    images = SplitStream(made_images(classes=6, train=2, test=1, size=64), range(COUNT), 2)
    architecture = Architecture("resnet18")
    net = make_resnet(architecture, images)
    params, averages, x = some(net.row), some(net.statistics_layout.row, seed=1), torch.rand(1, 2, 64, 64, 3)
    plain = models.resnet18(num_classes=6).eval()
    plain.load_state_dict(state_dict(architecture, images, False, params, averages))
    ours = net.logits(params[None], {"statistics": averages[None]}, x)[0]
    torch.testing.assert_close(plain(x[0].permute(0, 3, 1, 2)).detach(), ours)


@pytest.mark.parametrize("images", [None], ids=["one layer"], indirect=True)
def test_columns_of_residual_networks(images):
    net = ResNetColumns(resnet(images)[0], COUNT)
    params, averages = some(net.row), some(net.net.statistics_layout.row * COUNT, seed=1)
    x = torch.rand(1, 3, 16, 16, 3)
    state = state_dict(Architecture("reduced_resnet18"), images, True, params, averages)
    plain = ProgressiveResNet(REDUCED, False, net.net.head.outputs, COUNT).eval()
    plain.load_state_dict(apart(state, plain.state_dict()))
    for number in range(COUNT):
        ours = net.logits(params[None], averages[None], number, x)[0]
        torch.testing.assert_close(plain(x[0].permute(0, 3, 1, 2), number).detach(), ours)


def apart(state, wanted):
    """Laterals of the reference, which has one for every pair of columns, from those of columns beside each other."""
    found = {name: value for name, value in state.items() if name.startswith("columns")}
    for name, like in wanted.items():
        kind, number, source, *rest = name.split(".")
        if kind != "laterals":
            continue
        stage, what = rest
        whole, source = state[f"laterals.{number}.{stage}.{what}"], int(source)
        if what == "bias" or stage == "0":  # of all columns together
            found[name] = whole if source == 0 else torch.zeros_like(like)
        else:
            width = like.shape[1]
            found[name] = whole[:, source * width : (source + 1) * width]
    return found
