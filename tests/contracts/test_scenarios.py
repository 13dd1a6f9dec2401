"""Every method in every scenario against one learner in float64, each example of which sees its own outputs alone."""

from functools import cache

import numpy as np
import pytest
import torch

from epsearch.testing.toy import pairs
from tests.support.learners import IN_SEQUENCE, STRENGTHS, engine_of, learner, train, untrained
from tests.support.numeric_paths import MKL, TWIN, on_every_path
from tests.support.plain_run import flat, run_of, unpadded
from tests.support.reference import PlainLearner
from trainers import Architecture, Cohort, Learner
from trainers.engines import make_engine
from trainers.engines.self_check import in_float64
from trainers.methods import METHODS, Columns
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.scenarios import CLASS, DOMAIN, SCENARIOS, TASK
from trainers.schedule import generator
from trainers.streams import DataError
from trainers.streams.competing import chosen_scenario, competing_outputs, distillation_outputs, scenario_of

NETWORK = Architecture(hidden=(24, 16))
# Batches of 2, 4 and 8: one over their size is exact in float32, which engines weigh rows by.
VALUES = {"epsilon": 0.3, "batch_size": 4, "memory": 4, "memory_batch": 8, "fisher_every": 5, "lr": 0.1}
ONE_NETWORK = [name for name in IN_SEQUENCE if not isinstance(METHODS[name].rule, Columns)]
one_network = pytest.mark.parametrize("method", ONE_NETWORK)
in_every_scenario = pytest.mark.parametrize(
    ("method", "scenario"), [(name, scenario) for name in ONE_NETWORK for scenario in METHODS[name].scenarios]
)
TASKS = 3


class SelectingLearner(PlainLearner):
    """A network that is asked, of every example, for a list of outputs, and never for another one."""

    def __init__(self, sizes, weights, scenario):
        super().__init__(sizes, weights)
        self.network.double()
        self.scenario, self.task, self.apart = scenario, 0, scenario == TASK

    def outputs_of(self, label):
        """From the paper's words: of the own task, of all, or of all classes that have been seen."""
        first = {TASK: label // 2 * 2, DOMAIN: 0, CLASS: 0}[self.scenario]
        last = {TASK: label // 2 * 2 + 2, DOMAIN: 2, CLASS: 2 * self.task + 2}[self.scenario]
        return list(range(first, last))

    def known(self):
        old = [[2 * task, 2 * task + 1] for task in range(self.task)]
        if self.scenario == TASK:
            return [(pair, pair) for pair in old]
        if self.scenario == DOMAIN:
            return [([0, 1], [0, 1])] if old else []
        return [([*range(2 * self.task)], self.outputs_of(0))] if old else []

    def gradient(self, x, y):
        losses = []
        for logits, label in zip(self.network(x), y.tolist(), strict=True):
            outputs = self.outputs_of(label)
            losses.append(torch.logsumexp(logits[outputs], 0) - logits[label])
        return self._flat_gradient(torch.stack(losses).mean())

    def sensitivity(self, x, y):
        rows = zip(self.network(x), y.tolist(), strict=True)
        squares = [(logits[self.outputs_of(label)] ** 2).sum() for logits, label in rows]
        return self._flat_gradient(torch.stack(squares).sum())

    def accuracy(self, x, y):
        hits = []
        for logits, label in zip(self.network(x), y.tolist(), strict=True):
            outputs = self.outputs_of(label)
            hits.append(outputs[int(logits[outputs].argmax())] == label)
        return float(np.mean(hits))


def small(method, seed=0, **changes):
    return learner(method, seed, **VALUES | changes)


@cache
def reference(method, scenario, others=()):
    """Accuracies [T, T] and parameters after every step; others: (hyperparameter, value) beside `VALUES`."""
    stream, one = pairs(scenario), small(method, **dict(others))
    net = MLP((stream.inputs, *NETWORK.hidden, stream.outputs))
    start = torch.from_numpy(net.init(generator(one.seed, "init", 0)))[None]
    network = SelectingLearner(net.sizes, unpadded(net, start), scenario)

    def examples(inputs, labels):
        return (torch.from_numpy(inputs).float() / stream.largest).double(), torch.from_numpy(labels)

    return run_of(network, examples, one, stream)


def farthest(method, scenario, path, exact=False, others=()):
    """The largest difference of a parameter from the reference, after each step; others: as there."""
    stream, one = pairs(scenario), small(method, **dict(others))
    return distance(one, stream, reference(method, scenario, others)[1], path, exact)


def distance(one, stream, trace, path, exact):
    """The largest difference of a learner's parameters from those of `run_of` after each step."""
    net = MLP((stream.inputs, *NETWORK.hidden, stream.outputs))
    engine, far = engine_of(one, stream, path, NETWORK), []
    if exact:
        engine = in_float64(engine)
    with torch.inference_mode():
        learners = untrained(engine, [one])
        if exact:
            learners = wide(learners)
        for task in range(TASKS):
            engine.load_task(task)
            for step in range(engine.steps):
                engine.train(learners, step, step + 1)
                far.append(float((flat(net, learners.params) - trace[len(far)]).abs().max()))
            engine.finish(learners, task == 0)
            engine.remember(task)
    assert len(far) == len(trace)
    return max(far)


def wide(learners):
    state = {name: array.double() for name, array in learners.state.items()}
    return type(learners)(
        learners.params.double(), learners.seed, learners.own, learners.first_bad, learners.projected.double(), state
    )


@pytest.mark.few(24)
@on_every_path
@in_every_scenario
def test_steps_agree_with_the_reference(method, scenario, path):
    assert farthest(method, scenario, path) < 2e-5


@in_every_scenario
def test_in_float64_they_are_the_same(method, scenario):
    # GEM's program is solved by iterations that stop, here and in the reference.
    assert farthest(method, scenario, TWIN, exact=True) < (1e-9 if method == "gem" else 1e-12)


@pytest.mark.few(30)
@on_every_path
@in_every_scenario
def test_tests_agree_with_the_reference(method, scenario, path):
    """Once more by a whole run: also of a task that comes next, whose classes compete in its own test."""
    result = train([small(method)], pairs(scenario), path, NETWORK)
    accuracies, _ = reference(method, scenario)
    lower = np.tri(TASKS, dtype=bool)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])
    assert np.isfinite(result.accuracies[0, 0, 1]) and result.within[0, 1, 0] == result.accuracies[0, 0, 1]


@on_every_path
def test_the_scenarios_differ(path):
    one = small("er", memory=3)
    found = [train([one], pairs(scenario), path, NETWORK).accuracies[0, 2, 0] for scenario in SCENARIOS]
    assert len(set(found)) == len(SCENARIOS)


@pytest.mark.slow
@pytest.mark.few(26)
@pytest.mark.parametrize(
    ("method", "scenario"),
    [(name, scenario) for name in ONE_NETWORK for scenario in METHODS[name].scenarios if scenario != DOMAIN],
)
def test_seeds_in_one_batch_have_their_own_memory_and_the_same_outputs(method, scenario):
    stream, together = pairs(scenario), [small(method, 0), small(method, 1)]
    both = train(together, stream, TWIN, NETWORK)
    for row, one in enumerate(together):
        alone = train([one], stream, TWIN, NETWORK)
        np.testing.assert_allclose(both.params[row], alone.params[0], atol=1e-4)


def test_forward_transfer_has_no_meaning_in_a_class_incremental_stream():
    found = {scenario: train([small("van")], pairs(scenario), MKL, NETWORK) for scenario in SCENARIOS}
    assert np.isnan(found[CLASS].initial).all() and np.isfinite(found[CLASS].within[0, :, 0]).all()
    assert np.isfinite(found[TASK].initial).all() and np.isfinite(found[DOMAIN].initial).all()


def test_a_method_without_a_purpose_is_refused():
    line = "PROGNN has no purpose in the scenario class; it is for task or domain"
    with pytest.raises(ValueError, match=line):
        make_engine(Cohort((Learner.of("prognn", 0),)), (0,), pairs(CLASS), NETWORK, NumericPath())


def test_competing_outputs_of_a_stream_that_starts_late():
    stream = pairs(CLASS, range(1, 3))
    assert stream.heads(0).tolist() == [-1, -1, 1, 1, 2, 2]
    assert competing_outputs(stream, 0, 0)[2].tolist() == [False, False, True, True, False, False]
    assert competing_outputs(stream, 0, 1)[2].tolist() == [False, False, True, True, True, True]
    assert competing_outputs(pairs(TASK), 0, 2)[0].tolist() == [True, True, False, False, False, False]
    assert competing_outputs(pairs(DOMAIN), 0, 2) is None


def test_outputs_of_a_teacher():
    """By hand: three tasks of two classes, and a stream that starts late."""
    old, new = [True] * 2 + [False] * 4, [False] * 2 + [True] * 2 + [False] * 2
    for scenario, first, second in (
        (TASK, ([old], [old]), ([old, new], [old, new])),
        (CLASS, ([old], [[True] * 4 + [False] * 2]), ([[True] * 4 + [False] * 2], [[True] * 6])),
        (DOMAIN, ([[True] * 2], [[True] * 2]), ([[True] * 2], [[True] * 2])),
    ):
        found = [distillation_outputs(pairs(scenario), 0, newest) for newest in range(3)]
        assert [len(one) for one in found[0]] == [0, 0]
        assert [one.tolist() for one in found[1]] == list(first)
        assert [one.tolist() for one in found[2]] == list(second)
    late = distillation_outputs(pairs(CLASS, range(1, 3)), 0, 1)
    assert [one.tolist() for one in late] == [[new], [[False] * 2 + [True] * 4]]


def test_the_scenario_that_is_not_stated():
    class Stream:
        heads = None

    assert scenario_of(Stream()) == TASK and scenario_of(object()) == DOMAIN
    assert chosen_scenario(None, (TASK, CLASS), "split classes") == TASK
    with pytest.raises(DataError, match=r"^scenario of split classes must be task or class, got 'domain'$"):
        chosen_scenario(DOMAIN, (TASK, CLASS), "split classes")


def test_strengths_are_those_of_penalties():
    """So that no penalty of `reference` has λ = 0, with which it would be plain SGD."""
    assert all(small(name).hyperparameters.get("strength", 1) > 0 for name in STRENGTHS)
