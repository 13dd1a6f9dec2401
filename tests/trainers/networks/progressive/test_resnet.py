"""Progressive residual networks against explicit columns and laterals of torch.nn, in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.support.torch_resnet import ProgressiveResNet
from tests.trainers.networks.test_resnet import batch, masked_loss
from trainers.networks.draws import BIAS_START
from trainers.networks.heads import Linear
from trainers.networks.layout import ALIGNMENT
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.resnet import REDUCED, ResNet
from trainers.schedule import generator

WIDTHS, COUNT = (4, 6, 8, 10), 3
either_stem = pytest.mark.parametrize("large", [False, True], ids=["reduced", "standard"])


def columns(large, count=COUNT):
    return ResNetColumns(ResNet(WIDTHS, large, Linear(6, random_bias=not large)), count)


def start(net):
    """One member's parameters, those that start with zero moved away from there, and its moving averages."""
    row = torch.from_numpy(net.init([generator(0, "init"), *(generator(0, "column", k) for k in range(1, net.count))]))
    noise = torch.randn(row.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    params = (row.double() + 0.1 * noise)[None]
    return params, net.statistics(params)["statistics"]


def split(net, views, number):
    """Values of a column's views under the names of `ProgressiveResNet.trainable`."""
    found = {}
    for name, view in views.items():
        stage, _, kind = name.removeprefix("lateral").partition(".")
        if not name.startswith("lateral"):
            found[name] = view[0]
            continue
        for j, part in enumerate(view[0].chunk(number, dim=1) if kind == "weight" else view[0]):
            shaped = part[..., None, None] if kind == "weight" and int(stage) < 5 else part
            found[f"lateral.{j}.{stage}.{kind}"] = shaped
    return found


def twin(net, params):
    made = ProgressiveResNet(net.net.widths, net.net.large, net.net.head.outputs, net.count).double()
    with torch.no_grad():
        for number in range(net.count):
            values, named = split(net, net.views(params, number), number), made.trainable(number)
            assert values.keys() == named.keys()
            for name, parameter in named.items():
                parameter.copy_(values[name])
    return made


def reference_step(made, number, x, labels, allowed, rate):
    """(loss, gradients by name) of one step of SGD, which is taken."""
    made.train()
    named = made.trainable(number)
    loss = masked_loss(made(x[0].permute(0, 3, 1, 2), number), labels, allowed)
    gradients = torch.autograd.grad(loss, list(named.values()))
    with torch.no_grad():
        for parameter, gradient in zip(named.values(), gradients, strict=True):
            parameter -= rate * gradient
    return loss.item(), dict(zip(named, gradients, strict=True))


@pytest.mark.slow
@either_stem
def test_every_column_agrees_with_torch_modules(large):
    """Three steps of each column: losses, gradients, moving averages, tests; frozen ones keep every bit."""
    net = columns(large)
    params, averages = start(net)
    made = twin(net, params)
    for number in range(COUNT):
        before, averages_before = params.clone(), averages.clone()
        for step in range(3):
            x, labels, allowed = batch(7, size=32, seed=10 * number + step)
            loss, found = net.gradients(params, averages, number, x, labels, allowed)
            expected_loss, expected = reference_step(made, number, x, labels, allowed, 0.05)
            assert loss.tolist() == pytest.approx([expected_loss], abs=1e-9)
            names = list(net.views(params, number))
            gradients = split(net, {n: g for n, (_, g) in zip(names, found, strict=True)}, number)
            assert gradients.keys() == expected.keys()
            for name, gradient in gradients.items():
                assert torch.allclose(gradient, expected[name], atol=1e-9, rtol=0), (number, step, name)
            for view, gradient in found:
                view.sub_(gradient, alpha=0.05)
        changed = (params != before)[0].nonzero()
        own, kept = net.slice(number), net.statistics_slice(number)
        assert own.start <= int(changed.min()) and int(changed.max()) < own.stop
        moved = (averages != averages_before)[0].nonzero()
        assert kept.start <= int(moved.min()) and int(moved.max()) < kept.stop
        for index, column in enumerate(made.columns):
            for name, buffer in column.named_buffers():
                if not name.endswith("tracked"):
                    assert torch.allclose(net.averages(averages, index)[name][0], buffer, atol=1e-9), (index, name)
        x, _, _ = batch(5, size=32, seed=99)
        made.eval()
        for tested in range(COUNT):  # untrained ones, too
            expected = made(x[0].permute(0, 3, 1, 2), tested)
            assert torch.allclose(net.logits(params, averages, tested, x)[0], expected, atol=1e-9)


@either_stem
def test_every_lateral_acts(large):
    """Without U and c from column 0 to column 2 of any one stage, or to the logits, the answer is another."""
    net = columns(large)
    params, averages = start(net)
    x, _, _ = batch(4, size=32)
    whole = net.logits(params, averages, 2, x)
    for stage in range(6):
        for kind in ("weight", "bias"):
            other = params.clone()
            lateral = net.views(other, 2)[f"lateral{stage}.{kind}"][0]
            (lateral.chunk(2, dim=1)[0] if kind == "weight" else lateral[0]).zero_()
            assert (net.logits(other, averages, 2, x) - whole).abs().max() > 1e-6, (stage, kind)


def counted(net, number):
    """Parameters of a column and its laterals, without padding."""
    return sum(view.numel() for view in net.views(torch.empty(1, net.row), number).values())


@either_stem
def test_the_number_of_parameters_grows_as_counted(large):
    net, made = columns(large), ProgressiveResNet(WIDTHS, large, 6, COUNT)
    for number in range(COUNT):
        assert counted(net, number) == sum(value.numel() for value in made.trainable(number).values())
    pair = sum((k + 1) * n for k, n in pairwise((3, 20, *REDUCED))) + 161 * 100
    cifar = ResNetColumns(ResNet(REDUCED, False, Linear(100, random_bias=True)), 17)
    assert sum(counted(cifar, number) for number in range(17)) == 17 * 1_109_240 + 17 * 16 // 2 * pair == 23_437_560


class TestStart:
    def test_columns_are_drawn_independently(self):
        """Each as a residual network from its own generator; U truncated normal (σ = 0.1), every c = 0.1."""
        net, wide = columns(False), ResNetColumns(ResNet((40,) * 4, False, Linear(30, random_bias=True)), 3)
        for made in (net, wide):
            rngs = [generator(5, "column", number) for number in range(3)]
            params = torch.from_numpy(made.init(rngs))[None]
            for number in range(3):
                alone = made.net.init(generator(5, "column", number))
                assert np.array_equal(made.backbone(params, number)[0].numpy(), alone)
        for stage, inputs in enumerate((3, 40, 40, 40, 40, 40)):
            weight, bias = (wide.views(params, 2)[f"lateral{stage}.{kind}"][0] for kind in ("weight", "bias"))
            assert weight.shape == (30 if stage == 5 else 40, 2 * inputs) and (bias == BIAS_START).all()
            assert float(weight.abs().max()) <= 0.2 and float(weight.std()) == pytest.approx(0.088, rel=0.1)
            assert not torch.equal(*weight.chunk(2, dim=1))

    @either_stem
    def test_rows_are_aligned_and_padding_is_zero(self, large):
        net = columns(large)
        params = torch.from_numpy(net.init([generator(0, "column", number) for number in range(COUNT)]))[None]
        assert net.row == params.shape[1] and net.row % ALIGNMENT == 0
        real = torch.zeros_like(params)
        for number in range(COUNT):
            for view in net.views(params, number).values():
                assert view.storage_offset() % ALIGNMENT == 0
            for view in net.views(real, number).values():
                assert not view.any()  # nothing lies over another
                view.fill_(1)
        assert int(real.sum()) == sum(counted(net, number) for number in range(COUNT))
        assert not params[real == 0].any()
