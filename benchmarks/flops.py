"""Exact counts of what a training step has to multiply and to move, from the layer sizes alone."""

from itertools import pairwise
from typing import NamedTuple

from trainers import Architecture, Cohort
from trainers.cost import flops
from trainers.cost.network_flops import mlp_work
from trainers.streams import TaskStream

SIZES = (784, 256, 256, 10)  # the paper's network for Permuted MNIST
NETWORK = Architecture(hidden=SIZES[1:-1])
BATCH = 10
FLOAT = 4  # bytes


class Product(NamedTuple):
    """A matrix product [m, k] × [k, n]."""

    m: int
    k: int
    n: int

    @property
    def flop(self) -> int:
        return 2 * self.m * self.k * self.n


def products(sizes: tuple[int, ...], rows: int) -> list[Product]:
    """The products of one step on a batch of `rows`, mini-batch and reference batch together.

    Per layer forward pass and weight gradient; the gradient of its input only from the second layer on.
    """
    result = []
    for layer, (k, n) in enumerate(pairwise(sizes)):
        result += [Product(rows, k, n), Product(k, rows, n)]
        if layer:
            result.append(Product(rows, n, k))
    return result


def step_flop(sizes: tuple[int, ...], rows: int, density: float = 1.0) -> float:
    """FLOP of one member-step on so many examples. With `density`, the share of pixels that are not zero, the
    first layer counts its non-zero products only.

    >>> round(step_flop(SIZES, 266) / 1e9, 3)
    0.322
    """
    work = mlp_work(sizes)
    first = 2 * Product(rows, sizes[0], sizes[1]).flop
    return work.training_flop(rows, 1) - first * (1 - density)


def step_bytes(sizes: tuple[int, ...], rows: int) -> int:
    """Bytes that one member-step on its own has to move when nothing stays in a cache between its operations.

    Parameters are read forward and backward; two gradients are written and read; the update reads and writes the
    parameters. Inputs and activations are written once, read by the next layer and by the backward pass.
    """
    parameters = sum((k + 1) * n for k, n in pairwise(sizes))
    return FLOAT * (8 * parameters + 3 * rows * sum(sizes))


def cohort_flop(cohort: Cohort, stream: TaskStream) -> float:
    """FLOP of training a cohort of this network, without its tests; learners of a seed share their first task."""
    one, seeds = cohort.learners[0], len({one.seed for one in cohort.learners})
    first, *later = flops.run_flop(one, stream, NETWORK, transfer=False)[0]
    return seeds * first + len(cohort.learners) * sum(later)
