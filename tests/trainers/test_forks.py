"""Runs that go on from a task of another run: with the same values nothing changes, with others what is meant to."""

import re
from collections import Counter

import numpy as np
import pytest
import torch

from epsearch.testing.toy import suit_stream
from tests.support.killing import train_until_kept
from tests.support.learners import (
    IN_SEQUENCE,
    OPTIMIZERS,
    OTHER_VALUES,
    SMALL,
    STRENGTHS,
    engine_of,
    few,
    train,
    untrained,
)
from tests.support.numeric_paths import COMPILED, MKL, TWIN, rows_equal
from tests.support.plain_run import flat, plain_run
from tests.support.toy_streams import toy
from trainers import Cohort
from trainers.forks import Fork, fork, learner_of, normal_form, schedule_of, steps_of, values_at
from trainers.methods import METHODS, Columns
from trainers.networks import MLP
from trainers.population import Training

STREAM = toy(range(4), examples=62)  # six batches of 10 and one of 2
PATHS = (MKL, TWIN, *(pytest.param(one, marks=pytest.mark.slow) for one in COMPILED[1:]))
OTHERS = OTHER_VALUES | {"lr": 0.03, "batch_size": 4, "fisher_every": 3}
del OTHERS["memory"]  # which must stay


def learner(method, seed=0, **values):
    return few(method, seed, **{"epsilon": 0.3, "strength": STRENGTHS.get(method), "fisher_every": 4} | values)


def train_all(learners, folder, path=MKL, stream=STREAM, **options):
    """With a fork point after every task."""
    return train(learners, stream, path, store=folder, keep="all", **options)


def other_values(method, without=()):
    names = ("lr", *METHODS[method].names)
    return {name: OTHERS[name] for name in names if name in OTHERS and name not in without}


@pytest.mark.few(8)
@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("method", IN_SEQUENCE)
def test_with_the_same_values_it_is_the_same_run_bit_for_bit(method, path, tmp_path):
    learners = [learner(method, 0), learner(method, 0, lr=0.02), learner(method, 1)]
    whole = train_all(learners, tmp_path, path)
    for after in (0, 2):
        again = train([fork(one, after) for one in learners], STREAM, path, store=tmp_path)
        for row in range(3):
            assert rows_equal(whole, row, again, row) and np.array_equal(whole.params[row], again.params[row])
        assert np.array_equal(whole.steps, again.steps) and again.saved == 3 * 7 * (after + 1)
    assert len(list(tmp_path.rglob("*.fork"))) == 3 * 4  # none of them is used up


@pytest.mark.few(8)
@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("values", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("method", ["van", "ewc", "gem", "soft_agem", "er", "prognn"])
def test_what_an_optimizer_remembers_goes_on(method, values, path, tmp_path):
    one = learner(method, **values)
    whole = train_all([one], tmp_path, path)
    again = train([fork(one, 1)], STREAM, path, store=tmp_path)
    assert rows_equal(whole, 0, again, 0) and np.array_equal(whole.params[0], again.params[0])
    # With another decay and rate, the velocity or the moments are still those of the first run.
    changed = fork(one, 1, weight_decay=0.0 if method == "prognn" else 0.02, lr_factor=0.5)
    result = train([changed], STREAM, path, store=tmp_path)
    assert np.array_equal(result.params[0], changed_by_hand(one, changed, 1, path))
    assert not np.array_equal(result.params[0], whole.params[0])


@pytest.mark.few(11)
@pytest.mark.parametrize(("path", "after"), [(MKL, 0), (MKL, 2), (TWIN, 1)], ids=str)
@pytest.mark.parametrize("method", IN_SEQUENCE)
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


@pytest.mark.parametrize("method", [name for name in IN_SEQUENCE if not isinstance(METHODS[name].rule, Columns)])
def test_with_other_values_it_agrees_with_a_plain_loop(method, tmp_path):
    """Whose rules are others, in float64: see `plain_run`. It does not know all variants of ε-SOFT-GEM."""
    before = learner(method)
    changed = fork(fork(before, 0, lr=0.06), 1, **other_values(method, without=("trigger", "satisfied")))
    accuracies, trace = plain_run(changed, STREAM, SMALL.hidden)
    train_all([before], tmp_path)
    train_all([changed.origin], tmp_path)
    result = train([changed], STREAM, MKL, store=tmp_path)
    lower = np.tri(4, dtype=bool)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])
    outputs = suit_stream(METHODS[method], STREAM).outputs
    found = flat(MLP((STREAM.inputs, *SMALL.hidden, outputs)), torch.from_numpy(result.params[0])[None])
    assert torch.allclose(found, trace[-1], atol=1e-5)
    assert result.steps[0] == len(trace) == sum(steps_of(changed, STREAM))


def test_a_batch_size_counts_from_where_it_changed(tmp_path):
    one = learner("van")
    train_all([one], tmp_path)
    counted = Counter()
    result = train([fork(one, 1, batch_size=4)], STREAM, MKL, store=tmp_path, progress=counted.update)
    assert steps_of(fork(one, 1, batch_size=4), STREAM) == [7, 7, 16, 16]
    assert (result.steps[0], result.saved, counted.total()) == (46, 14, 32)


def test_forks_of_one_cohort_may_come_from_different_runs_and_tasks(tmp_path):
    first, second = learner("soft_agem"), learner("soft_agem", epsilon=0.7, memory_batch=6)
    for one in (first, second):  # not of one cohort, as they differ in what a cohort shares
        train_all([one], tmp_path)
    forks = [fork(first, 0, epsilon=0.5), fork(second, 2, epsilon=0.5, memory_batch=8), fork(first, 2, epsilon=0.5)]
    together = train(forks, STREAM, MKL, store=tmp_path)
    assert len(set(together.fingerprints)) == 3
    for row, one in enumerate(forks):
        assert rows_equal(together, row, train([one], STREAM, MKL, store=tmp_path), 0)


def test_a_fork_that_is_killed_goes_on_and_leaves_its_origin_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    one = learner("ewc")
    train_all([one], tmp_path)
    points = sorted(path.name for path in tmp_path.rglob("*.*"))
    changed = fork(one, 0, strength=0.3)
    whole = train([changed], STREAM, MKL, store=tmp_path)
    train_until_kept(monkeypatch, 2, [changed], STREAM, MKL, store=tmp_path)
    again = train([changed], STREAM, MKL, store=tmp_path)
    assert rows_equal(whole, 0, again, 0) and again.saved == 3 * 7
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == points


def test_forgetting_removes_the_fork_points_of_that_run_alone(tmp_path):
    one, other = learner("agem"), learner("agem", lr=0.03)
    train_all([one, other], tmp_path)
    for keep, left in (("newest", 8), ("all", 4)):
        training = Training(STREAM, SMALL, MKL, store=tmp_path, keep=keep)
        training.checkpoints(Cohort((one,))).delete([one])
        assert len(list(tmp_path.rglob("*.fork"))) == left
    train([fork(other, 1)], STREAM, MKL, store=tmp_path)
    with pytest.raises(ValueError, match="nothing that a machine like this one has kept after task 1 of Learner"):
        train([fork(one, 1)], STREAM, MKL, store=tmp_path)


def test_schedules_are_learners_without_changes_that_change_nothing():
    one = learner("soft_agem")
    changed = fork(fork(fork(one, 0), 1, epsilon=0.9), 2, lr=0.03)
    schedule = schedule_of(changed)
    assert [begin for begin, _ in schedule] == [0, 2, 3]
    assert all(values == values_at(changed, begin) for begin, values in schedule)
    ways = [changed, fork(fork(one, 1, epsilon=0.9), 2, lr=0.03), fork(fork(fork(one, 1, epsilon=0.9), 2, lr=0.03), 3)]
    assert len(set(ways)) == 3 and {normal_form(way) for way in ways} == {ways[1]}
    assert {schedule_of(way) for way in ways} == {schedule}
    assert learner_of("soft_agem", 0, schedule) == ways[1] and learner_of("soft_agem", 1, schedule) != ways[1]
    # A value that comes back is a change, too.
    back = fork(fork(one, 0, lr=0.03), 1, lr=one.hyperparameters.lr)
    assert normal_form(back) == back and normal_form(fork(one, 1)) == normal_form(one) == one


@pytest.mark.parametrize(
    ("schedule", "line"),
    [
        ([], "a schedule must begin with task 0, got none"),
        ([1], "a schedule must begin with task 0, got 1"),
        ([0, 0], "a fork must come after task 0 or a later one of its origin, got -1"),
        ([0, 2, 2], "a fork must come after task 2 or a later one of its origin, got 1"),
    ],
)
def test_schedules_begin_with_the_first_task_and_go_on(schedule, line):
    values = learner("agem").hyperparameters
    with pytest.raises(ValueError, match=re.escape(line)):
        learner_of("agem", 0, [(begin, values) for begin in schedule])


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda one: fork(one, 1, memory=4), "memory must stay the same throughout a run, got 3 and then 4"),
        (lambda one: fork(one, 1, momentum=0.5), "momentum must stay the same throughout a run, got 0.0 and then 0.5"),
        (lambda one: fork(one, 1, optimizer="adam"), "optimizer must stay the same throughout a run, got sgd and then"),
        (lambda one: fork(one, 1, margin=0.1), "no such hyperparameter: margin; known: lr, batch_size, epochs, steps"),
        (lambda one: fork(one, 1, epsilon=2.0), "epsilon must be in [0, 1], got 2.0"),
        (lambda one: fork(one, -1), "must come after task 0 or a later one of its origin, got -1"),
        (lambda one: fork(fork(one, 1), 1), "must come after task 2 or a later one of its origin, got 1"),
        (lambda one: Fork("agem", learner("agem").hyperparameters, 0, one, 1), "the method and the seed of its origin"),
        (lambda one: Fork("soft_agem", one.hyperparameters, 1, one, 1), "got soft_agem, 1 and soft_agem, 0"),
    ],
)
def test_what_cannot_be_forked_is_refused_in_one_line(wrong, line):
    with pytest.raises(ValueError, match=re.escape(line)) as refused:
        wrong(learner("soft_agem"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("after", "options", "line"),
    [
        (3, {"keep": "all"}, "a fork must come before the last of 4 tasks, got after=3"),
        (1, {"keep": "all"}, "has kept after task 1 of Learner(method='agem'"),
        (1, {"store": None}, "is in any store; train that with keep='all' first"),
        (1, {"keep": "most"}, "keep must be one of training, newest, all, got 'most'"),
        (1, {"keep": "all", "store": None}, "keep 'all' needs a store: the folder is a cache"),
    ],
)
def test_a_fork_needs_what_it_begins_with(after, options, line, tmp_path):
    with pytest.raises(ValueError, match=re.escape(line)):
        train([fork(learner("agem"), after)], STREAM, MKL, **{"store": tmp_path} | options)


def test_a_damaged_fork_point_is_none(tmp_path, told):
    one = learner("agem")
    train_all([one], tmp_path)
    (point,) = tmp_path.rglob("*_1_*.fork")
    point.write_bytes(point.read_bytes()[:-1])
    with pytest.raises(ValueError, match="after task 1"):
        train([fork(one, 1)], STREAM, MKL, store=tmp_path)
    (line,) = told
    assert line.startswith(f"{point} ")
