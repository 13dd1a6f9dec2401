"""GPM's spans and steps against an independent float64 reference, by hand, and by what they are for."""

import numpy as np
import pytest
import torch

from tests.support.learners import learner, train
from tests.support.numeric_paths import MKL, TWIN
from tests.support.reference import grown_basis
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.methods import METHODS
from trainers.methods.subspaces import grow, lengths_of
from trainers.networks import MLP

EXACT = 1e-12
RULE = METHODS["gpm"].rule
NETWORK = Architecture(hidden=(24, 16))


def inputs(rng, examples, length, energies):
    """[examples, length] of directions at random, with singular values that fall by a power."""
    left, right = (np.linalg.qr(rng.normal(size=(rows, min(examples, length))))[0] for rows in (examples, length))
    return left * np.arange(1, left.shape[1] + 1) ** -energies @ right.T


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.95, 0.999, 1.0])
@pytest.mark.parametrize(("examples", "length"), [(12, 30), (30, 12), (1, 5)])
def test_spans_and_steps_are_those_of_the_reference(examples, length, threshold):
    """Three tasks; in the last the span begins to be all there is."""
    rng = np.random.default_rng(0)
    projection, basis = torch.zeros(length, length, dtype=torch.float64), None
    for _ in range(3):
        seen = inputs(rng, examples, length, 0.5)
        projection = grow(projection, torch.from_numpy(seen), threshold)
        basis = grown_basis(basis, seen.T, threshold)
        assert np.abs(projection.numpy() - basis @ basis.T).max() < EXACT
        g = rng.normal(size=(length, 4))
        found = torch.from_numpy(g.copy())[None]
        RULE.project({"span.0": projection[None], "anchor": torch.zeros(1, 3)}, [found])
        assert np.abs(found[0].numpy() - (g - basis @ (basis.T @ g))).max() < EXACT
    assert basis.shape[1] == 0 if threshold == 0 else 0 < basis.shape[1] <= length


@pytest.mark.parametrize(("threshold", "directions"), [(0.0, 0), (0.9, 1), (0.9001, 2), (0.98, 2), (0.995, 3), (1, 3)])
def test_directions_by_hand(threshold, directions):
    """Three of energies 90, 9 and 1, of which none is added twice."""
    seen = torch.diag(torch.tensor([90.0, 9.0, 1.0], dtype=torch.float64).sqrt())
    projection = grow(torch.zeros(3, 3), seen, threshold)
    assert torch.allclose(projection, torch.diag((torch.arange(3) < directions).double()), atol=EXACT)
    assert torch.equal(grow(projection, seen, threshold), projection)


def test_what_earlier_tasks_cover_counts():
    """Of energies 8 and 2 in two directions, the first of which is known, 0.8 are covered."""
    known = torch.diag(torch.tensor([1.0, 0.0]))
    seen = torch.diag(torch.tensor([8.0, 2.0]).sqrt())
    assert torch.equal(grow(known, seen, 0.79).float(), known)
    assert torch.allclose(grow(known, seen, 0.81).float(), torch.eye(2))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_inputs_that_are_not_finite_add_nothing(bad):
    known = torch.diag(torch.tensor([1.0, 0.0, 0.0]))
    assert torch.equal(grow(known, torch.tensor([[0.0, 1.0, bad]]), 0.99), known.double())


def test_rounding_is_no_direction():
    """In float32 the same inputs lie a little beside their span: with ε_th = 1, too, nothing is projected twice."""
    seen = torch.rand(10, 40, generator=torch.Generator().manual_seed(0))
    once = grow(torch.zeros(40, 40), seen, 1.0).float()
    again = grow(once, seen, 1.0)
    assert torch.equal(again.float(), once) and float(again.trace()) == pytest.approx(10, abs=1e-5)


def test_thresholds_of_layers_and_tasks():
    values = learner("gpm", threshold_growth=0.003).hyperparameters
    assert [RULE.threshold(values, layer, 0) for layer in range(3)] == [0.95, 0.99, 0.99]
    assert RULE.threshold(values, 0, 2) == pytest.approx(0.956) and RULE.threshold(values, 1, 1) == 0.993


def test_a_bias_is_the_weight_of_an_input_that_is_one():
    net = MLP((5, 3, 2))
    params, x = torch.rand(2, net.row), torch.rand(2, 4, 5)
    first, second = net.inputs(params, x)
    hidden, logits = net.activations(net.layers(params), x)[1:]
    joined = net.layer_views(params)
    assert torch.allclose(torch.relu(first @ joined[0]), hidden, atol=1e-6)
    assert torch.allclose((second @ joined[1])[..., :2], logits, atol=1e-6)
    joined[0].zero_()  # views
    assert not net.layers(params)[0].weight.any() and not net.layers(params)[0].bias.any()
    assert lengths_of(net.sizes, "class") == [one.shape[1] for one in (joined[0], net.layer_views(params)[1][:, :4])]


@pytest.mark.parametrize("path", [MKL, TWIN], ids=str)
def test_outputs_on_inputs_in_the_span_stay_what_they_were(path):
    """With ε_th = 1 and every example, biases included, though the network goes on to learn; with 0 it is VAN."""
    kept = {"input_threshold": 1.0, "hidden_threshold": 1.0, "lr": 0.1}
    stream = toy(range(2), examples=20, pixels=60)
    net = MLP((60, *NETWORK.hidden, 4))
    x = torch.from_numpy(stream.train(0, 0, stream.order(0, 0)).inputs / 255.0).float()[None]

    def outputs(method, **values):
        result = [train([learner(method, **values)], stream, path, NETWORK, until=until) for until in (1, 2)]
        rows = [torch.from_numpy(one.params[0])[None] for one in result]
        return [net.logits(row, {}, x) for row in rows], rows

    (before, after), (start, end) = outputs("gpm", **kept)
    assert torch.allclose(before, after, atol=2e-5) and float((start - end).abs().max()) > 1e-3
    (before, after), (_, plain) = outputs("van", lr=0.1)
    assert float((before - after).abs().max()) > 1e-2
    _, (_, none) = outputs("gpm", lr=0.1, input_threshold=0.0, hidden_threshold=0.0)
    assert torch.allclose(plain, none, atol=1e-6)
