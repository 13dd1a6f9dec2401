"""Runs that are cut inside a task: the first steps of the whole run, tested there, and never gone on with."""

import re
from collections import Counter

import numpy as np
import pytest
import torch

import trainers.networks
from tests.support.learners import IN_SEQUENCE, OPTIMIZERS, SMALL, STRENGTHS, engine_of, few, learner, train, untrained
from tests.support.made_images import made_images
from tests.support.numeric_paths import COMPILED, LAZY, MKL, TWIN, rows_equal
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.forks import cut_of, fork, steps_of
from trainers.numeric_path import NumericPath
from trainers.streams.images.split import SplitStream

STREAM = toy(range(4), examples=62)  # six batches of 10 and one of 2
STEPS = 7
PATHS = (MKL, TWIN, LAZY, *(pytest.param(one, marks=pytest.mark.slow) for one in COMPILED[1:-1]))
PASSES = ({}, {"epochs": 2}, {"steps": 10})


def of(method="soft_agem", seed=0, **values):
    return few(method, seed, **{"epsilon": 0.3, "strength": STRENGTHS.get(method), "fisher_every": 4} | values)


def by_hand(one, path, until, last_steps, stream=STREAM, architecture=SMALL):
    """(parameters, accuracies on the tasks so far, share of projected steps), by the engine's calls alone."""
    with engine_of(one, stream, path, architecture, (one.seed,)) as engine, torch.no_grad():
        learners = untrained(engine, [one])
        for task in range(until):
            engine.load_task(task)
            learners.reset()
            taken = last_steps if task == until - 1 else engine.steps
            for step in range(taken):
                engine.train(learners, step, step + 1)
            if task < until - 1:
                engine.finish(learners, task == 0)
                engine.remember(task)
        accuracies = [engine.accuracy(learners, task)[0] for task in range(until)]
        return learners.params.numpy()[0], accuracies, learners.projected.numpy()[0] / last_steps


def is_cut(one, path, until, last_steps, stream=STREAM, architecture=SMALL):
    """Compares a cut run with the whole one, and with one that is driven by hand."""
    counted, last = Counter(), until - 1
    options = {"path": path, "architecture": architecture}
    cut = train([one], stream, progress=counted.update, until=until, last_steps=last_steps, **options)
    whole, steps = train([one], stream, **options), steps_of(one, stream)
    params, accuracies, projected = by_hand(one, path, until, last_steps, stream, architecture)
    assert np.array_equal(cut.params[0], params) and not np.array_equal(cut.params[0], whole.params[0])
    assert cut.accuracies[0, last, :until].tolist() == accuracies
    assert np.isnan(cut.accuracies[0, until:]).all() and np.isnan(cut.violations[0, until:]).all()
    np.testing.assert_array_equal(cut.initial, whole.initial)
    for found, all_of_it in ((cut.accuracies, whole.accuracies), (cut.violations, whole.violations)):
        np.testing.assert_array_equal(found[0, :last], all_of_it[0, :last])
    known = ~np.isnan(whole.violations[0, last])
    np.testing.assert_array_equal(cut.violations[0, last], np.float32(projected) if known else np.nan)
    np.testing.assert_array_equal(cut.within[0, :last], whole.within[0, :last])
    curve = min(last_steps, 10) + 1
    np.testing.assert_array_equal(cut.within[0, last, :curve], whole.within[0, last, :curve])
    assert np.isnan(cut.within[0, last, curve:]).all() and np.isnan(cut.within[0, until:]).all()
    taken = [*steps[:last], last_steps]
    assert cut.steps.tolist() == [sum(taken)] and cut.saved == 0
    assert counted == Counter(dict(enumerate(taken)))
    return cut


@pytest.mark.few(13)
@pytest.mark.parametrize(("until", "last_steps"), [(3, 4), (1, 2), (4, 1)])
@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("method", IN_SEQUENCE)
def test_it_is_the_beginning_of_the_whole_run(method, path, until, last_steps):
    is_cut(of(method), path, until, last_steps)


@pytest.mark.few(6)
@pytest.mark.parametrize("last_steps", [6, 7, 9])
@pytest.mark.parametrize("values", PASSES[1:], ids=str)
@pytest.mark.parametrize("path", PATHS[:2], ids=str)
@pytest.mark.parametrize("method", ["van", "soft_agem", "er", "ewc", "prognn"])
def test_later_passes_are_cut_too(method, path, values, last_steps):
    is_cut(of(method, **values), path, 2, last_steps)


@pytest.mark.few(4)
@pytest.mark.parametrize("path", PATHS[:2], ids=str)
@pytest.mark.parametrize("values", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("method", ["van", "mas", "er", "prognn"])
def test_with_an_optimizer(method, values, path):
    is_cut(of(method, **values), path, 3, 5)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["agem", "ewc", "prognn"])
def test_of_residual_networks(method, monkeypatch):
    monkeypatch.setattr(trainers.networks, "REDUCED", (8, 8, 16, 16))
    stream = SplitStream(made_images(classes=8, train=15, test=5, size=16), range(4), 2)
    network, path = Architecture("reduced_resnet18"), NumericPath(products="onednn")
    cut = is_cut(of(method, lr=0.05, batch_size=6), path, 3, 2, stream, network)
    assert cut.statistics[0] is not None


def test_a_reservoir_has_no_reference_in_its_first_step():
    first, second = (train([of("er")], STREAM, MKL, until=1, last_steps=steps) for steps in (1, 2))
    assert (
        np.isnan(first.violations[0, 0]) and second.violations[0, 0] == train([of("er")], STREAM, MKL).violations[0, 0]
    )


@pytest.mark.parametrize("path", [MKL, LAZY, TWIN], ids=str)
def test_divergence_is_that_of_the_steps_taken(path):
    wild = learner("soft_agem", lr=1e30, memory=2, memory_batch=4)
    step = train([wild], STREAM, MKL).diverged_step[0]
    assert 0 < step < STEPS - 2
    for taken in range(1, STEPS):
        cut = train([wild], STREAM, path, until=1, last_steps=taken)
        whole = train([learner("soft_agem", lr=1e30, memory=2, memory_batch=4, steps=taken)], STREAM, path, until=1)
        assert (cut.diverged_task[0] == 0) == (taken > step)
        assert rows_equal(cut, 0, whole, 0)
    assert np.isnan(cut.accuracies[0, 0, 0])


def test_the_cut_is_a_point_of_the_tests_inside_tasks():
    one, tests = of(), (4, 20)
    whole = train([one], STREAM, MKL, measure=tests).inside[0]
    for last_steps, points in ((3, [3]), (4, [4]), (6, [4, 6])):
        cut = train([one], STREAM, MKL, measure=tests, until=2, last_steps=last_steps)
        found = cut.inside[0][~np.isnan(cut.inside[0, :, 0])]
        assert found[:, :2].tolist() == [[0, 4], [0, 7], *([1, point] for point in points)]
        np.testing.assert_array_equal(found[:2], whole[:2])
        if points[0] == 4:
            np.testing.assert_array_equal(found[2], whole[2])
    every = train([one], STREAM, MKL, measure=(1, 20)).inside[0]
    np.testing.assert_array_equal(found[-1], every[STEPS + 5])


class TestKept:
    """A run is kept after whole tasks alone."""

    @pytest.mark.parametrize("method", ["agem", "ewc"])
    @pytest.mark.parametrize("options", [{}, {"keep": "newest"}, {"keep": "all"}], ids=str)
    @pytest.mark.parametrize("often", [False, True])
    def test_a_run_goes_on_from_the_task_before(self, options, method, often, tmp_path, monkeypatch):
        if often:
            monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
        one, places = of(method), {"store": tmp_path / "runs", "folder": tmp_path / "cache"} | options
        whole, cut = train([one], STREAM, MKL), train([one], STREAM, MKL, until=3, last_steps=4)
        train([one], STREAM, MKL, until=3, last_steps=4, **places)
        kept = sorted(int(file.name.split("_")[1]) for file in (tmp_path / "runs").rglob("*.*"))
        assert kept == ([0, 1] if options == {"keep": "all"} else [1])
        again = train([one], STREAM, MKL, until=3, last_steps=4, **places)
        assert rows_equal(again, 0, cut, 0) and again.saved == 2 * STEPS
        again = train([one], STREAM, MKL, **places)
        assert rows_equal(again, 0, whole, 0) and again.saved == 2 * STEPS

    @pytest.mark.parametrize("method", ["agem", "ewc", "er"])
    def test_of_the_first_task_nothing_is_kept_or_used(self, method, tmp_path):
        one, places = of(method), {"store": tmp_path / "runs", "folder": tmp_path / "cache", "keep": "all"}
        cut = train([one], STREAM, MKL, until=1, last_steps=3)
        assert rows_equal(train([one], STREAM, MKL, until=1, last_steps=3, **places), 0, cut, 0)
        assert not [file for file in tmp_path.rglob("*") if file.is_file()]
        whole = train([one], STREAM, MKL, **places)
        assert rows_equal(whole, 0, train([one], STREAM, MKL), 0)
        again = train([one], STREAM, MKL, until=1, last_steps=3, **places)
        assert rows_equal(again, 0, cut, 0) and again.saved == 0

    def test_it_begins_with_a_first_task_that_is_shared(self, tmp_path):
        one = of("agem")
        cut = train([one], STREAM, MKL, until=2, last_steps=3)
        train([of("gem")], STREAM, MKL, folder=tmp_path)
        again = train([one], STREAM, MKL, folder=tmp_path, until=2, last_steps=3)
        assert rows_equal(again, 0, cut, 0) and again.saved == STEPS

    @pytest.mark.parametrize(("keep", "saved"), [("newest", 0), ("all", 2 * STEPS)])
    def test_later_tasks_are_not_begun_with(self, keep, saved, tmp_path):
        one = of("ewc")
        cut = train([one], STREAM, MKL, until=3, last_steps=4)
        train([one], STREAM, MKL, store=tmp_path, keep=keep, until=3)
        again = train([one], STREAM, MKL, store=tmp_path, keep=keep, until=3, last_steps=4)
        assert rows_equal(again, 0, cut, 0) and again.saved == saved

    def test_all_steps_are_no_cut(self, tmp_path):
        one = of("ewc")
        whole, uncut = train([one], STREAM, MKL), train([one], STREAM, MKL, until=2)
        assert rows_equal(train([one], STREAM, MKL, folder=tmp_path, until=2, last_steps=STEPS), 0, uncut, 0)
        assert train([one], STREAM, MKL, folder=tmp_path, until=2).saved == 2 * STEPS
        assert rows_equal(train([one], STREAM, MKL, folder=tmp_path, last_steps=STEPS), 0, whole, 0)
        assert not list(tmp_path.rglob("*.kept")), "the training has ended"

    def test_a_cut_in_the_last_task_leaves_the_tasks_before(self, tmp_path):
        one = of("ewc")
        train([one], STREAM, MKL, folder=tmp_path, last_steps=2)
        again = train([one], STREAM, MKL, folder=tmp_path)
        assert rows_equal(again, 0, train([one], STREAM, MKL), 0) and again.saved == 3 * STEPS


def test_learners_of_a_cohort_are_cut_alike():
    learners = [of(seed=seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.1, 0.7)]
    for until in (1, 3):
        together = train(learners, STREAM, MKL, until=until, last_steps=3)
        for row, one in enumerate(learners):
            assert rows_equal(together, row, train([one], STREAM, MKL, until=until, last_steps=3), 0)
        first = STEPS if until > 1 else 3
        assert together.saved == 2 * first and together.steps.tolist() == [(until - 1) * STEPS + 3] * 4


def test_a_fork_is_cut(tmp_path):
    one = of("ewc")
    train([one], STREAM, MKL, store=tmp_path, keep="all")
    changed = fork(one, 0, batch_size=4)
    cut = train([changed], STREAM, MKL, store=tmp_path, until=2, last_steps=12)
    assert cut.steps.tolist() == [STEPS + 12] and cut.saved == STEPS
    same = train([fork(one, 0)], STREAM, MKL, store=tmp_path, until=2, last_steps=5)
    assert rows_equal(same, 0, train([one], STREAM, MKL, until=2, last_steps=5), 0)


@pytest.mark.parametrize(
    ("one", "options", "line"),
    [
        (of(), {"last_steps": 0}, "last_steps must lie in 1…7, the steps of the last task, got 0"),
        (of(), {"last_steps": 8}, "last_steps must lie in 1…7, the steps of the last task, got 8"),
        (
            of(epochs=2),
            {"last_steps": 15, "until": 1},
            "last_steps must lie in 1…14, the steps of the last task, got 15",
        ),
        (of(steps=3), {"last_steps": 4, "until": 1}, "last_steps must lie in 1…3, the steps of the last task, got 4"),
        (of(), {"last_steps": 1, "until": 5}, "until must lie in 1…4, the tasks of the stream, got 5"),
        (few("iid"), {"last_steps": 1}, "i.i.d. shows tasks together: last_steps must be None, got 1"),
        (fork(of(), 1), {"last_steps": 1, "until": 2}, "a fork must come before the last of 2 tasks, got after=1"),
    ],
)
def test_wrong_numbers_are_refused(one, options, line):
    with pytest.raises(ValueError, match=re.escape(line)) as refused:
        train([one], STREAM, MKL, **options)
    assert "\n" not in str(refused.value)


class TestShares:
    """Where a share of a stream's steps ends."""

    def test_every_step_is_the_end_of_a_share(self):
        one = fork(of(), 1, batch_size=4)
        steps = steps_of(one, STREAM)
        assert steps == [7, 7, 16, 16]
        ends = [cut_of(one, STREAM, taken / sum(steps)) for taken in range(1, sum(steps) + 1)]
        whole = [(task + 1, step + 1) for task, count in enumerate(steps) for step in range(count)]
        assert ends == [(task, None if step == steps[task - 1] else step) for task, step in whole]

    @pytest.mark.parametrize(
        ("share", "end"),
        [
            (1e-9, (1, 1)),
            (0.1, (1, 2)),
            (0.25, (1, None)),
            (0.29, (2, 1)),
            (0.5, (2, None)),
            (0.999, (4, 6)),
            (1, (4, None)),
        ],
    )
    def test_a_part_of_a_step_is_left_out(self, share, end):
        assert cut_of(of(), STREAM, share) == end

    def test_decimals_are_meant_as_they_are_written(self):
        hundred = of(steps=25)
        for percent in range(1, 101):
            until, last_steps = cut_of(hundred, STREAM, percent / 100)
            assert (until - 1) * 25 + (last_steps or 25) == percent

    @pytest.mark.parametrize("share", [0, -0.1, 1.1, float("nan")])
    def test_other_shares_are_refused(self, share):
        with pytest.raises(ValueError, match=re.escape(f"share must be in (0, 1], got {share}")):
            cut_of(of(), STREAM, share)

    def test_it_is_what_a_training_takes(self):
        until, last_steps = cut_of(of(), STREAM, 0.4)
        assert train([of()], STREAM, MKL, until=until, last_steps=last_steps).steps.tolist() == [int(0.4 * 28)]
