"""Several passes over a task, and numbers of steps that cut one: every method against a plain loop, and its batches."""

import zlib

import numpy as np
import pytest
import torch

from epsearch.testing.toy import pairs
from tests.contracts.test_scenarios import NETWORK, farthest, one_network, small
from tests.support.killing import train_until_kept
from tests.support.learners import IN_SEQUENCE, engine_of, train, untrained
from tests.support.numeric_paths import MKL, OFTEN, TWIN, on_every_path, on_paths_by_kind, rows_equal
from tests.support.toy_streams import toy
from trainers.forks import fork, steps_of
from trainers.methods import METHODS, RESERVOIR
from trainers.pool import Pool
from trainers.scenarios import TASK

TWICE, CUT, FEWER = (("epochs", 2),), (("steps", 9),), (("steps", 3),)  # a pass has 7 steps, the last of 2 or 3
in_passes = pytest.mark.parametrize("others", [TWICE, CUT, FEWER], ids=str)
every_method = pytest.mark.parametrize("method", IN_SEQUENCE)
STREAM = pairs(TASK)


def trained(method, path=MKL, stream=STREAM, **options):
    names = {"epochs", "steps", "lr", "batch_size"} & set(options)
    own = {name: options.pop(name) for name in names}
    return train([small(method, **own)], stream, path, NETWORK, **options)


@pytest.mark.few(20)
@on_every_path
@in_passes
@one_network
def test_steps_agree_with_the_reference(method, others, path):
    assert farthest(method, METHODS[method].scenarios[0], path, others=others) < 2e-5


@pytest.mark.few(12)
@in_passes
@one_network
def test_in_float64_they_are_the_same(method, others):
    # GEM's program is solved by iterations that stop, here and in the reference.
    scenario = METHODS[method].scenarios[0]
    assert farthest(method, scenario, TWIN, exact=True, others=others) < (1e-9 if method == "gem" else 1e-12)


def orders(seed, task, examples, steps, batch_size):
    """The mini-batches of a task by the words of the docs: positions in the training order, pass after pass."""
    batches, epoch = [], 0
    while len(batches) < steps:
        order = list(range(examples))
        if epoch:
            order = np.random.default_rng([seed, zlib.crc32(b"epoch"), task, epoch]).permutation(examples).tolist()
        batches += [order[begin : begin + batch_size] for begin in range(0, examples, batch_size)]
        epoch += 1
    return batches[:steps]


@in_passes
@every_method
def test_batches_are_those_of_the_words(method, others):
    """Of the current task in every pass; of the memory only what was shown, and a reservoir has no copies."""
    one, once = small(method, 1, **dict(others)), small(method, 1)
    stream, reservoir = pairs(TASK), one.declared.memory == RESERVOIR
    pool, plain = (Pool(stream, 1, each.declared, each.hyperparameters) for each in (one, once))
    for task in range(3):
        segments, first = pool.load_task(task), plain.load_task(task)
        batches = [rows[: part.current] - pool.slots for part in segments for rows in part.rows]
        wanted = orders(1, task, pool.shown, steps_of(one, stream)[task], 4)
        assert [rows.tolist() for rows in batches] == wanted and pool.first_pass == min(7, len(wanted))
        if others != FEWER or not reservoir:  # which is offered less in earlier tasks then
            both = zip(
                (rows for part in segments for rows in part.rows), (r for p in first for r in p.rows), strict=False
            )
            assert all(np.array_equal(rows, others_rows) for rows, others_rows in list(both)[: pool.first_pass])
        pool.remember(task)
        plain.remember(task)
        stored = pool.inputs[: pool._reservoir._stored if reservoir else pool.stored]
        assert len({row.tobytes() for row in stored}) == len(stored)
        if others != FEWER:
            assert np.array_equal(pool.inputs[: pool.slots], plain.inputs[: plain.slots])
            assert np.array_equal(pool.labels[: pool.slots], plain.labels[: plain.slots])


def test_orders_of_passes_differ_by_seed_task_and_epoch():
    seen = {
        tuple(np.concatenate(orders(seed, task, 26, 21, 4))[26 * epoch :][:26])
        for seed in (0, 1)
        for task in (0, 1)
        for epoch in (1, 2)
    }
    assert len(seen) == 8 and all(sorted(order) == list(range(26)) for order in seen)


@pytest.mark.few(11)
@on_paths_by_kind
@every_method
def test_the_first_pass_is_that_of_one_epoch_bit_for_bit(method, path):
    """On a stream whose pass has more than one block of steps."""
    stream, found = toy(range(2), examples=70), []
    for values in ({}, {"epochs": 2}, {"steps": 100}):
        one = small(method, batch_size=1, **values)
        engine = engine_of(one, stream, path, NETWORK)
        with torch.no_grad():
            learners = untrained(engine, [one])
            engine.load_task(0)
            assert engine.first_pass == 70 and engine.steps == steps_of(one, stream)[0]
            engine.train(learners, 0, 70)
            found.append(learners.params.clone())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.few(11)
@on_paths_by_kind
@every_method
def test_the_learning_curve_is_that_of_the_first_pass(method, path):
    once, twice = (trained(method, path, epochs=epochs) for epochs in (1, 2))
    assert np.array_equal(once.within[0, 0], twice.within[0, 0], equal_nan=True)
    assert np.array_equal(np.isnan(once.within), np.isnan(twice.within))  # NaN behind the seventh step
    assert np.isfinite(twice.within[0, :, :8]).all() and np.isnan(twice.within[0, :, 8:]).all()
    assert twice.steps[0] == 2 * once.steps[0] == 42 and trained(method, path, steps=5).steps[0] == 15
    assert not np.array_equal(once.params[0], twice.params[0])


@pytest.mark.slow
@pytest.mark.few(22)
@in_passes
@on_paths_by_kind
@every_method
def test_a_run_that_was_killed_goes_on_bit_for_bit(method, path, others, tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    learners = [small(method, seed, **dict(others)) for seed in (0, 1)]
    whole = train(learners, toy(range(3)), path, NETWORK)
    train_until_kept(monkeypatch, 1, learners, toy(range(3)), path, NETWORK, folder=tmp_path)
    resumed = train(learners, toy(range(3)), path, NETWORK, folder=tmp_path)
    assert all(rows_equal(whole, row, resumed, row) for row in range(2)) and resumed.saved


@pytest.mark.slow
@pytest.mark.parametrize("path", OFTEN, ids=str)
def test_first_tasks_of_other_passes_are_kept_apart(path, tmp_path):
    for values in ({}, {"epochs": 2}, {"steps": 14}, {"epochs": 1}, {"epochs": 2}):
        alone = trained("agem", path, **values)
        assert rows_equal(alone, 0, trained("agem", path, folder=tmp_path, **values), 0)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
@pytest.mark.few(14)
@every_method
def test_seeds_in_one_batch_have_their_own_orders(method):
    together = [small(method, seed, epochs=2) for seed in (0, 1)]
    both = train(together, STREAM, TWIN, NETWORK)
    for row, one in enumerate(together):
        np.testing.assert_allclose(both.params[row], train([one], STREAM, TWIN, NETWORK).params[0], atol=1e-4)


def test_what_excludes_each_other_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^epochs and steps exclude each other, got 2 and 9$"):
        small("van", epochs=2, steps=9)
    for wrong, line in (
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"steps": 0}, "steps must be >= 1 or 'none', got 0"),
    ):
        with pytest.raises(ValueError, match=line):
            small("van", **wrong)
    with pytest.raises(ValueError, match="steps must stay the same throughout a run, got None and then 9"):
        fork(small("er"), 0, steps=9)
    with pytest.raises(ValueError, match="batch_size must stay the same throughout a run, got 4 and then 5"):
        fork(small("er", steps=3), 0, batch_size=5)
    assert steps_of(fork(small("er"), 0, epochs=3), STREAM) == [7, 21, 21]
