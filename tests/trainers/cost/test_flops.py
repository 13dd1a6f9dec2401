"""The FLOP that are counted from shapes are those that torch counts while it trains."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.support.made_images import made_images
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy
from trainers import Cohort, Member, TrainConfig
from trainers.cost.flops import references, run_flop, steps_of
from trainers.cost.network_flops import work_of
from trainers.methods import METHODS, Mixing, Projection
from trainers.networks import MLP, make_network
from trainers.networks.heads import JointEmbedding, Linear
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.population import train_cohort
from trainers.streams.images.split import SplitStream
from trainers.streams.permuted import PermutedStream

# Widths and outputs of the engine's padding, and every class in what is shown: nothing is counted that is not there.
PIXELS = toy(range(4), examples=75, classes=16, pixels=20)
MLP_CONFIG = TrainConfig(batch_size=10, memory=2, memory_batch=40, hidden=(16, 32))
IMAGES = made_images(classes=8, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4], size=16)
IMAGE_STREAM = SplitStream(IMAGES, range(1, 4), 2)
IMAGE_CONFIG = TrainConfig(batch_size=4, memory=2, memory_batch=5, network="reduced_resnet18")


def product(out, a, b, out_val=None, **scales):
    """Of out += a·b, given as shapes."""
    return 2 * a[0] * a[1] * b[1]


def counted(work):
    # Torch does not know that of the product that goes into a matrix at once.
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product}) as counter:
        work()
    return counter.get_total_flops()


def of_rules(method, config, stream):
    """What torch counts besides passes: inner products of a mix, and of GEM's gradients."""
    rule, width = METHODS[method].rule, make_network(config, stream).row
    with_reference = [
        (steps_of(stream, config, 0, task), task)
        for task, part in enumerate(references(method, config, stream))
        if part.examples
    ]
    assert not isinstance(rule, Projection)
    if method == "er":  # its first step of all has nothing stored
        with_reference[0] = (with_reference[0][0] - 1, 0)
    return sum(3 * 2 * width * steps for steps, _ in with_reference) if isinstance(rule, Mixing) else 0


def trained(method, stream, config, transfer):
    member = Member(0.5, 0, strength=0.1)
    return counted(lambda: train_cohort(Cohort(method, (member,)), stream, config, TWIN, transfer=transfer))


@pytest.mark.parametrize("transfer", [True, False])
@pytest.mark.parametrize("method", ["van", "ewc", "mas", "er", "soft_agem", "prognn"])
def test_a_run_of_a_perceptron(method, transfer):
    found = trained(method, PIXELS, MLP_CONFIG, transfer)
    assert found - of_rules(method, MLP_CONFIG, PIXELS) == run_flop(method, MLP_CONFIG, PIXELS, transfer).total


@pytest.mark.parametrize("method", ["van", "mas", "soft_agem", "prognn"])
def test_a_run_of_a_residual_network(method, monkeypatch):
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    found = trained(method, IMAGE_STREAM, IMAGE_CONFIG, True)
    assert (
        found - of_rules(method, IMAGE_CONFIG, IMAGE_STREAM) == run_flop(method, IMAGE_CONFIG, IMAGE_STREAM, True).total
    )


def test_replay_on_a_residual_network_is_one_batch(monkeypatch):
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    assert trained("er", IMAGE_STREAM, IMAGE_CONFIG, False) == run_flop("er", IMAGE_CONFIG, IMAGE_STREAM, False).total


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
        both = counted(lambda: net.gradients(params, kept, x, labels, None, weight, (rows,), into))
    assert both == work.trained(rows, 1)


def test_agem_by_hand():
    """Four tasks of 75 in steps of 10, 32 stored after each, of which 40 at most are drawn."""
    forward, backward = 2 * (20 * 16 + 16 * 32 + 32 * 16), 2 * (20 * 16 + 2 * (16 * 32 + 32 * 16))
    found = run_flop("agem", MLP_CONFIG, PIXELS, transfer=False)
    examples = [75, 75 + 8 * 32, 75 + 8 * 40, 75 + 8 * 40]
    assert found.training == tuple(count * (forward + backward) for count in examples)
    assert found.tests == tuple(40 * seen * forward for seen in (1, 2, 3, 4))
    assert sum(found.training) + sum(found.tests) == found.total
    # Before: all four; ten tests in the first batches, of which there are eight; the next task's before it begins.
    with_transfer = run_flop("agem", MLP_CONFIG, PIXELS, transfer=True)
    assert with_transfer.training == found.training
    assert with_transfer.tests == tuple(40 * times * forward for times in (4 + 8 + 2, 8 + 3, 8 + 4, 8 + 4))


def test_gem_takes_all_that_is_stored():
    place = MLP_CONFIG.memory * 16
    assert [tuple(part) for part in references("gem", MLP_CONFIG, PIXELS)] == [
        (8 * task * place, 8 * task) for task in range(4)
    ]
    passes = work_of(MLP((20, 16, 32, 16)))
    training = run_flop("gem", MLP_CONFIG, PIXELS, transfer=False).training
    assert training[3] == (75 + 8 * 3 * place) * (passes.forward + passes.backward)


def test_the_paper_network():
    """0.322 GFLOP for a step on 266 images of Permuted MNIST."""
    passes = work_of(MLP((784, 256, 256, 10)))
    assert round(266 * (passes.forward + passes.backward) / 1e9, 3) == 0.322


def test_tasks_that_share_their_test_images_are_looked_at_once(monkeypatch):
    looked = []
    original = PermutedStream.test
    monkeypatch.setattr(PermutedStream, "test", lambda *what: looked.append(what) or original(*what))
    stream = toy(range(30), examples=20)
    tests = run_flop("soft_agem", MLP_CONFIG, stream, True).tests
    assert len(tests) == 30 and len(looked) == 1
    assert run_flop("soft_agem", MLP_CONFIG, Unknown(stream), True).tests == tests and len(looked) == 31


class Unknown:
    """A stream that does not say what its tasks have in common."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        if name == "content":
            raise AttributeError(name)
        return getattr(self._stream, name)
