"""Every operator of a step that a CUDA graph is to hold, seen on fake CUDA tensors: none of them looks at the host."""

from contextlib import nullcontext
from itertools import product

import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from tests.support.fake_gpu import NotRecordable, audited_step, step_without_float64
from tests.support.learners import SMALL, few
from tests.support.made_images import made_images
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.methods import METHODS, Columns, Projection
from trainers.networks.heads import JointEmbedding, Linear
from trainers.streams.images.split import SplitStream

# GEM's programs are solved on the CPU, and a network that grows has an engine of its own: neither has graphs. Networks
# of users have none either: they may do what no graph holds.
RECORDED = [name for name, one in METHODS.items() if not isinstance(one.rule, (Projection, Columns))]
SIZES = {"reduced_resnet18": 16, "resnet18": 64}


def images(network, attributes=None, method="van"):
    made = made_images(train=8, test=4, size=SIZES[network], attributes=attributes)
    return SplitStream(made, range(2), 2, embedding=attributes is not None, scenario=METHODS[method].scenarios[0])


def audited(method, network, stream):
    architecture = SMALL if network == "mlp" else Architecture(network)
    return audited_step(few(method, batch_size=4), stream, architecture)


@pytest.mark.parametrize("method", [*RECORDED, "adam"])
def test_a_step_on_apples_gpus_has_no_float64(method):
    one = few("van", optimizer="adam") if method == "adam" else few(method, batch_size=4)
    step_without_float64(one, toy(range(2)), SMALL)


def test_float64_on_apples_gpus_is_seen(monkeypatch):
    monkeypatch.setattr("tests.support.fake_gpu.mock.patch", lambda *_: nullcontext())  # as on NVIDIA's
    with pytest.raises(TypeError, match="in float64"):
        step_without_float64(few("van"), toy(range(2)), SMALL)


@pytest.mark.parametrize("method", RECORDED)
def test_perceptrons(method):
    assert audited(method, "mlp", toy(range(2))) > 10


def of_images():
    """Every method on every network that it trains; by default every method on one, and one method on every network."""
    methods = [name for name in RECORDED if not METHODS[name].for_perceptrons]
    for method, network, attributes in product(methods, SIZES, (None, 7)):
        few = method == "soft_agem" or (network, attributes) == ("reduced_resnet18", 7)
        name = f"{method} {network} {'joint' if attributes else 'linear'}"
        yield pytest.param(method, network, attributes, marks=[] if few else [pytest.mark.slow], id=name)


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("method", "network", "attributes"), [*of_images()])
def test_residual_networks_with_every_head(method, network, attributes):
    assert audited(method, network, images(network, attributes, method)) > 1000


class TestFaults:
    """Planted, each is found."""

    @pytest.mark.slow
    def test_attributes_copied_in_every_pass(self, monkeypatch):
        monkeypatch.setattr(JointEmbedding, "classes", lambda self, weight: self._attributes.to(weight.device) @ weight)
        with pytest.raises(NotRecordable, match="looks at the host"):
            audited("agem", "reduced_resnet18", images("reduced_resnet18", 7))

    @pytest.mark.slow
    @pytest.mark.few(2)
    @pytest.mark.parametrize(
        ("fault", "what"),
        [
            (lambda logits: logits * torch.tensor(1.0), "looks at the host"),
            (lambda logits: logits / logits[logits > 0].max(), "nonzero"),
            (lambda logits: torch.nn.functional.dropout(logits, 0.5), "draws a random number"),
            (lambda logits: logits @ (logits.mT.double() @ logits.double()).float(), "in float64"),
        ],
        ids=["a constant of the host", "a choice by values", "a random number", "a product in float64"],
    )
    def test_others(self, fault, what, monkeypatch):
        logits = Linear.logits
        monkeypatch.setattr(Linear, "logits", lambda *given: fault(logits(*given)))
        with pytest.raises((NotRecordable, DynamicOutputShapeException), match=what):
            audited("agem", "reduced_resnet18", images("reduced_resnet18"))
