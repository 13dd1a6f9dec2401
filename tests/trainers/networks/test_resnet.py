"""The batched residual networks against ordinary torch.nn modules, in float64 where only rounding may differ."""

import math

import numpy as np
import pytest
import torch

from tests.support.image_run import torch_twin
from trainers.networks.base import Batch
from trainers.networks.heads import JointEmbedding, Linear
from trainers.networks.layout import ALIGNMENT
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.schedule import generator

ATTRIBUTES = torch.nn.functional.normalize(torch.rand(6, 5, generator=torch.Generator().manual_seed(1)), dim=1)
KINDS = {
    "reduced": (ResNet((4, 6, 8, 10), False, Linear(6, random_bias=True)), None),
    "standard": (ResNet((4, 6, 8, 10), True, Linear(6, random_bias=False)), None),
    "joint embedding": (ResNet((4, 6, 8, 10), True, JointEmbedding(ATTRIBUTES.double())), ATTRIBUTES.double()),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def members(net, count):
    params = torch.stack([torch.from_numpy(net.init(generator(seed, "init"))) for seed in range(count)]).double()
    return params, net.statistics(params)


def batch(count, size=16, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(1, count, size, size, 3, generator=rng, dtype=torch.float64)
    labels = torch.randint(0, 6, (1, count), generator=rng)
    heads = torch.tensor([0, 0, 0, 1, 1, 1])
    return x, labels, heads[labels][..., None] == heads


def masked_loss(logits, labels, allowed):
    """One example after the other, over its own task's outputs alone."""
    losses = [
        torch.nn.functional.cross_entropy(z[mine][None], (torch.nonzero(mine)[:, 0] == y).nonzero()[:, 0])
        for z, y, mine in zip(logits, labels[0], allowed[0], strict=True)
    ]
    return torch.stack(losses).mean()


def test_parameter_counts_are_the_published_ones():
    reduced = ResNet(REDUCED, False, Linear(100, random_bias=True))
    standard = ResNet(STANDARD, True, Linear(200, random_bias=False))
    assert int(reduced.real.sum()) == 1_109_240 and int(standard.real.sum()) == 11_176_512 + 200 * 513
    joint = ResNet(STANDARD, True, JointEmbedding(torch.zeros(850, 85)))
    assert int(joint.real.sum()) == 11_176_512 + 85 * 512 + 850


@pytest.mark.slow
def test_the_standard_one_is_torchvisions():
    from torchvision.models import resnet18

    net = ResNet(STANDARD, True, Linear(1000, random_bias=False))
    theirs = {name: tuple(value.shape) for name, value in resnet18(weights=None).named_parameters()}
    assert theirs == dict(net.layout.shapes)


@every_kind
def test_rows_are_aligned_and_padding_is_zero(kind):
    net, _ = KINDS[kind]
    row = torch.from_numpy(net.init(generator(0, "init")))[None]
    assert net.row % ALIGNMENT == 0 and int(net.real.sum()) == sum(math.prod(shape) for _, shape in net.layout.shapes)
    assert all(view.storage_offset() % ALIGNMENT == 0 for view in net.layout.views(row).values())
    assert not row[0][~net.real].any()


def test_initialisation_is_the_released_codes():
    """Kernels uniform within ±1/√(side·inputs): their standard deviation is that bound over √3; γ = 1, β = 0."""
    net = ResNet(REDUCED, False, Linear(100, random_bias=True))
    views = net.layout.views(torch.from_numpy(net.init(generator(0, "init")))[None])
    kernel, bound = views["layer4.1.conv2.weight"], (3 * 160) ** -0.5
    assert float(kernel.abs().max()) <= bound and float(kernel.std()) == pytest.approx(bound / 3**0.5, rel=0.02)
    assert (views["bn1.weight"] == 1).all() and (views["bn1.bias"] == 0).all()
    assert 0 < float(views["fc.bias"].abs().max()) <= 160**-0.5


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("count", [1, 3])
def test_steps_agree_with_torch_modules(kind, count):
    """Three SGD steps of a reference batch, then a mini-batch: gradients of both, losses, moving averages, tests."""
    net, attributes = KINDS[kind]
    params, kept = members(net, count)
    twins = [torch_twin(net, row, attributes) for row in params]
    for step in range(3):
        x, labels, allowed = batch(13, size=32, seed=step)
        weight = torch.tensor([1 / 5] * 5 + [1 / 8] * 8, dtype=torch.float64)[None, :, None]
        into = [torch.empty_like(params) for _ in range(2)]
        loss = net.gradients(params, kept, Batch(x, labels, allowed), weight, (5, 8), into)
        for member, made in enumerate(twins):
            expected = []
            for part in (slice(5, 13), slice(0, 5)):  # the reference batch first: both move the statistics
                found = masked_loss(made(x[0, part].permute(0, 3, 1, 2)), labels[:, part], allowed[:, part])
                expected.append((found, torch.autograd.grad(found, list(made.parameters()))))
            (loss_ref, g_ref), (loss_now, g) = expected
            assert loss[member, :2].tolist() == pytest.approx([loss_now.item(), loss_ref.item()], abs=1e-9)
            for gradient, reference in zip(into, (g, g_ref), strict=True):
                views = net.layout.views(gradient[member : member + 1])
                names = [name for name, _ in made.named_parameters()]
                for name, value in zip(names, reference, strict=True):
                    assert torch.allclose(views[name][0], value, atol=1e-9), (step, member, name)
                assert not gradient[member][~net.real].any()
            with torch.no_grad():
                for parameter, value in zip(made.parameters(), g, strict=True):
                    parameter -= 0.05 * value
        params -= 0.05 * into[0]
    averages = net.statistics_layout.views(kept["statistics"])
    x, _, _ = batch(7, size=32, seed=9)
    found = net.logits(params, kept, x)
    for member, made in enumerate(twins):
        buffers = dict(made.named_buffers())
        for name, view in averages.items():
            assert torch.allclose(view[member], buffers[name], atol=1e-9), name
        made.eval()
        assert torch.allclose(found[member], made(x[0].permute(0, 3, 1, 2)), atol=1e-9)


@every_kind
def test_other_tasks_outputs_have_a_gradient_of_exactly_zero(kind):
    net, _ = KINDS[kind]
    params, kept = members(net, 2)
    x, _, _ = batch(6, size=32)
    labels = torch.tensor([[0, 1, 2, 0, 1, 2]])  # the first task's
    allowed = (torch.arange(6) < 3).expand(1, 6, 6)
    into = torch.empty_like(params)
    loss = net.gradients(params, kept, Batch(x, labels, allowed), torch.full((1, 6, 1), 1 / 6), (6,), [into])
    views = net.layout.views(into)
    assert torch.isfinite(loss).all()
    for name in ("fc.weight", "fc.bias", "embedding.bias"):
        if name in views:
            assert (views[name][:, 3:] == 0).all() and (views[name][:, :3] != 0).any()


@every_kind
def test_members_with_different_images_do_not_mix(kind):
    """x [M, B, …] of different images gives each member what it gets alone."""
    net, _ = KINDS[kind]
    params, kept = members(net, 2)
    parts = [batch(6, size=32, seed=seed) for seed in (0, 1)]
    x, labels, allowed = (torch.cat(one) for one in zip(*parts, strict=True))
    into, weight = torch.empty_like(params), torch.full((1, 6, 1), 1 / 6, dtype=torch.float64)
    net.gradients(params, kept, Batch(x, labels, allowed), weight.expand(2, -1, -1), (6,), [into])
    for member, (one, y, mine) in enumerate(parts):
        row, alone = slice(member, member + 1), torch.empty_like(params[:1])
        fresh = net.statistics(params[row])
        net.gradients(params[row], fresh, Batch(one, y, mine), weight, (6,), [alone])
        assert torch.allclose(into[row], alone, atol=1e-12)
        assert torch.allclose(kept["statistics"][row], fresh["statistics"], atol=1e-12)


@every_kind
def test_sensitivity_counts_the_tasks_logits_in_inference_mode(kind):
    net, attributes = KINDS[kind]
    params, kept = members(net, 2)
    x, _, allowed = batch(5, size=32)
    before, into = kept["statistics"].clone(), torch.empty_like(params)
    net.sensitivity(params, kept, x, allowed, into)
    assert torch.equal(kept["statistics"], before)
    for member in range(2):
        made = torch_twin(net, params[member], attributes).eval()
        z = made(x[0].permute(0, 3, 1, 2))
        expected = torch.autograd.grad((z[allowed[0]] ** 2).sum(), list(made.parameters()))
        views = net.layout.views(into[member : member + 1])
        for (name, _), value in zip(made.named_parameters(), expected, strict=True):
            assert torch.allclose(views[name][0], value, atol=1e-9), name


def test_float32_is_within_the_stated_tolerance():
    """The same step in float32, of the network that trains on CIFAR."""
    net = ResNet(REDUCED, False, Linear(100, random_bias=True))
    row = torch.from_numpy(net.init(generator(0, "init")))[None]
    x, labels, _ = batch(8, size=32)
    weight, into = torch.full((1, 8, 1), 1 / 8), torch.empty_like(row)
    net.gradients(row, net.statistics(row), Batch(x.float(), labels, None), weight, (8,), [into])
    made = torch_twin(net, row[0].double(), None)
    loss = torch.nn.functional.cross_entropy(made(x[0].permute(0, 3, 1, 2)), labels[0])
    expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(made.parameters()))]).float()
    found = torch.cat([view.reshape(-1) for view in net.layout.views(into).values()])
    assert float((found - expected).abs().max()) < 1e-5
    assert np.isfinite(found.numpy()).all()
