"""What is broken is caught by the suites for plug-ins, each fault by its promise; what is not passes them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn

from epsearch.testing import failures, method_checks, network_checks, strategy_checks, stream_checks, trainer_checks
from epsearch.testing.promises import checks_of
from epsearch.testing.toy import toy
from search_spaces import Parameter, Space
from search_spaces.grid import GridSearch
from search_spaces.strategies import StrategyKind
from tests.support import others, own_trainers
from tests.support.stream_kinds import KINDS
from trainers.hyperparameters import Hyperparameter
from trainers.methods import PLUGGED
from trainers.methods.penalty import STRENGTH, Penalty
from trainers.methods.rules import MEMORY, MEMORY_BATCH, SAMPLED, SIGN, Method, Mixing, angle, choose
from trainers.streams import PermutedStream
from trainers.streams.base import Examples

pytestmark = pytest.mark.slow  # each trains several times, in processes of its own


@pytest.fixture(autouse=True)
def methods_are_forgotten():
    with patch.dict(PLUGGED):
        yield


def caught(checks, promise):
    """The sentence about a promise that is broken."""
    return failures([one for one in checks if one[0] == promise])[promise]


def method(mix, *own):
    return Method("BROKEN", "nobody", Mixing(mix), SAMPLED, (MEMORY, MEMORY_BATCH, *own))


IDLE = Hyperparameter("pull", "Does nothing.", default=0.5, high=1)
LATE = Hyperparameter("pull", "Acts in every step.", default=0.5, high=1, per_learner=True)


def halves(products, values):
    return choose(angle(products).usable, (0.5, 0.5), 1.0)


def branches(products, values):
    """Looks at all members at once."""
    projected = bool(products.gr.sum() < 0) if hasattr(products.gr, "sum") else products.gr < 0
    return choose(projected, (0.5, 0.5), 1.0)


def divides(products, values):
    """Nobody has thought of gradients that vanish."""
    return choose(products.gr <= 0, (1.0, -products.gr / products.rr), 1.0)


def sign_alone(mix):
    """A rule that is said to take g wherever the gradients agree."""
    return Method("BROKEN", "nobody", Mixing(mix, needs=lambda values: SIGN), SAMPLED, (MEMORY, MEMORY_BATCH))


def explodes(products, values):
    """Steps that are far too long."""
    return choose(angle(products).usable, (1e20, 1e20), 1.0)


def halve(state, step, direction):
    """Takes half a step from the first task on."""
    direction.mul_(0.5)


def drift(state, step, direction):
    """Moves every parameter, whatever the gradient."""
    direction.add_(0.01)


DRIFTING = Penalty(arrays=(), finish=lambda state, end: None, observe=drift)
SLOWER = Penalty(arrays=(), finish=lambda state, end: None, observe=halve)
METHODS = {
    "numbers_and_tensors_mix_alike": method(branches),
    "what_is_needed_of_g_ref_is_enough": sign_alone(halves),
    "every_declared_hyperparameter_acts": method(halves, IDLE),
    "saturated_losses_do_no_harm": method(divides),
    "zero_gradients_do_no_harm": method(explodes),
    "a_first_task_is_plain_sgd_where_it_must_be": Method("BROKEN", "nobody", SLOWER, None, (STRENGTH,)),
    "outputs_of_later_tasks_stay_as_they_are": Method("BROKEN", "nobody", DRIFTING, None, (STRENGTH,)),
    "hyperparameters_act_from_as_many_tasks_on_as_declared": replace(
        method(lambda products, values: choose(angle(products).usable, (1 - values.pull, values.pull), 1.0), LATE),
        late=("pull",),
    ),
}


@pytest.mark.parametrize("promise", METHODS)
def test_broken_methods(promise):
    assert caught(method_checks(METHODS[promise]), promise)


def test_a_method_of_others_keeps_all_promises_beside_another():
    """Both are known before either is tried, as parameters of tests are."""
    good, broken = method_checks(others.PULLED), method_checks(method(divides))
    assert failures(good) == {}
    assert caught(broken, "numbers_and_tensors_mix_alike")


class Wrapped(PermutedStream):
    def __init__(self, tasks, examples):
        plain = toy(tasks, examples)
        super().__init__(plain.images, tasks, examples)


class Unseeded(Wrapped):
    def order(self, seed, task):
        return np.random.default_rng().permutation(self.available)[: self.examples]


class Leaking(Wrapped):
    def test(self, seed, task):
        inputs, labels = super().test(seed, task)
        shown = self.train(seed, task, np.arange(len(labels)))
        return Examples(np.r_[inputs, shown.inputs[:1]], np.r_[labels, shown.labels[:1]])


class Floating(Wrapped):
    def train(self, seed, task, order):
        inputs, labels = super().train(seed, task, order)
        return Examples(inputs / np.float32(255), labels)


class SameForAll(Wrapped):
    def permutation(self, seed, task):
        return np.arange(self.inputs)


class Anonymous(Wrapped):
    def describe(self):
        return {"kind": "anonymous", "examples_per_task": 60}


STREAMS = {
    "a_seed_fixes_everything": Unseeded,
    "no_image_is_both_trained_on_and_tested_on": Leaking,
    "shapes_and_dtypes": Floating,
    "no_image_is_shown_in_two_tasks": SameForAll,
    "cross_validation_and_evaluation_share_no_image": SameForAll,
    "the_description_tells_streams_apart": Anonymous,
}


@pytest.mark.parametrize("promise", STREAMS)
def test_broken_streams(promise):
    assert caught(stream_checks(STREAMS[promise]), promise)


def test_a_stream_of_ours_keeps_all_promises_also_with_few_tasks():
    assert failures(stream_checks(KINDS["split"], tasks=4, cv_tasks=2, examples=4)) == {}


class Impatient(GridSearch):
    """Asks for less at every call."""

    def ask(self):
        self._asked = getattr(self, "_asked", 0) + 1
        return super().ask()[self._asked :]


class Credulous(GridSearch):
    """Takes whatever it is told."""

    def tell(self, observations):
        known = {one.number for one in super().ask()}
        super().tell([one for one in observations if one.number in known])


class Ordered(GridSearch):
    """What comes first is the best."""

    best = None

    def tell(self, observations):
        told = [one for one in observations if one.value is not None]
        super().tell(observations)
        self.best = self.best or (told and replace(super().best, value=told[0].value)) or None


STRATEGIES = {
    "asking_again_changes_nothing": Impatient,
    "an_unknown_number_is_refused_and_nothing_taken_in": Credulous,
    "a_value_may_be_told_again_but_not_changed": Credulous,
    "the_best_is_an_observed_value": Ordered,
    "parts_in_any_order_lead_to_the_same_suggestions": Ordered,
}


def kind(search):
    return StrategyKind("broken", lambda space, budget: search(space, budget.points, budget.repeats))


@pytest.mark.parametrize("promise", STRATEGIES)
def test_broken_strategies(promise):
    assert caught(strategy_checks(kind(STRATEGIES[promise])), promise)


def test_values_outside_are_seen():
    class Doubled(GridSearch):
        def __init__(self, space, points, repeats):
            (one,) = space.parameters
            super().__init__(Space((replace(one, high=2 * one.high),)), points, repeats)

    promise = "suggestions_lie_inside_have_numbers_of_their_own_and_end"
    assert "values must lie in lr=log:0.0003..0.3" in failures(strategy_checks(kind(Doubled)))[promise]


def test_a_strategy_of_others_keeps_all_promises_on_several_spaces():
    lines = [Space((Parameter(name, 0.0, 1.0),)) for name in ("one", "two")]
    checks = strategy_checks(kind(GridSearch), *lines)
    assert len({name for name, _ in checks}) == len(checks) == 30
    assert failures(checks) == {} == failures(strategy_checks(others.ENDS, points=2))


class Net(nn.Sequential):
    def __init__(self, inputs=64, outputs=10, *between):
        super().__init__(nn.Linear(inputs, 8), nn.ReLU(), *between, nn.Linear(8, outputs))


class Doubled(Net):
    def forward(self, x):
        return super().forward(x).double()


class Tied(Net):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.again = nn.Linear(8, 8)
        self.again.weight = nn.Parameter(self[0].weight.detach()[:, :8])


class Infinite(Net):
    def forward(self, x):
        return super().forward(x) / 0.0


ONE = Net()
NETWORKS = {
    "every_call_makes_a_new_module": lambda inputs, outputs: ONE,
    "starts_follow_from_torchs_seed": lambda inputs, outputs: _zeroed(Net(inputs, outputs)),
    "nothing_is_drawn_in_a_pass": lambda inputs, outputs: Net(inputs, outputs, nn.Dropout()),
    "inference_looks_at_examples_one_by_one": lambda inputs, outputs: Net(
        inputs, outputs, nn.BatchNorm1d(8, track_running_stats=False)
    ),
    "outputs_are_logits": Doubled,
    "every_parameter_has_a_gradient": Tied,
    "parameters_are_numbers_that_can_be_trained": lambda inputs, outputs: Net(inputs, outputs).double(),
}
SENTENCES = {
    Infinite: ("outputs_are_logits", "logits must be finite"),
    (lambda inputs, outputs: Net(inputs, outputs + 1)): ("outputs_are_logits", "must have shape [6, 10] for 6 rows"),
    (lambda inputs, outputs: "a network"): ("outputs_are_logits", "must return a torch.nn.Module, got str"),
    (lambda inputs: Net(inputs)): ("outputs_are_logits", "it raises TypeError"),
}


def _zeroed(module):
    for value in module.parameters():
        nn.init.zeros_(value)
    return module


@pytest.mark.parametrize("promise", NETWORKS)
def test_broken_networks(promise):
    assert caught(network_checks(NETWORKS[promise]), promise)


@pytest.mark.parametrize(("factory", "told"), SENTENCES.items(), ids=[told for _, told in SENTENCES.values()])
def test_broken_networks_are_told_in_a_sentence(factory, told):
    promise, sentence = told
    assert sentence in failures(network_checks(factory))[promise]


def test_networks_of_others_keep_all_promises():
    def convolutional(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(outputs)
        )

    def sized(inputs, outputs):
        *layers, _ = convolutional(inputs, outputs)
        return nn.Sequential(*layers, nn.Linear(4 * (inputs[1] - 2) * (inputs[2] - 2), outputs))

    before = torch.get_rng_state()
    assert failures(network_checks(Net)) == {} == failures(network_checks(sized, (3, 8, 8), 5))
    assert torch.equal(before, torch.get_rng_state())
    lazy = network_checks(convolutional, (3, 8, 8), 5)
    assert "has no shape yet" in caught(lazy, "parameters_are_numbers_that_can_be_trained")


def test_broken_trainers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beside = Path(own_trainers.__file__)
    for name, file in (("mine", beside), ("odd", beside.with_name("odd_trainers.py"))):
        (tmp_path / f"{name}.py").write_text(file.read_text("utf-8"), encoding="utf-8")
    assert failures(trainer_checks("mine:softmax", search="lr=log:0.01..1", set="memory=5")) == {}
    assert set(failures(trainer_checks("odd:seedless", search="lr=log:0.01..1"))) == {"seed"}
    assert set(failures(trainer_checks("odd:idle", search="lr=log:0.01..1 memory=5,50"))) == {"settings_act"}
    short = failures(trainer_checks("mine:short"))
    assert "matrix: does not come through" in short["matrix"] and "1 of 2 tasks" in short["trains"]


def test_whatever_is_raised_becomes_one_sentence():
    def broken():
        raise KeyError("lr")

    assert failures(checks_of([broken])) == {"broken": "it raises KeyError: 'lr'"}


def test_nothing_of_pytest_is_needed():
    code = "import sys, epsearch.testing; print([one for one in ('pytest', 'hypothesis') if one in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
