"""The gradient of the cross-entropy where an example is fitted: rounding must not take its place."""

import numpy as np
import pytest
import torch
from gradient_errors import CPU_PATHS, reference_gradient
from torch import Tensor

from tests.support.learners import engine_of, learner
from tests.support.toy_streams import toy
from trainers.engines.columns.mlp import frozen_units, train_column
from trainers.engines.compiled import kernels
from trainers.engines.compiled.products import PRODUCTS
from trainers.networks import MLP
from trainers.networks.base import Batch
from trainers.networks.heads import JointEmbedding, Linear
from trainers.networks.losses import cross_entropy, one_hot, output_delta
from trainers.networks.progressive.mlp import MLPColumns
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.resnet import ResNet
from trainers.numeric_path import NumericPath
from trainers.schedule import generator
from trainers.streams.base import Examples

FITTED = 1e-5
"""Largest relative error of a gradient by the sum; the subtraction has lost at least LOST of it."""
LOST = 1e-2


def fitted_logits() -> tuple[Tensor, Tensor]:
    """Logits [1, 40, 10] whose labels have all but e⁻¹⁵ to e⁻⁴⁰ of the probability."""
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((40, 10)), rng.integers(0, 10, 40)
    logits[np.arange(40), labels] += np.linspace(18, 40, 40)
    return torch.tensor(logits, dtype=torch.float32)[None], torch.tensor(labels)[None]


def exact_delta(logits: Tensor, labels: Tensor) -> Tensor:
    """In float64, without a difference of near numbers."""
    p = torch.softmax(logits.double(), dim=-1)
    target = one_hot(labels, p).bool()
    return torch.where(target, -p.masked_fill(target, 0).sum(-1, keepdim=True), p)


def worst(found: Tensor, exact: Tensor) -> float:
    """Largest relative error of an entry."""
    return float(((found.double() - exact).abs() / exact.abs()).max())


def by_kernel(logits: Tensor, labels: Tensor, subtracted: bool) -> Tensor:
    delta = np.zeros((40, 16), dtype=np.float32)
    padded = np.zeros((40, 16), dtype=np.float32)
    padded[:, :10] = logits[0].numpy()
    kernels.output_delta(padded, labels[0].numpy(), 10, 40, delta, subtracted)
    return torch.tensor(40 * delta[None, :, :10])


def by_tensors(logits: Tensor, labels: Tensor, subtracted: bool) -> Tensor:
    p = torch.softmax(logits, dim=2)
    return output_delta(p, one_hot(labels, p), subtracted)


def by_autograd(logits: Tensor, labels: Tensor, subtracted: bool) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss = cross_entropy(leaf, labels, None, torch.ones(1, 40), subtracted)
    return torch.autograd.grad(loss.sum(), leaf)[0]


@pytest.mark.parametrize("way", [by_kernel, by_tensors, by_autograd])
def test_the_gradient_at_the_label_keeps_its_digits(way):
    logits, labels = fitted_logits()
    exact = exact_delta(logits, labels)
    assert worst(way(logits, labels, False), exact) < FITTED
    assert worst(way(logits, labels, True), exact) > LOST


def test_autograd_agrees_with_torchs_and_outputs_of_other_tasks_have_none():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 7, 6, generator=rng, dtype=torch.float64).requires_grad_()
    labels, allowed = torch.randint(0, 3, (1, 7), generator=rng), torch.zeros(1, 7, 6, dtype=torch.bool)
    allowed[..., :3] = True
    weight = torch.rand(1, 7, generator=rng, dtype=torch.float64)
    ours = [
        torch.autograd.grad(
            cross_entropy(logits, labels, allowed, weight, way) @ torch.arange(1.0, 4).double(), logits
        )[0]
        for way in (False, True)
    ]
    assert torch.allclose(ours[0], ours[1], rtol=1e-12, atol=1e-15)
    assert not ours[0][..., 3:].any()


@pytest.mark.parametrize("name", CPU_PATHS)
def test_g_ref_of_a_fitted_memory(name):
    """Whole reference gradients [D] on every CPU path, of a network that knows its memory by heart."""
    stream = toy(range(2), examples=40)
    net, path = MLP((stream.inputs, 16, 16, stream.outputs)), NumericPath.parse(name)
    row = torch.from_numpy(net.init(generator(2, "init")))
    examples = stream.train(0, 0, np.arange(40))
    x = torch.from_numpy(examples.inputs)[None].double() / stream.largest
    net.layers(row[None])[-1].weight.mul_(300)
    logits = net.logits(row[None].double(), {}, x)
    best = logits[0].topk(2).values
    known = best[:, 0] - best[:, 1] > 16  # the others' rounding does not matter: their gradients are long
    assert int(known.sum()) >= 10
    x, labels = x[:, known], logits.argmax(2)[:, known]
    into = torch.zeros(1, net.row, dtype=torch.float64)
    count = labels.shape[1]
    weight = torch.full((1, count, 1), 1 / count, dtype=torch.float64)
    net.gradients(row[None].double(), {}, Batch(x, labels, None), weight, (count,), [into])
    batch = Examples(examples.inputs[known.numpy()], labels[0].numpy())
    found = torch.from_numpy(reference_gradient(path, row.numpy(), stream, (16, 16), batch)).double()
    error = float((found - into[0]).norm() / into[0].norm())
    assert error > LOST if path.subtracted else error < 1e-4


def test_a_progressive_column():
    """Of a network whose logits are its biases, a step changes these by rate · delta."""
    logits, labels = fitted_logits()
    exact, affine, rate = exact_delta(logits, labels)[0, 0], PRODUCTS["mkl"].affine, 1e8
    errors = []
    for subtracted in (False, True):
        net = MLPColumns((3, 16, 10), 1, subtracted)
        columns, x = net.columns(torch.zeros(net.row)), torch.zeros(1, 1, 3)
        bias = columns[0][-1].bias
        bias[:10] = logits[0, 0]
        block = x, labels[:, :1], frozen_units(net, columns, x, affine)
        train_column(net, columns, block, range(1), rate, affine)
        moved = (logits[0, 0].double() - bias[:10].double()) / rate
        errors.append(float((moved - exact).norm() / exact.norm()))
    assert errors[0] < 1e-4 and errors[1] > LOST


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_residual_networks_take_the_loss_as_told(columns, joint, monkeypatch):
    """Which way the networks' losses go, for a linear head and a joint embedding."""
    if columns and joint:
        pytest.skip("progressive networks have no joint embedding")
    asked = []
    place = "trainers.networks.progressive.resnet" if columns else "trainers.networks.by_autograd"
    monkeypatch.setattr(
        f"{place}.cross_entropy",
        lambda logits, labels, allowed, weight, subtracted: (
            asked.append(subtracted) or cross_entropy(logits, labels, allowed, weight, subtracted)
        ),
    )
    for subtracted in (False, True):
        head = JointEmbedding(torch.rand(6, 5)) if joint else Linear(6, random_bias=False)
        net = ResNet((4, 6, 8, 10), False, head, subtracted)
        row = torch.from_numpy(net.init(generator(0, "init")))[None]
        x, labels = torch.rand(1, 4, 16, 16, 3), torch.tensor([[0, 1, 2, 3]])
        if columns:
            grown = ResNetColumns(net, 1)
            row = torch.from_numpy(grown.init([generator(0, "init")]))[None]
            grown.gradients(row, grown.statistics(row)["statistics"], 0, x, labels, None)
        else:
            weight = torch.full((1, 4, 1), 1 / 4)
            net.gradients(row, net.statistics(row), Batch(x, labels, None), weight, (4,), [torch.zeros_like(row)])
    assert asked == [False, True]


class Copies(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts what is copied from one device to another."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._to_copy.default
        return func(*args, **(kwargs or {}))


def test_attributes_are_brought_to_a_device_once():
    """A copy from the host cannot be captured in a CUDA graph."""
    head = JointEmbedding(torch.rand(6, 5))
    views = {name: torch.empty(1, *shape, device="meta") for name, shape in head.shapes(8)}
    features = torch.empty(1, 4, 8, device="meta")
    seen = []
    for _ in range(2):
        with Copies() as copies:
            head.logits(views, features)
        seen.append(copies.count)
    assert seen == [1, 0]


def test_a_network_is_made_as_its_path_says():
    for subtracted in (False, True):
        for path in (NumericPath(subtracted=subtracted), NumericPath(products="mkl", subtracted=subtracted)):
            for method in ("soft_agem", "prognn"):
                engine = engine_of(learner(method), toy(range(2)), path)
                assert engine._net.subtracted is subtracted
