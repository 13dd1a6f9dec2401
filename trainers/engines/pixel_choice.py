"""Measures the fastest CPU path of a multilayer perceptron."""

import math
import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.engines.compiled.products import PRODUCTS, MatrixProducts, available
from trainers.engines.precision import one_thread, set_precision
from trainers.methods.agem import AGEM
from trainers.methods.rules import Mixing
from trainers.networks import MLP
from trainers.numeric_path import LISTABLE, NumericPath

now = time.perf_counter  # a clock in seconds; tests put one of their own here
ROWS = 266  # a batch of 10 and a reference batch of 256
TURNS = 9
# The plainer path is kept unless the other one is clearly faster: figures of one machine are to stay comparable.
CLEARLY = 1.15
SMALLEST_SPARSE_INPUT, LARGEST_SPARSE_DENSITY = 256, 0.5  # beyond these, lists of pixels cannot win
CURRENT, CLASSES = 10, 10  # examples of g's batch; outputs
SLOW = 1e-6  # a learning rate at which the network stays as it is


@cache
def fastest_path(inputs: int, hidden: tuple[int, ...], density: float) -> NumericPath:
    """Measures and returns the fastest path for images of `inputs` pixels and hidden layers of so many units.

    density: the share of pixels that are not zero. Takes a second, once a process, besides compiling what is not in
    Numba's cache yet.
    """
    if find_spec("numba") is None:
        return NumericPath()
    plain = _fastest_first_layer(inputs, hidden[0], density)
    if max(inputs, *hidden) > LISTABLE:
        return plain
    lazy = NumericPath(products="mkl", lazy=True)  # one name, as it takes nobody's products
    both = seconds({"whole": _step(plain, inputs, hidden, density), "lazy": _step(lazy, inputs, hidden, density)})
    return lazy if both["lazy"] * CLEARLY < both["whole"] else plain


def _fastest_first_layer(inputs: int, width: int, density: float) -> NumericPath:
    """Returns the fastest path for the first layer alone: whose products, and whether all pixels.

    The layer has three quarters of the arithmetic of a step that makes everything.
    """
    shapes = ((ROWS, inputs), (inputs, width), (width,), (ROWS, width), (inputs, width))
    x, weight, bias, out, g_ref = (torch.rand(shape) for shape in shapes)

    def first_layer(products: MatrixProducts) -> None:
        products.affine(x, weight, bias, out)
        products.product(x.T, out, g_ref)

    # The products first, as without sparse inputs nothing of Numba has to be imported and compiled.
    dense = seconds({name: partial(first_layer, PRODUCTS[name]) for name in available()})
    best = "onednn" if dense.get("onednn", math.inf) * CLEARLY < dense["mkl"] else "mkl"
    if not SMALLEST_SPARSE_INPUT <= inputs <= LISTABLE or density > LARGEST_SPARSE_DENSITY:
        return NumericPath(products=best)
    both = seconds({"dense": partial(first_layer, PRODUCTS[best]), "sparse": _sparse_layer(inputs, width, density)})
    return NumericPath(products=best, sparse=both["sparse"] * CLEARLY < both["dense"])


def _sparse_layer(inputs: int, width: int, density: float) -> Callable[[], None]:
    """Returns the same work, forward pass and gradient of the first layer, with made-up images of that density."""
    from trainers.engines.compiled.inputs import Layer, SparseInputs

    examples = SparseInputs(_images(inputs, density), (np.arange(256) / 255).astype(np.float32))
    layer, g_ref = (Layer.of(torch.rand(inputs, width), torch.rand(width)) for _ in range(2))
    out = torch.rand(ROWS, width)

    def first_layer() -> None:
        examples.take(np.arange(ROWS))
        examples.split(CURRENT)
        examples.forward(layer, out)
        examples.products(out.numpy(), g_ref)

    return first_layer


def _step(path: NumericPath, inputs: int, hidden: tuple[int, ...], density: float) -> Callable[[], None]:
    """Returns a step of A-GEM of an untrained network, about half of whose units are active.

    A third is active after some tasks.
    """
    from trainers.engines.compiled.lazy import make_passes

    net, rule, rng = MLP((inputs, *hidden, CLASSES)), cast(Mixing, AGEM.rule), np.random.default_rng(0)
    passes = make_passes(net, 255, path)
    member, labels = passes.layers(torch.from_numpy(net.init(rng))), rng.integers(0, CLASSES, ROWS)
    examples, values = passes.examples(_images(inputs, density)), AGEM.of({})

    def step() -> None:
        examples.take(np.arange(ROWS))
        examples.split(CURRENT)
        batch = passes.batch(ROWS, CURRENT)
        passes.forward(member, batch, examples, labels)
        a, b, _ = passes.mix(member, batch, examples, rule, values)
        passes.update(member, batch, examples, -SLOW * a, -SLOW * b)

    return step


def _images(inputs: int, density: float) -> NDArray[np.uint8]:
    """Returns made-up images of that density, [ROWS, inputs]."""
    rng = np.random.default_rng(0)
    bright = rng.integers(1, 256, (ROWS, inputs), dtype=np.uint8)
    return np.where(rng.random((ROWS, inputs)) < density, bright, np.uint8(0))


@torch.no_grad()
def seconds(ways: dict[str, Callable[[], None]], turns: int = TURNS) -> dict[str, float]:
    """Returns the median seconds of each on one thread, as workers train, in full float32.

    They take turns, so that what else the machine does meets all alike; the first turn, which compiles, does not count.
    """
    set_precision(NumericPath())
    times_of: dict[str, list[float]] = {name: [] for name in ways}
    with one_thread():
        for _ in range(turns + 1):
            for name, work in ways.items():
                started = now()
                work()
                times_of[name].append(now() - started)
    return {name: statistics.median(times[1:]) for name, times in times_of.items()}
