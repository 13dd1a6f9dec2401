"""Starts that are moved by as little as rounding: by that much, and nothing else."""

import numpy as np
import pytest
import torch

from tests.support.learners import few
from tests.support.numeric_paths import MKL
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.engines import make_engine
from trainers.engines.moved import SIZE, make_moved, moved
from trainers.population import Training, train_rest


def trained(make, method="soft_agem"):
    training, cohort = Training(toy(), Architecture(), MKL), Cohort((few(method),))
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
    both = moved(start, (3, 4))
    assert torch.equal(both[1:], moved(start[1:], (4,)))
    assert not torch.equal(both[0], both[1])


def test_a_moved_perceptron_learns_the_same_but_for_rounding():
    plain, first, again = trained(make_engine), trained(make_moved), trained(make_moved)
    assert first.fingerprints[0] == again.fingerprints[0] != plain.fingerprints[0]
    assert 0 < np.abs(first.params[0] - plain.params[0]).max() < 1e-4
    assert np.array_equal(first.steps, plain.steps)
