"""GEM: its dual against a general solver, its conditions, and its guards."""

import numpy as np
import pytest
import torch

from tests.support.reference import gem_direction
from trainers import Hyperparameters
from trainers.methods.gem import direction
from trainers.methods.quadratic import solve


def problems(rng, members, count, size):
    """Random gradients g [M, D] and g_k [M, t, D] of very different lengths."""
    scales = 10.0 ** rng.uniform(-2, 1, (members, count, 1))
    return rng.standard_normal((members, size)), rng.standard_normal((members, count, size)) * scales


@pytest.mark.few(4)
@pytest.mark.parametrize("margin", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_the_direction_agrees_with_a_general_solver(count, margin):
    """200 problems at once, one after another with scipy's NNLS; and one alone is bit for bit the same."""
    rng = np.random.default_rng(count)
    g, references = problems(rng, 200, count, 30)
    values = Hyperparameters(margin=margin)
    found, projected = direction(torch.tensor(g), torch.tensor(references), values)
    violated = (np.einsum("mtd,md->mt", references, g) < 0).any(axis=1)
    assert (projected.numpy() == violated).all() and violated.sum() > 50
    for m in range(200):
        expected = gem_direction(g[m], list(references[m]), margin)
        assert np.abs(found[m].numpy() - expected).max() <= 1e-6 * max(1, np.abs(expected).max())
        alone, _ = direction(torch.tensor(g[m : m + 1]), torch.tensor(references[m : m + 1]), values)
        assert torch.allclose(alone[0], found[m], rtol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_solution_meets_the_conditions_of_an_optimum(margin):
    """v >= margin, the slope Pv + q >= 0 and, where v is above the margin, zero: for a convex problem that is all."""
    rng = np.random.default_rng(0)
    for count in range(1, 20):
        rows = rng.standard_normal((50, count, 8))  # more constraints than dimensions: nearly singular
        matrix = rows @ rows.transpose(0, 2, 1) + 1e-3 * np.eye(count)
        linear = rng.standard_normal((50, count)) * 10
        v = solve(matrix, linear, margin)
        slope = np.einsum("mij,mj->mi", matrix, v) + linear
        tolerance = 1e-7 * np.abs(linear).max()
        assert (v >= margin).all() and (slope >= -tolerance).all()
        assert (np.abs(slope * (v - margin)) <= tolerance * np.maximum(1, v)).all()


def test_long_and_dependent_gradients_have_a_dual_with_one_solution(monkeypatch):
    """16 references of rank 2 and length 10³: with the ridge alone, rounding makes half of the matrices indefinite."""
    rng, smallest = np.random.default_rng(0), []

    def seen(matrix, linear, lowest):
        smallest.append(np.linalg.eigvalsh(matrix).min())
        return solve(matrix, linear, lowest)

    monkeypatch.setattr("trainers.methods.quadratic.solve", seen)
    for _ in range(20):
        rows = rng.standard_normal((16, 2)) @ rng.standard_normal((2, 500)) * 30
        g = torch.tensor(rng.standard_normal(500) - rows[0], dtype=torch.float32)[None]
        found, projected = direction(g, torch.tensor(rows[None], dtype=torch.float32), Hyperparameters(margin=0.5))
        assert projected.all() and torch.isfinite(found).all()
    assert min(smallest) > 0


@pytest.mark.slow
def test_a_matrix_that_is_not_positive_definite_gets_an_answer():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.standard_normal((12, 2))
        noise = rng.standard_normal((12, 12)) * 0.1
        v = solve((rows @ rows.T + noise + noise.T)[None], rng.standard_normal((1, 12)), 0.5)
        assert (v >= 0.5).all() and np.isfinite(v).all()


def test_no_previous_loss_grows():
    """⟨g̃, g_k⟩ >= 0 but for the ridge on the dual: with margin 0 the shortfall is 10⁻³·v."""
    rng = np.random.default_rng(3)
    g, references = problems(rng, 100, 6, 40)
    found, _ = direction(torch.tensor(g), torch.tensor(references), Hyperparameters(margin=0.0))
    products = torch.einsum("mtd,md->mt", torch.tensor(references), found).numpy()
    before = np.einsum("mtd,md->mt", references, g)
    assert (before < 0).sum() > 100 and products.min() >= -1e-3 * 400


def test_a_satisfied_constraint_leaves_the_gradient():
    g, references = torch.tensor([[1.0, 0.0]]), torch.tensor([[[1.0, 1.0], [0.0, 1.0]]])
    found, projected = direction(g, references, Hyperparameters(margin=0.5))
    assert torch.equal(found, g) and not projected.any()


def test_what_is_not_finite_keeps_the_gradient_and_disturbs_nobody():
    g = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    references = torch.tensor([[[-1.0, 1.0]], [[float("inf"), -1.0]]])
    found, projected = direction(g, references, Hyperparameters(margin=0.0))
    assert projected.tolist() == [True, False]
    assert torch.equal(found[1], g[1]) and found[0].tolist() == pytest.approx([0.5, 0.5], abs=1e-3)
