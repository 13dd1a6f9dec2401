"""A pool is hundreds of megabytes on MNIST: it goes with the engine that used it, not at some later collection."""

import gc
import weakref

import pytest

import trainers.pool
from tests.support.made_images import made_images
from tests.support.numeric_paths import SMALL, on_every_path
from tests.support.toy_streams import toy
from trainers import Cohort, Member, TrainConfig
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.population import train_cohort
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
    pool = Pool(toy(), 0, SMALL, None)
    first = pool.test(1)
    assert pool.test(1) is first  # made once
    del pool
    assert [pool() for pool in pools] == [None]


@on_every_path
@pytest.mark.parametrize("method", ["soft_agem", "gem", "er", "prognn"])  # every kind of memory and engine
def test_no_pool_outlives_its_training(pools, method, path):
    train_cohort(Cohort(method, (Member(0.2, 0),)), toy(), SMALL, path)
    assert pools and not any(pool() for pool in pools)


@pytest.mark.parametrize("method", ["soft_agem", "prognn"])
@pytest.mark.parametrize("products", ["onednn", "torch"])
def test_no_pool_of_images_outlives_its_training(pools, method, products):
    stream = SplitStream(made_images(classes=4, train=4, test=2, size=16), range(2), 2)
    config = TrainConfig(network="reduced_resnet18", memory=1, memory_batch=4)
    train_cohort(Cohort(method, (Member(0.2, 0),)), stream, config, NumericPath(products=products))
    assert pools and not any(pool() for pool in pools)
