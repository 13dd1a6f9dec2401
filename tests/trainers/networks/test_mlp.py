"""The batched network against autograd and torch.nn."""

import numpy as np
import pytest
import torch

from tests.support.plain_run import unpadded
from trainers.networks import MLP
from trainers.networks.base import Batch
from trainers.networks.layout import ALIGNMENT
from trainers.schedule import generator


def test_parameter_count_and_padding():
    net = MLP((784, 256, 256, 10))
    assert int(net.real.sum()) == 269_322
    assert net.row % ALIGNMENT == 0 and net.row == len(net.real)


def test_initialisation_is_the_published_one():
    """Truncated normal: within ±2σ of σ = 0.1, whose standard deviation is 0.0880 (cut at 2σ); biases 0.1."""
    net = MLP((784, 256, 256, 10))
    row = torch.from_numpy(net.init(generator(0, "init")))[None]
    for (weight, bias), inputs, outputs in zip(net.layers(row), net.sizes, net.sizes[1:], strict=False):
        assert weight.abs().max() <= 0.2
        assert float(weight[:, :inputs, :outputs].std()) == pytest.approx(0.0880, rel=0.05)
        assert (bias[:, :outputs] == 0.1).all()
        assert not weight[:, inputs:].any() and not weight[..., outputs:].any() and not bias[:, outputs:].any()
    assert sum(view.numel() for layer in net.layers(row) for view in layer) == net.row
    assert int((row != 0).sum()) <= 269_322  # padding is zero


@pytest.mark.parametrize(("start", "bias"), [("xavier", 0.0), ("torch", 1 / np.sqrt(784))])
def test_other_starts_are_uniform(start, bias):
    """Bounds, means and deviations; the last layer has other bounds than the first."""
    net = MLP((784, 100, 10), start=start)
    (first, biases), (last, _) = unpadded(net, torch.from_numpy(net.init(generator(0, "init")))[None])
    for weights in (first, last):
        outputs, inputs = weights.shape
        bound = np.sqrt(6 / (inputs + outputs)) if start == "xavier" else 1 / np.sqrt(inputs)
        assert 0.95 * bound < weights.abs().max() <= bound
        assert abs(weights.mean()) < 0.1 * bound and weights.std() == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert biases.abs().max() <= bias and (biases.std() > 0) == bool(bias)
    assert not (torch.from_numpy(net.init(generator(0, "init")))[~net.real]).any()


def autograd(net, row, x, y):
    params = row.clone().requires_grad_()
    h = x
    layers = net.layers(params[None])
    for index, (weight, bias) in enumerate(layers):
        h = h @ weight[0] + bias[0]
        h = torch.relu(h) if index < len(layers) - 1 else h
    loss = torch.nn.functional.cross_entropy(h[:, : net.sizes[-1]], y)
    (gradient,) = torch.autograd.grad(loss, params)
    return loss.detach(), gradient


@pytest.mark.parametrize("members", [1, 3])
def test_gradients_of_both_parts_equal_autograd(members):
    net = MLP((9, 8, 7, 4))
    rows = torch.stack([torch.from_numpy(net.init(generator(seed, "init"))) for seed in range(members)]).double()
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(13, 9, generator=rng, dtype=torch.float64)
    y = torch.randint(0, 4, (13,), generator=rng)
    current = 5
    weight = torch.tensor([1 / 5] * 5 + [1 / 8] * 8, dtype=torch.float64)[None, :, None]
    g, g_ref = torch.zeros_like(rows), torch.zeros_like(rows)
    labels = y.expand(members, -1)
    batch = Batch(x.expand(members, -1, -1), labels, None)
    loss = net.gradients(rows, {}, batch, weight, (5, 8), [g, g_ref])
    for m in range(members):
        loss_now, expected = autograd(net, rows[m], x[:current], y[:current])
        loss_ref, expected_ref = autograd(net, rows[m], x[current:], y[current:])
        assert torch.allclose(g[m], expected, atol=1e-12)
        assert torch.allclose(g_ref[m], expected_ref, atol=1e-12)
        assert loss[m, :2].tolist() == pytest.approx([float(loss_now), float(loss_ref)])


def test_activations_equal_a_torch_network():
    net = MLP((9, 8, 4))
    row = torch.from_numpy(net.init(np.random.default_rng(0)))[None]
    (w1, b1), (w2, b2) = net.layers(row)
    x = torch.rand(6, 9)
    hidden = torch.relu(torch.nn.functional.linear(x, w1[0, :, :8].T, b1[0, :8]))
    expected = torch.nn.functional.linear(hidden, w2[0, :8, :4].T, b2[0, :4])
    assert torch.allclose(net.activations(net.layers(row), x[None])[-1][0], expected, atol=1e-6)
