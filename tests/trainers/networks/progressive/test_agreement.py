"""Progressive networks agree with ones that are not collapsed, and a step of them with NumPy."""

import zlib

import numpy as np
import pytest
import torch

from epsearch.testing.toy import pairs
from tests.support.grown import flat, learners, made, on_every_path, progressive, split, unpadded
from tests.support.learners import learner, untrained
from tests.support.toy_streams import digits
from trainers.engines.columns.mlp import frozen_units, train_column
from trainers.engines.compiled.products import PRODUCTS
from trainers.networks.progressive.mlp import MLPColumns

pytestmark = pytest.mark.usefixtures("without_gradients")
AFFINE = PRODUCTS["mkl"].affine


@on_every_path
@pytest.mark.parametrize("hidden", [(72, 56), (20,), (40, 40, 40)], ids=str)
def test_three_tasks_agree_with_the_uncollapsed_network(hidden, path):
    """17 steps a task, the last with a short batch: the parameters that act after every step; logits and accuracy."""
    stream, rate = digits(examples=66), 0.1
    engine = made(stream, (3,), path, hidden)
    net = MLPColumns((64, *hidden, 10), 3)
    members = learners(engine, (rate,))
    with torch.inference_mode(False), torch.enable_grad():
        reference = progressive(net, members.params[0].clone())
        for task in range(3):
            engine.load_task(task)
            pool, taken = engine._pools[0], 0
            assert engine.steps == 17 and not engine.reference
            for step in range(engine.steps):
                with torch.inference_mode():
                    engine.train(members, step, step + 1)
                rows = slice(taken, taken := min(taken + 4, 66))
                x = torch.from_numpy(pool.inputs[rows]).float() / stream.largest
                reference.step(x, torch.from_numpy(pool.labels[rows]), task, rate)
                found = flat(net, net.columns(members.params[0])[task], task)
                assert torch.allclose(found, reference.collapsed(task), atol=1e-5, rtol=0), f"task {task}, step {step}"
            test = stream.test(3, stream.tasks[task])
            x = torch.from_numpy(test.inputs).float() / stream.largest
            expected = reference(x, task).detach()
            with torch.inference_mode():
                found = net.logits(net.columns(members.params[0])[: task + 1], x, AFFINE)
                share = engine.accuracy(members, task)
            assert torch.allclose(found, expected, atol=1e-5, rtol=0)
            assert share == (expected.argmax(1).numpy() == test.labels).mean()
            assert share > 0.1 and len(expected.argmax(1).unique()) > 1  # enough was learnt to tell columns apart


def numpy_step(columns, x, y, rate):
    """One SGD step of the last column, from the text of the method in float64: columns[k][l] = [(W or U, b or c)…]."""
    number, depth = len(columns) - 1, len(columns[0])
    hidden = [[x] * (number + 1)]  # [layer][column]
    for index in range(depth):
        z = [
            sum(h @ w.T + b for h, (w, b) in zip(hidden[index], columns[k][index], strict=False))
            for k in range(number + 1)
        ]
        hidden.append([np.maximum(one, 0) if index < depth - 1 else one for one in z])
    p = np.exp(hidden[-1][number])
    p /= p.sum(1, keepdims=True)
    losses = -np.log(p[np.arange(len(y)), y])
    delta = (p - np.eye(p.shape[1])[y]) / len(y)
    new = []
    for index in reversed(range(depth)):
        layer = columns[number][index]
        new.insert(
            0,
            [(w - rate * delta.T @ h, b - rate * delta.sum(0)) for h, (w, b) in zip(hidden[index], layer, strict=True)],
        )
        delta = (delta @ layer[number][0]) * (hidden[index][number] > 0)
    return new, losses.mean()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_step_on_random_tensors_agrees_with_numpy(number, dtype, tolerance):
    """Relative to the length of the parameters, and in float64 to the length of the update, too."""
    net, rate = MLPColumns((9, 8, 7, 4), number + 1), 0.3
    rng = torch.Generator().manual_seed(number)
    row = torch.zeros(net.row, dtype=torch.float64)
    for k, column in enumerate(net.columns(row)):
        for sources, bias in unpadded(net, column, k):
            for part in (*sources, bias):
                part.copy_(torch.randn(part.shape, generator=rng, dtype=torch.float64) * 0.3)
    row = row.to(dtype)
    x = torch.rand(1, 5, 9, generator=rng, dtype=torch.float64).to(dtype)
    y = torch.randint(0, 4, (1, 5), generator=rng)
    explicit = [
        [[(w.numpy(), b.numpy()) for w, b in layer] for layer in split(unpadded(net, column, k), k, rng)]
        for k, column in enumerate(net.columns(row.double()))
    ]
    new, expected_loss = numpy_step(explicit, x[0].double().numpy(), y[0].numpy(), rate)
    before = flat(net, net.columns(row.clone())[number], number).double().numpy()
    columns = net.columns(row)
    block = x, y, frozen_units(net, columns, x, AFFINE)
    loss = train_column(net, columns, block, range(1), rate, AFFINE)
    parts = []
    for index, layer in enumerate(new):
        parts += [w for w, _ in layer] if index else [sum(w for w, _ in layer)]
        parts.append(sum(b for _, b in layer))
    expected = np.concatenate([part.ravel() for part in parts])
    error = np.linalg.norm(flat(net, net.columns(row)[number], number).double().numpy() - expected)
    assert error <= tolerance * np.linalg.norm(expected)
    assert np.linalg.norm(expected - before) > 0.01 * np.linalg.norm(before)  # the step is no trifle
    if dtype == torch.float64:
        assert error <= tolerance * np.linalg.norm(expected - before)
    assert loss.tolist() == pytest.approx([expected_loss], rel=max(tolerance, 1e-12))


@on_every_path
@pytest.mark.parametrize("passes", [{"epochs": 2}, {"steps": 9}], ids=str)
def test_several_passes_agree_with_the_uncollapsed_network(passes, path):
    """A pass has 7 steps; the second one has an order of its own."""
    stream, rate = pairs("domain"), 0.1
    engine, net = made(stream, (3,), path, **passes), MLPColumns((9, 24, 16, 2), 3)
    members = learners(engine, (rate,))
    with torch.inference_mode(False), torch.enable_grad():
        reference = progressive(net, members.params[0].clone())
        for task in range(3):
            engine.load_task(task)
            pool = engine._pools[0]
            again = np.random.default_rng([3, zlib.crc32(b"epoch"), task, 1]).permutation(pool.shown)
            batches = [o[i : i + 4] for o in (np.arange(pool.shown), again) for i in range(0, pool.shown, 4)]
            assert engine.steps == passes.get("steps", 14)
            for step in range(engine.steps):
                with torch.inference_mode():
                    engine.train(members, step, step + 1)
                x = torch.from_numpy(pool.inputs[batches[step]]).float() / stream.largest
                reference.step(x, torch.from_numpy(pool.labels[batches[step]]), task, rate)
                found = flat(net, net.columns(members.params[0])[task], task)
                assert torch.allclose(found, reference.collapsed(task), atol=1e-5, rtol=0), f"task {task}, step {step}"


@on_every_path
@pytest.mark.parametrize(
    "values",
    [{"momentum": 0.9, "weight_decay": 0.01, "lr_factor": 0.5}, {"optimizer": "adam", "lr_factor": 0.5}],
    ids=str,
)
def test_optimizers_agree_with_the_uncollapsed_network(values, path):
    """Of torch, with a new one for every column, whose parameters no step has moved before."""
    stream, rate, net = pairs("domain"), 0.01, MLPColumns((9, 24, 16, 2), 3)
    engine = made(stream, (3,), path, lr=rate, **values)
    one = learner("prognn", lr=rate, **values)
    members, others = untrained(engine, [one]), one.hyperparameters
    with torch.inference_mode(False), torch.enable_grad():
        reference = progressive(net, members.params[0].clone())
        for task in range(3):
            engine.load_task(task)
            pool, trained = engine._pools[0], reference.columns[task].parameters()
            now, decay = rate * 0.5**task, others.weight_decay
            optimizer = (
                torch.optim.Adam(trained, now)
                if others.optimizer == "adam"
                else torch.optim.SGD(trained, now, others.momentum, weight_decay=decay)
            )
            for step in range(engine.steps):
                with torch.inference_mode():
                    engine.train(members, step, step + 1)
                rows = slice(4 * step, min(4 * step + 4, pool.shown))
                x = torch.from_numpy(pool.inputs[rows]).float() / stream.largest
                reference.step(x, torch.from_numpy(pool.labels[rows]), task, now, optimizer=optimizer)
                found = flat(net, net.columns(members.params[0])[task], task)
                assert torch.allclose(found, reference.collapsed(task), atol=2e-5, rtol=0), f"task {task}, step {step}"


@on_every_path
def test_a_column_sees_the_outputs_of_its_task_alone(path):
    """In a task-incremental stream, with a loss and a test over two of six outputs."""
    stream, rate = pairs("task"), 0.1
    engine, net = made(stream, (3,), path), MLPColumns((9, 24, 16, 6), 3)
    members = learners(engine, (rate,))
    with torch.inference_mode(False), torch.enable_grad():
        reference = progressive(net, members.params[0].clone())
        for task in range(3):
            engine.load_task(task)
            pool, outputs = engine._pools[0], slice(2 * task, 2 * task + 2)
            for step in range(engine.steps):
                with torch.inference_mode():
                    engine.train(members, step, step + 1)
                rows = slice(4 * step, min(4 * step + 4, pool.shown))
                x = torch.from_numpy(pool.inputs[rows]).float() / stream.largest
                reference.step(x, torch.from_numpy(pool.labels[rows]), task, rate, outputs)
                found = flat(net, net.columns(members.params[0])[task], task)
                assert torch.allclose(found, reference.collapsed(task), atol=1e-5, rtol=0), f"task {task}, step {step}"
            test = stream.test(3, task)
            logits = reference(torch.from_numpy(test.inputs).float() / stream.largest, task).detach()[:, outputs]
            with torch.inference_mode():
                share = engine.accuracy(members, task)
            assert share == (logits.argmax(1).numpy() + outputs.start == test.labels).mean()
