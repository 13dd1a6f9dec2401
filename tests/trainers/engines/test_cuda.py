"""The engines on a GPU, by the change of the parameters in each step and not by accuracies, which hide errors of tf32.

The same code runs on the CPU in the other tests, with emulated graphs; never is a GPU judged by float32 on a CPU.
"""

import pytest
import torch

from tests.support.learners import few, learner, train
from tests.support.made_images import made_images
from tests.support.toy_streams import digits
from trainers import Architecture
from trainers.engines.batched import graphs
from trainers.engines.self_check import TF32, TOLERANCE, check
from trainers.methods import METHODS
from trainers.methods.inner import inner
from trainers.numeric_path import NumericPath
from trainers.streams.images.split import SplitStream

GPU, SHORT = NumericPath("cuda"), NumericPath("cuda", "tf32")
RECORDED = [name for name in METHODS if name not in ("gem", "prognn")]

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.fixture(autouse=True)
def no_graph_was_refused(monkeypatch):
    monkeypatch.setattr(graphs, "_refused", [])


def images(size=16, attributes=None):
    made = made_images(classes=6, train=40, test=20, size=size, attributes=attributes)
    return SplitStream(made, range(3), 2, embedding=attributes is not None)


@pytest.mark.parametrize("method", METHODS)
def test_steps_of_perceptrons_are_those_of_float64(method):
    found = check(few(method), digits(), Architecture(), GPU)
    assert found.plain < TOLERANCE and found.projected < TOLERANCE
    assert found.graphs is (True if method in RECORDED else None)


@pytest.mark.parametrize("attributes", [None, 7], ids=["linear", "joint"])
@pytest.mark.parametrize("network", ["reduced_resnet18", "resnet18"])
@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if not one.for_perceptrons])
def test_steps_of_residual_networks_are_those_of_float64(method, network, attributes):
    if method == "prognn" and attributes:
        pytest.skip("has no joint embedding")
    found = check(few(method), images(attributes=attributes), Architecture(network), GPU)
    assert found.graphs is (True if method in RECORDED else None)


def test_tf32_is_no_closer_than_it_should_be():
    """Or the switch does nothing: products of 10 bits are further from float64 than those of 24."""
    full, short = (check(few("agem"), digits(), Architecture(), path) for path in (GPU, SHORT))
    assert full.plain < TOLERANCE < short.plain < TF32


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_inner_products_of_long_gradients(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    g, r = torch.randn(2, 11_000_000, device="cuda"), torch.randn(2, 11_000_000, device="cuda")
    exact = (g.double() * r.double()).sum(1)
    scale = g.double().norm(dim=1) * r.double().norm(dim=1)
    assert ((inner(r[:, None], g)[:, 0].double() - exact).abs() / scale).max() < 1e-9


@pytest.mark.parametrize("method", RECORDED)
def test_runs_by_graphs_are_those_without(method, monkeypatch):
    learners = [learner(method, seed, epsilon=0.3, memory=5, lr=0.03) for seed in (0, 1)]
    stream = digits(examples=400)
    by_graphs = train(learners, stream, GPU, Architecture())
    assert not graphs._refused
    monkeypatch.setattr(graphs, "_refused", ["to compare"])
    without = train(learners, stream, GPU, Architecture())
    assert by_graphs.fingerprints.tolist() == without.fingerprints.tolist()
