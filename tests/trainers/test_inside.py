"""Tests inside tasks: a plain loop that measures at the same steps agrees, and they change nothing else."""

import numpy as np
import pytest
import torch

from tests.support.killing import train_until_kept
from tests.support.learners import SMALL, few, train
from tests.support.numeric_paths import MKL, on_every_path, rows_equal
from tests.support.plain_run import unpadded
from tests.support.toy_streams import toy
from trainers.cohort import CohortResult
from trainers.cost.flops import MEASURING, examples_of_tests, inside_flop, measured_every, run_flop, works_of
from trainers.networks import MLP
from trainers.pool import Pool

MEASURE = (4, 20)
STEPS = (4, 6)


@on_every_path
def test_they_change_no_result(path):
    learners = [few("soft_agem", seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.1, 0.7)]
    plain, measured = train(learners, toy(), path), train(learners, toy(), path, measure=MEASURE)
    assert plain.inside.shape[1] == 0
    for name in CohortResult.ARRAYS:
        if name not in ("inside", "params", "statistics"):
            np.testing.assert_array_equal(getattr(plain, name), getattr(measured, name))
    points = measured.inside
    tasks = len(toy().tasks)
    expected = [(task, step) for task in range(tasks) for step in STEPS]
    for row in points:
        assert [tuple(point) for point in row[:, :2]] == expected
        np.testing.assert_array_equal(np.isnan(row[:, 2:]), np.arange(tasks) > row[:, :1])


def test_with_the_whole_test_set_ends_of_tasks_are_the_accuracies():
    """A subset as large as the test set is the test set."""
    stream = toy()
    images = len(stream.test(0, 0).labels)
    result = train([few("agem", 0)], stream, MKL, measure=(4, images))
    ends = result.inside[0][result.inside[0][:, 1] == STEPS[-1]]
    for task, point in enumerate(ends):
        np.testing.assert_array_equal(point[2 : 3 + task], result.accuracies[0, task, : task + 1])


def test_points_agree_with_runs_of_as_many_steps_in_float64():
    """The network after a point is that of a run whose last task ends there; NumPy in float64 tests it."""
    stream, one = toy(), few("agem", 0)
    measured = train([one], stream, MKL, measure=(2, 20)).inside[0]
    ended = train([few("agem", 0, steps=2)], toy(range(1)), MKL)
    net = MLP((stream.inputs, *SMALL.hidden, stream.classes))
    inputs, labels = Pool(stream, 0, one.declared, one.hyperparameters).test(0, 20)
    x = inputs.astype(np.float64) / stream.largest
    layers = unpadded(net, torch.from_numpy(ended.params[0])[None])
    for number, (weight, bias) in enumerate(layers, start=1):
        x = x @ weight.double().numpy().T + bias.double().numpy()
        x = x if number == len(layers) else np.maximum(x, 0)
    assert len(labels) == 20
    assert measured[0, 2] == pytest.approx((x.argmax(axis=1) == labels).mean())


def test_a_killed_run_has_the_same_points(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    one = few("agem", 0)
    whole = train([one], toy(), MKL, measure=MEASURE)
    train_until_kept(monkeypatch, 1, [one], toy(), MKL, folder=tmp_path, measure=MEASURE)
    again = train([one], toy(), MKL, folder=tmp_path, measure=MEASURE)
    assert rows_equal(whole, 0, again, 0)
    np.testing.assert_array_equal(whole.inside, again.inside)


def test_first_tasks_with_and_without_points_are_kept_apart(tmp_path):
    one = few("agem", 0)
    train([one], toy(), MKL, folder=tmp_path)
    measured = train([one], toy(), MKL, folder=tmp_path, measure=MEASURE)
    again = train([one], toy(), MKL, folder=tmp_path, measure=MEASURE)
    assert again.saved > measured.saved
    assert not np.isnan(measured.inside[:, :, 0]).any()
    np.testing.assert_array_equal(measured.inside, again.inside)


def test_the_chosen_distance_is_the_least_that_takes_the_share_at_most():
    one, stream = few("agem", 0), toy()
    every, share = measured_every(one, stream, SMALL, True, 20)
    training, tests = run_flop(one, stream, SMALL, True, (every, 20))
    examples = examples_of_tests(one.seed, stream)
    assert examples == [len(stream.test(one.seed, task).labels) for task in stream.tasks]
    inside = inside_flop(one, stream, works_of(one, stream, SMALL), (every, 20), examples)
    assert share == pytest.approx(sum(inside) / (sum(training) + sum(tests)))
    assert share <= MEASURING
    closer = inside_flop(one, stream, works_of(one, stream, SMALL), (every - 1, 20), examples)
    assert every > 1 and sum(closer) / (sum(training) + sum(tests) - sum(inside) + sum(closer)) > MEASURING


def test_the_subset_is_fixed_and_of_the_test_set():
    stream, one = toy(), few("agem", 0)
    first, again = (Pool(stream, 0, one.declared, one.hyperparameters) for _ in range(2))
    np.testing.assert_array_equal(first.test(1, 20).inputs, again.test(1, 20).inputs)
    whole = {row.tobytes() for row in stream.test(0, stream.tasks[1]).inputs}
    assert {row.tobytes() for row in first.test(1, 20).inputs} <= whole
