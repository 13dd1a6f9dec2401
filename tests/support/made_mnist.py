"""A small MNIST of noise, for tests of benchmarks."""

from contextlib import contextmanager

from tests.trainers.streams.test_permuted import write_idx
from trainers.streams.pixels import mnist


@contextmanager
def made_mnist(folder):
    """Writes it into a folder of `folder`, which it yields."""
    mnist.load.cache_clear()
    write_idx(folder / "data", images=(200, 40))
    yield folder / "data"
    mnist.load.cache_clear()
