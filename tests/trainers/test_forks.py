"""Runs that go on from a task of another run: with the same values nothing changes, with others what is meant to."""

import numpy as np
import pytest
import torch

from tests.support.learners import STRENGTHS, few, train
from tests.support.numeric_paths import COMPILED, MKL, TWIN, on_every_path, rows_equal
from tests.support.plain_run import plain_run
from tests.support.toy_streams import toy
from trainers import Architecture, Learner
from trainers.forks import fork, steps_of
from trainers.methods import METHODS, Columns
from trainers.numeric_path import NumericPath
from trainers.streams import StreamRequest

STREAM = toy(range(4), examples=62)  # six batches of 10 and one of 2
OTHERS = {
    "epsilon": 0.9,
    "strength": 0.05,
    "lr": 0.03,
    "batch_size": 4,
    "memory_batch": 5,
    "trigger": "epsilon",
    "scale": "raw",
    "satisfied": "unit",
    "a_agem_scale": "raw",
    "fisher_every": 3,
    "penalty_form": "paper",
    "margin": 0.1,
}


def learner(method, seed=0, **values):
    return few(method, seed, **{"epsilon": 0.3, "strength": STRENGTHS.get(method), "fisher_every": 4} | values)


def train_all(learners, folder, path=MKL, stream=STREAM, **options):
    """With a fork point after every task."""
    return train(learners, stream, path, store=folder, keep="all", **options)


def other_values(method):
    return {name: OTHERS[name] for name in METHODS[method].names if name in OTHERS} | {"lr": OTHERS["lr"]}


@on_every_path
@pytest.mark.parametrize("method", METHODS)
def test_with_the_same_values_it_is_the_same_run_bit_for_bit(method, path, tmp_path):
    learners = [learner(method, seed, lr=lr) for seed in (0, 1) for lr in (0.1, 0.02)]
    whole = train_all(learners, tmp_path, path)
    for after in range(3):
        again = train([fork(one, after) for one in learners], STREAM, path, store=tmp_path)
        for row in range(4):
            assert rows_equal(whole, row, again, row) and np.array_equal(whole.params[row], again.params[row])
        assert np.array_equal(whole.steps, again.steps) and again.saved == 4 * 7 * (after + 1)
    assert len([path for path in tmp_path.rglob("*.fork")]) == 4 * 4  # none of them is used up


@pytest.mark.parametrize("path", [MKL, TWIN], ids=str)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("after", [0, 2])
def test_with_other_values_it_is_as_if_they_had_been_changed_on_the_way(method, path, after, tmp_path):
    """Of a first run of that method whose values one sets by hand when the task is done, without any checkpoint."""
    before = learner(method)
    changed = fork(before, after, **other_values(method))
    train_all([before], tmp_path, path)
    result = train([changed], STREAM, path, store=tmp_path)
    by_hand = changed_by_hand(before, changed, after, path)
    assert np.array_equal(result.params[0], by_hand)
    assert not np.array_equal(result.params[0], train([before], STREAM, path).params[0])


def changed_by_hand(before, changed, after, path):
    """The final parameters by the engine's calls alone, as the training loop makes them."""
    from tests.support.learners import engine_of, untrained

    engines = [engine_of(one, STREAM, path) for one in (before, changed)]
    with torch.no_grad():
        learners = untrained(engines[0], [before])
        for task in range(4):
            for engine in engines:  # both go through the schedule; one of them trains
                engine.load_task(task)
            if task == after + 1:
                then = untrained(engines[1], [changed])
                then.params.copy_(learners.params)
                for name, array in learners.state.items():
                    then.state[name].copy_(array)
                learners = then
            engine = engines[task > after]
            learners.reset()
            for step in range(engine.steps):
                engine.train(learners, step, step + 1)
            if task < 3:
                engine.finish(learners, task == 0)
            for engine in engines:
                engine.remember(task)
    return learners.params.numpy()[0]
