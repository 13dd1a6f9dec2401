"""Results do not depend on how many threads torch has, and it has as many afterwards as before."""

import threading

import pytest
import torch

from epsearch.testing.toy import toy
from tests.support.learners import few, train
from tests.support.limits import HANGS
from tests.support.numeric_paths import COMPILED, TWIN, on, rows_equal
from trainers import Architecture
from trainers.engines.precision import one_thread
from trainers.numeric_path import NumericPath

LARGE = Architecture(hidden=(256, 256))
"""Large enough for torch to share its products among threads."""


@pytest.fixture
def threads():
    """A function that sets the number of torch's threads."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.few(4)
@on((*COMPILED, TWIN))
@pytest.mark.parametrize("method", ["van", "soft_agem", "gem", "er", "ewc", "prognn"])
def test_results_do_not_depend_on_their_number(threads, method, path):
    def trained(count):
        threads(count)
        found = train([few(method, seed) for seed in (0, 1)], toy(range(2), pixels=784), path, LARGE)
        assert torch.get_num_threads() == count
        return found

    alone = trained(1)
    found = trained(4)
    assert all(rows_equal(alone, row, found, row) for row in (0, 1))


def test_the_number_is_set_back_after_an_error(threads):
    threads(3)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train([few("van")], toy(range(2)), NumericPath(products="mkl"), progress=stop)
    assert torch.get_num_threads() == 3


def test_of_several_that_train_at_once_each_sets_its_own_back(threads):
    threads(3)
    inside, first_is_over, seen = threading.Event(), threading.Event(), []

    def later():
        threads(4)
        with one_thread():
            inside.set()
            assert first_is_over.wait(HANGS)
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    with one_thread():
        thread = threading.Thread(target=later)
        thread.start()
        assert inside.wait(HANGS)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    first_is_over.set()
    thread.join(HANGS)
    assert seen == [1, 4]
