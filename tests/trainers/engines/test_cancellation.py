"""A g_ref whose examples cancel each other has no direction: every numeric path takes the step of a plain gradient."""

import numpy as np
import pytest
import torch

from tests.support.learners import SMALL, engine_of, learner, untrained
from tests.support.numeric_paths import COMPILED, LAZY, TWIN
from trainers.engines.compiled.lazy import FEW
from trainers.streams import PermutedStream
from trainers.streams.base import Examples, Images

CLASSES, STEPS = 10, 5
MEMORIES = {"small": 3, "large": 30}  # examples a class, on both sides of FEW
RULES = {
    "A-GEM": ("agem", {}),
    "ε-SOFT-GEM": ("soft_agem", {"epsilon": 0.5}),
    "ε-SOFT-GEM by ε": ("soft_agem", {"epsilon": 0.5, "trigger": "epsilon"}),
    "A-A-GEM": ("a_agem", {}),
}


def one_image():
    """Two tasks of one image under all labels: a network that knows no better has p = 1/10 for each."""
    pixels = np.random.default_rng(0).integers(0, 256, 30).astype(np.uint8)
    labels = np.arange(400) % CLASSES
    part = Examples(np.tile(pixels, (len(labels), 1)), labels)
    return PermutedStream(Images(part, part, CLASSES, 255.0), range(2), len(labels))


def steps_of(path, memory, method, values, hidden_bias=0.1):
    """(projected steps, parameters) after a few steps on a second task, by a network without a preference."""
    one = learner(method, memory=memory, memory_batch=None, lr=0.05, **values)
    engine = engine_of(one, one_image(), path, SMALL)
    with torch.no_grad():
        learners = untrained(engine, [one])
        engine.load_task(0)
        engine.remember(0)
        engine.load_task(1)
        hidden, head = engine._net.layers(learners.params)[-2:]
        hidden.bias[:, : SMALL.hidden[-1]] = hidden_bias
        start = learners.params.clone()
        for step in range(STEPS):
            learners.params.copy_(start)
            head.weight[:, :, :CLASSES] = head.weight[:, :, :1].clone()
            head.bias.zero_()
            engine.train(learners, step, step + 1)
    return float(learners.projected[0]), learners.params[0].clone()


@pytest.mark.parametrize(("method", "values"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
@pytest.mark.parametrize("path", (*COMPILED, TWIN), ids=str)
def test_no_path_projects_on_rounding(path, memory, method, values):
    assert (memory * CLASSES + 10 <= FEW) == (memory == MEMORIES["small"])
    projected, params = steps_of(path, memory, method, values)
    assert projected == 0
    assert torch.allclose(params, steps_of(path, memory, "van", {})[1], atol=1e-7)


@pytest.mark.parametrize(("method", "values"), RULES.values(), ids=RULES)
def test_products_of_long_examples_do_not_decide(method, values):
    """Those of few examples round by more than the guard: g_ref itself is made, which has cancelled."""
    given = (LAZY, MEMORIES["small"], method, values, 100.0)
    projected, params = steps_of(*given)
    assert projected == 0
    plain = steps_of(LAZY, MEMORIES["small"], "van", {}, 100.0)[1]
    assert torch.allclose(params, plain, rtol=1e-5)
