"""Starts that are moved by as little as rounding: by that much, and nothing else."""

import numpy as np
import pytest
import torch

from tests.support.learners import few
from tests.support.made_images import made_images
from tests.support.numeric_paths import MKL, TWIN
from tests.support.own_networks import normalised, perceptron
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.cohort import plug, unplug
from trainers.engines import make_engine
from trainers.engines.perturbed_start import SIZE, make_moved, perturb
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_rest
from trainers.streams.images.split import SplitStream

IN_TURN = NumericPath(products="onednn")  # the members of a network that is no perceptron
NETWORKS = {
    "compiled": ("mlp", None, MKL),
    "batched": ("mlp", None, TWIN),
    "residual": ("reduced_resnet18", None, IN_TURN),
    "residual, batched": ("reduced_resnet18", None, TWIN),
    "own": ("my:net", perceptron, IN_TURN),
    "own, batched, of images": ("my:net", normalised, TWIN),
}


@pytest.fixture(params=NETWORKS)
def training(request):
    """Of a network on a path."""
    name, factory, path = NETWORKS[request.param]
    if factory is not None:
        plug(name, factory)
    images = SplitStream(made_images(classes=8, train=5, test=3, size=16), range(1, 4), 2)
    stream = images if name == "reduced_resnet18" or factory is normalised else toy()
    yield Training(stream, Architecture(name), path)
    unplug("my:net")


def trained(make, training, method="soft_agem"):
    cohort = Cohort((few(method),))
    return train_rest(cohort, training, training.checkpoints(cohort), {}, engine_of=make)


@pytest.mark.parametrize("method", ["soft_agem", "prognn"])
def test_each_parameter_of_the_start_is_moved_by_so_much_of_itself(method):
    given = Cohort((few(method),)), (0,), toy(), Architecture(), MKL
    plain, other = (make(*given).start().double() for make in (make_engine, make_moved))
    by = ((other - plain) / plain)[plain != 0].abs()
    assert by.min() > 0.5 * SIZE and by.max() < 2 * SIZE  # to a neighbour of 24 bits, or the next
    assert torch.equal(other == 0, plain == 0)


def test_signs_are_those_of_the_seed():
    start = torch.ones(2, 100)
    both = perturb(start, (3, 4))
    assert torch.equal(both[1:], perturb(start[1:], (4,)))
    assert not torch.equal(both[0], both[1])


@pytest.mark.few(1)
def test_a_moved_network_learns_the_same_but_for_rounding(training):
    plain, first, again = (trained(make, training) for make in (make_engine, make_moved, make_moved))
    assert first.fingerprints[0] == again.fingerprints[0] != plain.fingerprints[0]
    # A step of a residual network makes a difference a hundred times as large; some twenty steps are taken here.
    far = 1e-4 if not training.architecture.residual else 1.0
    assert 0 < np.abs(first.params[0] - plain.params[0]).max() < far
    assert np.array_equal(first.steps, plain.steps)
