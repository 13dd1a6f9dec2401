"""Joint and i.i.d. training against plain SGD in float64 on the examples of tasks together."""

from collections import Counter

import numpy as np
import pytest
import torch

from epsearch.testing.toy import pairs
from tests.contracts.test_scenarios import NETWORK, TASKS, SelectingLearner, small
from tests.support.learners import train
from tests.support.numeric_paths import MKL, on_every_path
from tests.support.plain_run import unpadded
from trainers.cohort import Cohort
from trainers.forks import steps_of
from trainers.networks import MLP
from trainers.population import Training, train_cohort
from trainers.scenarios import CLASS, DOMAIN, SCENARIOS, TASK
from trainers.schedule import generator
from trainers.streams.union import IidStream, JointStream

in_every_scenario = pytest.mark.parametrize("scenario", SCENARIOS)


def rows(examples):
    return Counter((*inputs.tolist(), int(label)) for inputs, label in zip(*examples, strict=True))


def training_set(stream, task):
    return stream.train(0, task, stream.order(0, task))


def fresh(stream, scenario):
    net = MLP((stream.inputs, *NETWORK.hidden, stream.outputs))
    start = torch.from_numpy(net.init(generator(0, "init", 0)))[None]
    return SelectingLearner(net.sizes, unpadded(net, start), scenario)


def scaled(examples, stream):
    return (torch.from_numpy(examples.inputs).float() / stream.largest).double(), torch.from_numpy(examples.labels)


def learn(network, examples, stream):
    x, y = scaled(examples, stream)
    with torch.no_grad():
        for first in range(0, len(y), 4):
            with torch.enable_grad():
                gradient = network.gradient(x[first : first + 4], y[first : first + 4])
            at = 0
            for parameter in network.network.parameters():
                parameter -= 0.1 * gradient[at : at + parameter.numel()].view_as(parameter)
                at += parameter.numel()


@in_every_scenario
@on_every_path
def test_joint_training_is_sgd_from_a_fresh_network_on_all_tasks_so_far(scenario, path):
    stream = pairs(scenario)
    result = train([small("joint", joint_every=1)], stream, path, NETWORK)
    for task in range(TASKS):
        network = fresh(stream, scenario)
        network.task = task
        learn(network, training_set(JointStream(stream, 1), task), stream)
        expected = [network.accuracy(*scaled(stream.test(0, seen), stream)) for seen in range(task + 1)]
        assert result.accuracies[0, task, : task + 1].tolist() == expected
    assert np.isnan(result.accuracies[0][~np.tri(TASKS, dtype=bool)]).all()
    assert np.isnan(result.initial).all() and np.isnan(result.within).all()


@in_every_scenario
def test_iid_training_is_sgd_on_all_tasks_in_one_order(scenario):
    stream, network = pairs(scenario), fresh(pairs(scenario), scenario)
    result, network.task = train([small("iid")], stream, MKL, NETWORK), TASKS - 1
    for task in range(TASKS):
        learn(network, training_set(IidStream(stream), task), stream)
        expected = [network.accuracy(*scaled(stream.test(0, seen), stream)) for seen in range(task + 1)]
        assert result.accuracies[0, task, : task + 1].tolist() == expected


def test_the_examples_are_those_of_the_tasks_each_once():
    stream = pairs(DOMAIN)
    of_task = [rows(training_set(stream, task)) for task in range(TASKS)]
    joint, iid = JointStream(stream, 1), IidStream(stream)
    for task in range(TASKS):
        assert rows(training_set(joint, task)) == sum(of_task[: task + 1], Counter())
        assert len(training_set(iid, task).labels) == stream.size(0, task) == iid.size(0, task)
    parts = [rows(training_set(iid, task)) for task in range(TASKS)]
    assert sum(parts, Counter()) == sum(of_task, Counter()) and parts != of_task
    assert np.array_equal(iid.order(0, 1), IidStream(stream).order(0, 1)), "of whichever task is asked for first"
    assert not np.array_equal(iid.order(0, 1), iid.order(1, 1))


@pytest.mark.parametrize(("every", "asked"), [(None, [2]), (1, [0, 1, 2]), (2, [1, 2])])
def test_joint_training_is_done_where_it_is_asked_for(every, asked):
    stream, learner = pairs(CLASS), small("joint", joint_every=every)
    result = train([learner], stream, MKL, NETWORK)
    assert [task for task in range(TASKS) if np.isfinite(result.accuracies[0, task, 0])] == asked
    steps = steps_of(learner, stream)
    assert result.steps[0] == sum(steps) and [task for task, count in enumerate(steps) if count] == asked


def test_the_last_row_does_not_depend_on_earlier_ones():
    stream = pairs(TASK)
    every, last = (train([small("joint", joint_every=one)], stream, MKL, NETWORK) for one in (1, None))
    assert every.fingerprints[0] == last.fingerprints[0]


@pytest.mark.parametrize(("method", "own"), [("joint", {"joint_every": 1}), ("iid", {})])
def test_a_run_that_is_killed_goes_on(method, own, tmp_path, monkeypatch):
    from trainers import checkpoints

    monkeypatch.setattr(checkpoints, "AT_MOST_EVERY", 0.0)
    stream, cohort = pairs(TASK), Cohort((small(method, **own),))
    training = Training(stream, NETWORK, MKL, folder=tmp_path)
    whole = train_cohort(cohort, Training(stream, NETWORK, MKL))
    looks = 0

    def kill(steps):
        nonlocal looks
        looks += 1
        if looks == 3 * TASKS:
            raise KeyboardInterrupt

    monkeypatch.setattr("trainers.population.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train_cohort(cohort, training, kill)
    again = train_cohort(cohort, training)
    assert again.saved > 0 and again.fingerprints[0] == whole.fingerprints[0]
    np.testing.assert_array_equal(again.accuracies, whole.accuracies)


def test_a_factor_of_the_rate_does_not_slow_down_what_begins_anew():
    stream = pairs(TASK)
    plain, factor = (train([small("joint", lr_factor=one)], stream, MKL, NETWORK) for one in (1.0, 0.5))
    assert plain.fingerprints[0] == factor.fingerprints[0]
    parts = [train([small("iid", lr_factor=one)], stream, MKL, NETWORK).fingerprints[0] for one in (1.0, 0.5)]
    assert parts[0] != parts[1]
