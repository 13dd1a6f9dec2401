"""A pool is hundreds of megabytes on MNIST: it goes with the engine that used it, not at some later collection."""

import gc
import weakref

import pytest

import trainers.pool
from tests.support.learners import few, learner, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import on_every_path
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.streams.images.split import SplitStream


@pytest.fixture
def pools(monkeypatch):
    """Weak references to all pools made from now on, while nothing but reference counts frees them."""
    made, real = [], Pool.__init__

    def init(self, *given):
        real(self, *given)
        made.append(weakref.ref(self))

    monkeypatch.setattr(trainers.pool.Pool, "__init__", init)
    gc.disable()
    yield made
    gc.enable()


def test_a_pool_goes_with_its_last_user(pools):
    one = few("van")
    pool = Pool(toy(), 0, one.declared, one.hyperparameters)
    first = pool.test(1)
    assert pool.test(1) is first  # made once
    del pool
    assert [pool() for pool in pools] == [None]


def test_a_sample_of_a_task_is_drawn_from_what_its_first_pass_shows():
    """Rows of the task behind the memory's, each once, others in each task and of each seed; two steps show 20."""

    def sample(count, task=0, seed=0, **values):
        one = few("er", seed, batch_size=10, **values)
        pool = Pool(toy(examples=60), seed, one.declared, one.hyperparameters)
        pool.load_task(task)
        return (pool.sample(count) - pool.slots).tolist()

    assert sorted(sample(100)) == [*range(60)] and sorted(sample(100, steps=2)) == [*range(20)]
    few_of_them = sample(25)
    assert len(set(few_of_them)) == 25 and few_of_them == sample(25, epochs=3)
    assert len({tuple(sample(25, *at)) for at in ((0, 0), (1, 0), (0, 1))}) == 3


@pytest.mark.few(6)
@on_every_path
@pytest.mark.parametrize("method", ["soft_agem", "gem", "er", "prognn"])  # every kind of memory and engine
def test_no_pool_outlives_its_training(pools, method, path):
    train([few(method)], toy(), path)
    pools.clear()  # a first training may compile, and what compiles holds on to the frames that called it
    train([few(method)], toy(), path)
    assert pools and not any(pool() for pool in pools)


@pytest.mark.parametrize("method", ["soft_agem", "prognn"])
@pytest.mark.parametrize("products", ["onednn", "torch"])
def test_no_pool_of_images_outlives_its_training(pools, method, products):
    stream = SplitStream(made_images(classes=4, train=4, test=2, size=16), range(2), 2)
    one = learner(method, memory=1, memory_batch=4)
    train([one], stream, NumericPath(products=products), Architecture("reduced_resnet18"))
    assert pools and not any(pool() for pool in pools)
