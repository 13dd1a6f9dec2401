"""The update rules against an independent float64 reference, their identities and their guards."""

import numpy as np
import pytest
import torch

from tests.support.learners import IN_SEQUENCE, learner
from tests.support.reference import ALONE, Facts, step_direction
from trainers.engines.batched.engine import inner_products
from trainers.methods import METHODS, Mixing, Products
from trainers.methods.rules import ALL, NORM, SIGN

MIXING = [name for name in IN_SEQUENCE if isinstance(METHODS[name].rule, Mixing)]
G, R = (3.0, 0.0), (-2.0, 2.0)  # the worked example: cosine −0.70711


def update(method, g, g_ref, epsilon, facts=ALONE, residual=0.0, **options):
    """The direction [M, D] of a mixing method."""
    values, products = learner(method, **options).hyperparameters.but(epsilon=epsilon), inner_products(g, g_ref)
    known = (facts.sizes[0] / sum(facts.sizes), residual, facts.tasks, *facts.losses)
    products = Products(*products, *(torch.full_like(products[0], one) for one in known))
    mix = METHODS[method].rule.mix(products, values)
    return mix.a[:, None] * g + mix.b[:, None] * g_ref


def direction(method, g, r, epsilon=0.0, dtype=torch.float64, **options):
    to_row = lambda vector: torch.tensor(np.array(vector), dtype=dtype)[None]  # noqa: E731
    epsilons = torch.tensor([epsilon], dtype=dtype)
    return update(method, to_row(g), to_row(r), epsilons, **options)[0].numpy()


@pytest.mark.parametrize(
    ("method", "epsilon", "expected"),
    [
        ("van", 0.0, (3.0, 0.0)),
        ("agem", 0.0, (1.5, 1.5)),
        ("soft_agem", 0.0, (1.5, 1.5)),
        ("soft_agem", 0.5, (0.146447, 0.853553)),
        ("a_agem", 0.0, (0.146447, 0.353553)),
    ],
)
def test_worked_example(method, epsilon, expected):
    assert direction(method, G, R, epsilon) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("method", "values", "needed"),
    [
        ("agem", {}, SIGN),
        ("soft_agem", {"epsilon": 0.3}, SIGN),
        ("soft_agem", {"epsilon": 0.3, "scale": "raw"}, SIGN),
        ("soft_agem", {"epsilon": 0.3, "trigger": "epsilon"}, NORM),
        ("soft_agem", {"epsilon": 0.3, "satisfied": "unit"}, NORM),
        ("soft_agem", {"epsilon": 0.0, "trigger": "epsilon", "satisfied": "unit"}, SIGN),  # A-GEM
        ("a_agem", {}, SIGN),
        ("a_agem", {"satisfied": "unit"}, NORM),
        ("agem_r", {}, SIGN),
        ("er_agem", {}, ALL),
        ("mega1", {}, ALL),
        ("mega2", {}, ALL),
        ("er", {}, ALL),
    ],
)
def test_what_a_rule_needs_of_the_reference_gradient(method, values, needed):
    assert METHODS[method].rule.needs(learner(method, **values).hyperparameters) == needed


@pytest.mark.parametrize("scale", ["unit", "raw"])
@pytest.mark.parametrize("method", MIXING)
def test_random_gradients_agree_with_the_reference(method, scale):
    rng = np.random.default_rng(0)
    for size in (2, 17, 1000):
        g = rng.standard_normal((64, size)) * 10.0 ** rng.uniform(-4, 2, (64, 1))
        r = rng.standard_normal((64, size)) * 10.0 ** rng.uniform(-4, 2, (64, 1))
        epsilon = np.where(np.arange(64) % 8 == 0, 0.0, rng.uniform(0, 1, 64))
        facts, scales = Facts((10, 256), 3, (0.4, 0.7)), {"scale": scale, "a_agem_scale": scale}
        expected = np.stack([step_direction(method, *rows, scale, facts) for rows in zip(g, r, epsilon, strict=True)])
        got = update(method, *map(torch.tensor, (g, r, epsilon)), facts, **scales).numpy()
        # 1e-6 of the direction's length, for the smallest directions too
        assert (np.abs(got - expected) <= 1e-6 * np.linalg.norm(expected, axis=1, keepdims=True)).all()
        singles = (torch.tensor(values, dtype=torch.float32) for values in (g, r, epsilon))
        single = update(method, *singles, facts, **scales).numpy()
        assert np.abs(single - expected).max() <= 1e-5 * np.abs(expected).max()


def test_projected_direction_meets_its_identities():
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(200):
        g, r, epsilon = rng.standard_normal(5), rng.standard_normal(5), rng.uniform(0.01, 1)
        unit_g, unit_r = g / np.linalg.norm(g), r / np.linalg.norm(r)
        c = unit_g @ unit_r
        soft, average = direction("soft_agem", g, r, epsilon), direction("a_agem", g, r)
        if c >= 0:
            assert (soft == g).all() and (average == g).all()
            continue
        seen += 1
        assert soft @ unit_r == pytest.approx(epsilon)
        assert np.linalg.norm(soft) == pytest.approx(np.sqrt(1 - c**2 + epsilon**2))
        assert soft @ unit_g == pytest.approx(1 - c**2 + c * epsilon)
        assert average @ unit_r == pytest.approx((1 + c) / 2) == pytest.approx(average @ unit_g)
    assert seen > 50


@pytest.mark.parametrize("method", [name for name in MIXING if name not in ("er", "mega1")])
@pytest.mark.parametrize(("g", "r"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-22, -1.0), (1.0, -1e-22)])
def test_a_vanishing_gradient_leaves_the_raw_one(method, g, r):
    g_row, r_row = np.full(4, g), np.full(4, r)
    got = direction(method, g_row, r_row, 0.5, dtype=torch.float32)
    assert (got == g_row.astype(np.float32)).all()


@pytest.mark.parametrize("method", [name for name in MIXING if name not in ("er", "van", "mega1")])
@pytest.mark.parametrize("size", [1e-9, 1.0])
def test_what_cancellation_leaves_has_no_direction(method, size):
    """By the size of the residuals, however small those are."""
    for share, raw in ((2.0**-13, True), (2.0**-11, False)):
        g, r = np.array([3.0, 0.0]) * size, np.array([-1.0, 0.0]) * size * share
        unequal = Facts(losses=(1.0, 2.0))  # by which opposite gradients do not cancel
        assert (direction(method, g, r, 0.5, residual=size**2, facts=unequal) == g).all() == raw


def test_learners_of_a_batch_take_their_own_branch():
    g = torch.tensor([G, G, G, G], dtype=torch.float64)
    r = torch.tensor([R, R, (2.0, 2.0), (0.0, 0.0)], dtype=torch.float64)
    got = update("soft_agem", g, r, torch.tensor([0.0, 0.5, 0.5, 0.5], dtype=torch.float64))
    expected = [(1.5, 1.5), (0.146447, 0.853553), G, G]
    assert got.numpy() == pytest.approx(np.array(expected), abs=1e-6)


def test_trigger_epsilon_projects_a_small_positive_cosine():
    g, r = (1.0, 0.2), (0.0, 1.0)  # cosine 0.196
    unit_g = np.array(g) / np.hypot(*g)
    assert (direction("soft_agem", g, r, 0.5) == g).all()
    expected = unit_g - (unit_g[1] - 0.5) * np.array(r)
    assert direction("soft_agem", g, r, 0.5, trigger="epsilon") == pytest.approx(expected)
    assert (direction("a_agem", g, r, 0.5, trigger="epsilon") == g).all()


def test_satisfied_unit_normalises_the_raw_step():
    assert direction("soft_agem", G, (1.0, 1.0), 0.5, satisfied="unit") == pytest.approx((1.0, 0.0))
    assert (direction("soft_agem", G, (1.0, 1.0), 0.0, satisfied="unit") == G).all()  # ε = 0 is A-GEM


LOSSES = [(1.0, 1.0), (2.0, 0.1), (0.01, 3.0), (0.0, 1.0), (1.0, 0.0), (5.0, 5.0)]


@pytest.mark.parametrize("losses", LOSSES)
def test_mega2_takes_the_angle_of_the_largest_objective(losses):
    """By brute force over angles in the plane of both gradients, β from 0 to π as in the paper's equation."""
    rng, betas = np.random.default_rng(2), np.linspace(0, np.pi, 20_001)
    for _ in range(50):
        g, r = rng.standard_normal((2, 6)) * 10.0 ** rng.uniform(-3, 3, (2, 1))
        unit_g, unit_r = g / np.linalg.norm(g), r / np.linalg.norm(r)
        theta = np.arccos(unit_g @ unit_r)
        objective = losses[0] * np.cos(betas) + losses[1] * np.cos(theta - betas)
        found = direction("mega2", g, r, facts=Facts(losses=losses))
        assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(g))
        unit = found / np.linalg.norm(found)
        assert losses[0] * (unit @ unit_g) + losses[1] * (unit @ unit_r) >= objective.max() - 1e-12
        beta, beyond = betas[objective.argmax()], unit_r - (unit_g @ unit_r) * unit_g
        expected = np.cos(beta) * unit_g + np.sin(beta) * beyond / np.linalg.norm(beyond)
        assert unit == pytest.approx(expected, abs=2e-4)  # the distance of two angles


def test_mega2_where_no_angle_is_better():
    """Opposite gradients and equal losses: every direction in their plane is as good, and g stays."""
    assert (direction("mega2", (3.0, 0.0), (-1.0, 0.0), facts=Facts(losses=(0.5, 0.5))) == (3.0, 0.0)).all()
    turned = direction("mega2", (3.0, 0.0), (-1.0, 0.0), facts=Facts(losses=(0.5, 0.6)))
    assert turned == pytest.approx((-3.0, 0.0))


def test_mega1_weighs_by_the_losses():
    assert direction("mega1", G, R, facts=Facts(losses=(0.5, 0.25))) == pytest.approx((2.0, 1.0))
    assert (direction("mega1", G, R, facts=Facts(losses=(0.5, 0.25)), sensitivity=0.5) == R).all()
    assert (direction("mega1", G, R, facts=Facts(losses=(0.0, 0.25))) == R).all()
