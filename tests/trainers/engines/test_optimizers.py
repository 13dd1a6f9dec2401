"""Optimizers against torch.optim in float64 on gradients of an independent learner."""

import pytest
import torch

from epsearch.testing.toy import pairs
from tests.contracts.test_scenarios import NETWORK, SelectingLearner, distance, small
from tests.support.numeric_paths import TWIN, on_every_path
from tests.support.plain_run import run_of, unpadded
from trainers import Learner
from trainers.networks import MLP
from trainers.scenarios import DOMAIN
from trainers.schedule import generator

ADAM = {"optimizer": "adam", "lr": 0.01}
CHANGES = (
    {"momentum": 0.9, "lr": 0.03},
    {"momentum": 0.5, "weight_decay": 0.01, "lr_factor": 0.5},
    {"weight_decay": 0.1},
    {"lr_factor": 0.5},
    ADAM,
    ADAM | {"weight_decay": 0.01, "lr_factor": 2.0},
)
with_every_optimizer = pytest.mark.parametrize("changes", CHANGES, ids=str)
each_method = pytest.mark.parametrize("method", ["van", "ewc", "pi", "rwalk", "gem", "agem", "soft_agem", "er"])


class TorchLearner(SelectingLearner):
    """Steps by torch.optim, whose state goes on from task to task."""

    def __init__(self, sizes, weights, values):
        super().__init__(sizes, weights, DOMAIN)
        decay, self.factor = {"weight_decay": values.weight_decay}, values.lr_factor
        if values.optimizer == "adam":
            self.optimizer = torch.optim.Adam(self.network.parameters(), values.lr, **decay)
        else:
            self.optimizer = torch.optim.SGD(self.network.parameters(), values.lr, values.momentum, **decay)

    def step(self, direction, learning_rate):
        start = 0
        for parameter in self.network.parameters():
            parameter.grad = torch.as_tensor(direction)[start : start + parameter.numel()].view_as(parameter).clone()
            start += parameter.numel()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * self.factor**self.task
        self.optimizer.step()


def farthest(method, changes, path, exact):
    stream, one = pairs(DOMAIN), small(method, **changes)
    net = MLP((stream.inputs, *NETWORK.hidden, stream.outputs))
    start = torch.from_numpy(net.init(generator(one.seed, "init", 0)))[None]
    network = TorchLearner(net.sizes, unpadded(net, start), one.hyperparameters)
    _, trace = run_of(
        network,
        lambda x, y: ((torch.from_numpy(x).float() / stream.largest).double(), torch.from_numpy(y)),
        one,
        stream,
    )
    return distance(one, stream, trace, path, exact)


@pytest.mark.few(16)
@each_method
@with_every_optimizer
def test_in_float64_they_are_those_of_torch(method, changes):
    # GEM's program is solved by iterations that stop, here and in the reference.
    assert farthest(method, changes, TWIN, exact=True) < (1e-8 if method == "gem" else 1e-12)


@pytest.mark.few(20)
@each_method
@with_every_optimizer
@on_every_path
def test_on_every_path(method, changes, path):
    # Adam divides by a gradient's size: what is lost of a small one moves as far as any other.
    assert farthest(method, changes, path, exact=False) < (2e-3 if "optimizer" in changes else 2e-5)


@pytest.mark.parametrize(
    ("method", "changes", "line"),
    [
        (
            "van",
            ADAM | {"momentum": 0.9},
            "^momentum is for optimizer sgd, as adam has its own; got momentum 0.9 with adam$",
        ),
        ("prognn", ADAM | {"weight_decay": 0.1}, "^PROGNN has no weight-decay with optimizer adam, got 0.1$"),
    ],
)
def test_wrong_combinations(method, changes, line):
    with pytest.raises(ValueError, match=line):
        Learner.of(method, 0, **changes)
