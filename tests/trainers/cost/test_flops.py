"""The FLOP that are counted from shapes are those that torch counts while it trains."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.support.learners import learner, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.cost.flops import references, run_flop
from trainers.cost.network_flops import work_of
from trainers.forks import steps_of
from trainers.methods import Mixing, Projection
from trainers.networks import MLP, make_network
from trainers.networks.base import Batch
from trainers.networks.heads import JointEmbedding, Linear
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.streams.images.split import SplitStream
from trainers.streams.permuted import PermutedStream

# Widths and outputs of the engine's padding, and every class in what is shown: nothing is counted that is not there.
PIXELS = toy(range(4), examples=75, classes=16, pixels=20)
NETWORK = Architecture(hidden=(16, 32))
OF_PIXELS = {"batch_size": 10, "memory": 2, "memory_batch": 40}
IMAGES = made_images(classes=8, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4], size=16)
IMAGE_STREAM = SplitStream(IMAGES, range(1, 4), 2)
RESIDUAL = Architecture("reduced_resnet18")
OF_IMAGES = {"batch_size": 4, "memory": 2, "memory_batch": 5}


def total(flop):
    training, tests = flop
    return sum(training) + sum(tests)


def product(out, a, b, out_val=None, **scales):
    """Of out += a·b, given as shapes."""
    return 2 * a[0] * a[1] * b[1]


def counted(work):
    # Torch does not know that of the product that goes into a matrix at once.
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product}) as counter:
        work()
    return counter.get_total_flops()


def of_rules(one, stream, architecture):
    """What torch counts besides passes: inner products of a mix, and of GEM's gradients."""
    rule, width = one.declared.rule, make_network(architecture, stream).row
    steps = steps_of(one, stream)
    with_reference = [(steps[task], task) for task, (examples, _) in enumerate(references(one, stream)) if examples]
    assert not isinstance(rule, Projection)
    if one.method == "er":  # its first step of all has nothing stored
        with_reference[0] = (with_reference[0][0] - 1, 0)
    return sum(3 * 2 * width * steps for steps, _ in with_reference) if isinstance(rule, Mixing) else 0


def trained(one, stream, architecture, transfer):
    return counted(lambda: train([one], stream, TWIN, architecture, transfer=transfer))


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("transfer", [True, False])
@pytest.mark.parametrize("method", ["van", "ewc", "mas", "er", "derpp", "lwf", "soft_agem", "prognn"])
def test_a_run_of_a_perceptron(method, transfer):
    one = learner(method, **OF_PIXELS)
    found = trained(one, PIXELS, NETWORK, transfer)
    assert found - of_rules(one, PIXELS, NETWORK) == total(run_flop(one, PIXELS, NETWORK, transfer))


@pytest.mark.slow
@pytest.mark.few(8)
@pytest.mark.parametrize("passes", [{"epochs": 2}, {"steps": 13}, {"steps": 3}], ids=str)
@pytest.mark.parametrize("method", ["van", "mas", "er", "der", "lwf", "soft_agem", "gem", "prognn"])
def test_a_run_of_several_passes(method, passes):
    one = learner(method, **OF_PIXELS | passes)
    training, tests = run_flop(one, PIXELS, NETWORK, True)
    assert tests == run_flop(learner(method, **OF_PIXELS), PIXELS, NETWORK, True)[1] or passes["steps"] == 3
    if method != "gem":  # of its products torch counts more
        found = trained(one, PIXELS, NETWORK, True)
        assert found - of_rules(one, PIXELS, NETWORK) == sum(training) + sum(tests)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("van", "mas")), "soft_agem", "prognn"]
)
def test_a_run_of_a_residual_network(method, monkeypatch):
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    one = learner(method, **OF_IMAGES)
    found = trained(one, IMAGE_STREAM, RESIDUAL, True)
    assert found - of_rules(one, IMAGE_STREAM, RESIDUAL) == total(run_flop(one, IMAGE_STREAM, RESIDUAL, True))


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["er", "derpp"])
def test_replay_on_a_residual_network(method, monkeypatch):
    """ER's is one batch with the new examples; each draw of DER++ passes alone."""
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    one = learner(method, **OF_IMAGES)
    assert trained(one, IMAGE_STREAM, RESIDUAL, False) == total(run_flop(one, IMAGE_STREAM, RESIDUAL, False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "large", "size"), [(REDUCED, False, 32), (STANDARD, True, 64), (REDUCED, False, 17)]
)
@pytest.mark.parametrize(
    "head", [Linear(6, random_bias=True), JointEmbedding(torch.rand(6, 7))], ids=["linear", "joint"]
)
def test_passes_of_residual_networks(widths, large, size, head):
    net, rows = ResNet(widths, large, head), 3
    params = torch.rand(1, net.row)
    kept, x, labels = (
        net.statistics(params),
        torch.rand(1, rows, size, size, 3),
        torch.zeros(1, rows, dtype=torch.int64),
    )
    weight, into = torch.full((1, rows, 1), 1 / rows), [torch.empty_like(params)]
    work = work_of(net, size)
    with torch.no_grad():
        assert counted(lambda: net.logits(params, kept, x)) == rows * work.forward + work.fixed_forward
        both = counted(lambda: net.gradients(params, kept, Batch(x, labels, None), weight, (rows,), into))
    assert both == work.training_flop(rows, 1)


@pytest.mark.slow
@pytest.mark.parametrize("transfer", [True, False])
def test_projected_layers(transfer, monkeypatch):
    """But for products with directions, of which nobody knows before how many there are."""
    monkeypatch.setattr("trainers.methods.subspaces.grow", lambda projection, inputs, threshold: projection)
    gpm, of_sgd = learner("gpm", representations=30, **OF_PIXELS), learner("van", **OF_PIXELS)
    found, plain = (run_flop(one, PIXELS, NETWORK, transfer) for one in (gpm, of_sgd))
    assert trained(gpm, PIXELS, NETWORK, transfer) == total(found)
    step, forward = 2 * (21 * 21 * 16 + 17 * 17 * 32 + 33 * 33 * 16), 2 * (20 * 16 + 16 * 32 + 32 * 16)
    assert [a - b for a, b in zip(found[0], plain[0], strict=True)] == [
        30 * forward,
        8 * step + 30 * forward,
        8 * step + 30 * forward,
        8 * step,
    ]
    assert found[1] == plain[1]


def test_agem_by_hand():
    """Four tasks of 75 in steps of 10, 32 stored after each, of which 40 at most are drawn."""
    forward, backward = 2 * (20 * 16 + 16 * 32 + 32 * 16), 2 * (20 * 16 + 2 * (16 * 32 + 32 * 16))
    agem = learner("agem", **OF_PIXELS)
    training, tests = run_flop(agem, PIXELS, NETWORK, transfer=False)
    examples = [75, 75 + 8 * 32, 75 + 8 * 40, 75 + 8 * 40]
    assert training == tuple(count * (forward + backward) for count in examples)
    assert tests == tuple(40 * seen * forward for seen in (1, 2, 3, 4))
    # Before: all four; ten tests in the first batches, of which there are eight; the next task's before it begins.
    same, more = run_flop(agem, PIXELS, NETWORK, transfer=True)
    assert same == training
    assert more == tuple(40 * times * forward for times in (4 + 8 + 2, 8 + 3, 8 + 4, 8 + 4))


def test_gem_takes_all_that_is_stored():
    gem, place = learner("gem", **OF_PIXELS), OF_PIXELS["memory"] * 16
    assert [tuple(part) for part in references(gem, PIXELS)] == [(8 * task * place, 8 * task) for task in range(4)]
    passes = work_of(MLP((20, 16, 32, 16)))
    training = run_flop(gem, PIXELS, NETWORK, transfer=False)[0]
    assert training[3] == (75 + 8 * 3 * place) * (passes.forward + passes.backward)


def test_the_paper_network():
    """0.322 GFLOP for a step on 266 images of Permuted MNIST."""
    passes = work_of(MLP((784, 256, 256, 10)))
    assert round(266 * (passes.forward + passes.backward) / 1e9, 3) == 0.322


def test_tasks_that_share_their_test_images_are_looked_at_once(monkeypatch):
    looked = []
    original = PermutedStream.test
    monkeypatch.setattr(PermutedStream, "test", lambda *what: looked.append(what) or original(*what))
    stream, one = toy(range(30), examples=20), learner("soft_agem", **OF_PIXELS)
    tests = run_flop(one, stream, NETWORK, True)[1]
    assert len(tests) == 30 and len(looked) == 1
    assert run_flop(one, Unknown(stream), NETWORK, True)[1] == tests and len(looked) == 31


class Unknown:
    """A stream that does not say what its tasks have in common."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        if name == "permutation_hash":
            raise AttributeError(name)
        return getattr(self._stream, name)
