"""The path that makes only what a step needs: every step against float64 from the engine's own parameters."""

from collections import Counter

import numpy as np
import pytest
import torch

from tests.support.learners import engine_of, learner, train, untrained
from tests.support.numeric_paths import LAZY, rows_equal
from tests.support.reference import Facts, PlainLearner, step_direction
from tests.support.toy_streams import digits, toy
from trainers import Architecture
from trainers.engines.compiled import nonzero
from trainers.networks import MLP

# Of g·g_ref, as a share of ‖g‖‖g_ref‖: where it is smaller, float32 need not know its sign.
ROUNDING = 1e-5
# Depths, and widths that are no multiples of 64.
NETWORKS = {"one layer": (208,), "two": (128, 96), "three": (96, 272, 80), "narrow": (16, 16)}
RULES = {
    "A-GEM": ("agem", {}),
    "ε-SOFT-GEM": ("soft_agem", {"epsilon": 0.3}),
    "ε-SOFT-GEM, raw": ("soft_agem", {"epsilon": 0.3, "scale": "raw"}),
    "A-A-GEM": ("a_agem", {}),
    "ER": ("er", {}),
    "ER + A-GEM": ("er_agem", {}),
    "MEGA-I": ("mega1", {}),
    "MEGA-II": ("mega2", {}),
}


@pytest.fixture
def made(monkeypatch):
    """How often g_ref was written out and the inner products of examples were made."""
    counts = Counter()

    def counted(name, work):
        def run(*given):
            counts[name] += 1
            return work(*given)

        return run

    for name in ("reference", "inner"):
        monkeypatch.setattr(nonzero, name, counted(name, getattr(nonzero, name)))
    return counts


def exact(engine, hidden, params, rows, current):
    """(network, g, g_ref, their losses) in float64 of parameters [D], on rows of the engine's pool."""
    (pool,) = engine._pools
    net = MLP((pool.inputs.shape[1], *hidden, 10))
    views = [(w[0, :k, :n].T.double(), b[0, :n].double()) for (k, n), (w, b) in
             zip(zip(net.sizes, net.sizes[1:], strict=False), net.layers(params[None]), strict=True)]  # fmt: skip
    network = PlainLearner(net.sizes, views)
    network.network.double()
    for parameter, value in zip(network.network.parameters(), (part for pair in views for part in pair), strict=True):
        parameter.data = value.clone()
    x, y = torch.from_numpy(pool.inputs[rows]).double() / engine._stream.largest, torch.from_numpy(pool.labels[rows])
    with torch.enable_grad():
        g, loss = network.gradient(x[:current], y[:current]).numpy(), network.loss
        r = network.gradient(x[current:], y[current:]).numpy() if len(rows) > current else None
    return network, g, r, (loss, network.loss)


def forced_steps(one, hidden, examples):
    """(step's share of ‖g‖‖g_ref‖ that g·g_ref is, whether it was projected, how far it ended from float64's step).

    Of every step of a second task. Each begins where the engine's last one ended: free runs part at a first rounding.
    """
    engine = engine_of(one, digits(range(2), examples), LAZY, Architecture(hidden=hidden))
    values, rate = one.hyperparameters, one.hyperparameters.lr
    with torch.no_grad():
        learners = untrained(engine, [one])
        engine.load_task(0)
        engine.train(learners, 0, engine.steps)
        engine.remember(0)
        engine.load_task(1)
        learners.reset()
        (segment,) = engine._segments
        for step, rows in enumerate(segment.rows):
            before = float(learners.projected[0])
            plain, g, r, losses = exact(engine, hidden, learners.params[0], rows, segment.current)
            engine.train(learners, step, step + 1)
            scale = values.get("a_agem_scale", values.get("scale", "unit"))
            facts = Facts((segment.current, segment.reference), tasks=2, losses=losses)
            plain.step(
                torch.from_numpy(step_direction(one.method, g, r, values.get("epsilon", 0.0), scale, facts)), rate
            )
            ended = exact(engine, hidden, learners.params[0], rows, segment.current)[0].flat()
            decisive = (g + r) / 2 if one.method == "er_agem" else g  # of the second task both weigh the same
            cosine = decisive @ r / np.linalg.norm(decisive) / np.linalg.norm(r)
            yield cosine, float(learners.projected[0]) - before, float((plain.flat() - ended).norm() / ended.norm())


CASES = [(rule, drawn, network) for rule in list(RULES)[:2] for drawn in (10, 100, 256) for network in NETWORKS]
CASES += [(rule, drawn, "two") for rule in list(RULES)[2:] for drawn in (10, 100)]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("rule", "drawn", "network"), CASES)
def test_no_decision_differs_from_float64(rule, drawn, network):
    method, values = RULES[rule]
    one = learner(method, memory=30, memory_batch=drawn, lr=0.05, **values)
    steps = list(forced_steps(one, NETWORKS[network], 150))
    decided = [(cosine < 0, hit) for cosine, hit, _ in steps if abs(cosine) > ROUNDING]
    assert len(decided) >= len(steps) - 1
    if method in ("er", "mega1", "mega2"):
        assert not any(hit for _, hit in decided)
    else:
        assert all(negative == hit for negative, hit in decided)
        # The joint gradient has g_ref in it, and seldom points away from it.
        assert method == "er_agem" or {hit for _, hit in decided} == {0.0, 1.0}
    # The parameters are float32: no step ends nearer than their own rounding.
    assert max(far for cosine, _, far in steps if abs(cosine) > ROUNDING) < 1e-6


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(("drawn", "tested"), [(10, True), (256, True), (256, False)])
def test_g_ref_is_made_in_projected_steps_only(drawn, tested, made):
    """Of small batches never; of a narrow network always, as the inner products of examples are more work."""
    one, hidden = learner("agem", memory=30, memory_batch=drawn, lr=0.05), NETWORKS["two" if tested else "narrow"]
    steps = list(forced_steps(one, hidden, 300))
    projected = sum(hit for _, hit, _ in steps)
    assert 0 < projected < len(steps)
    assert made["reference"] == (0 if drawn == 10 else projected if tested else len(steps))


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("drawn", [30, 256])
def test_members_are_bit_identical_alone_and_together(drawn):
    """Also where some need g_ref in a step and others do not, and share what was made of the images."""
    stream, network = digits(range(3), 300), Architecture(hidden=NETWORKS["two"])
    values = {"memory": 30, "memory_batch": drawn}
    for kind in ({"trigger": "zero"}, {"trigger": "epsilon"}):
        members = [
            learner("soft_agem", epsilon=e, lr=lr, **values, **kind) for e in (0.0, 0.3, 0.9) for lr in (0.1, 0.01)
        ]
        together = train(members, stream, LAZY, architecture=network)
        assert len({float(row) for row in together.violations[:, 2]}) > 2
        for row in (0, 3, 4):
            alone = train([members[row]], stream, LAZY, architecture=network)
            assert rows_equal(together, row, alone, 0)
            assert np.array_equal(together.params[row], alone.params[0])


def test_epsilon_zero_is_agem_bit_for_bit():
    """They share a key, whatever ε = 0 would trigger by."""
    stream, values = digits(range(2), 300), {"memory": 30, "memory_batch": 100}
    network = Architecture(hidden=NETWORKS["two"])
    soft = train([learner("soft_agem", epsilon=0.0, trigger="epsilon", **values)], stream, LAZY, architecture=network)
    hard = train([learner("agem", **values)], stream, LAZY, architecture=network)
    assert rows_equal(soft, 0, hard, 0) and soft.violations[0, 1] > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("steps", [70, 6])
def test_a_weight_that_no_product_reads_is_seen(bad, steps):
    """Of a unit that is shut for every image, within 64 steps and at the end of a task."""
    one = learner("agem", memory=3, memory_batch=8, batch_size=1)
    stream = toy(range(2), examples=steps)
    engine = engine_of(one, stream, LAZY)
    with torch.no_grad():
        learners = untrained(engine, [one])
        (weight, bias), (following, _) = MLP((stream.inputs, 16, 16, 4)).layers(learners.params)[:2]
        bias[0, 3], weight[0, :, 3], following[0, 3] = -1e6, 0.0, bad
        engine.load_task(0)
        engine.train(learners, 0, engine.steps)
    assert learners.first_bad.tolist() == [{70: 63, 6: 5}[steps]]


@pytest.mark.parametrize("together", [1, 7, 500])
def test_logits_of_a_row_do_not_depend_on_how_many_pass_together(together):
    """So the number of test rows of one pass is free."""
    stream, network = digits(range(2), 100), Architecture(hidden=NETWORKS["three"])
    engine = engine_of(learner("agem"), stream, LAZY, network)
    passes, images = engine._passes, engine._pool.test(0).inputs
    inputs, member = passes.examples(images), passes.layers(engine.start()[0])

    def logits(size):
        parts = []
        for first in range(0, len(images), size):
            rows = np.arange(first, min(first + size, len(images)))
            inputs.take(rows)
            parts.append(passes.logits(member, passes.batch(len(rows), len(rows)), inputs).numpy().copy())
        return np.concatenate(parts)

    assert np.array_equal(logits(together), logits(passes.test_rows))
