"""Which numeric path is the fastest on this machine's CPU, by a short measurement."""

import statistics
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import numpy as np
import torch

from trainers.numeric_path import NumericPath

ROWS = 266  # a batch of 10 and a reference batch of 256
TURNS = 5
# The plainer path is kept unless the other one is clearly faster: figures of one machine are to stay comparable.
CLEARLY = 1.15
SMALLEST_SPARSE_INPUT = 256  # lists of pixels cannot win on smaller images


@cache
def fastest_path(inputs: int, width: int, density: float) -> NumericPath:
    """For images of `inputs` pixels, of which the share `density` is not zero, and a first layer of `width` units.

    Takes a fraction of a second, once a process, besides compiling what is not in Numba's cache yet.
    """
    if find_spec("numba") is None:
        return NumericPath()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            return _measured(inputs, width, density)
    finally:
        torch.set_num_threads(threads)


def _measured(inputs: int, width: int, density: float) -> NumericPath:
    from trainers.engines.inputs import DenseInputs, SparseInputs
    from trainers.engines.products import PRODUCTS

    rng = np.random.default_rng(0)
    pixels = rng.integers(1, 256, (ROWS, inputs), dtype=np.uint8) * (rng.random((ROWS, inputs)) < density)
    scale = (np.arange(256) / 255).astype(np.float32)
    ways = {NumericPath(products=name): DenseInputs(pixels, scale, PRODUCTS[name]) for name in PRODUCTS}
    dense = _seconds({path: _first_layer(examples, inputs, width) for path, examples in ways.items()})
    best = min(dense, key=lambda path: dense[path] * (1 if path.products == "mkl" else CLEARLY))
    if inputs < SMALLEST_SPARSE_INPUT or density > 0.5:
        return best
    sparse = NumericPath(products=best.products, sparse=True)
    both = _seconds(
        {
            best: _first_layer(ways[best], inputs, width),
            sparse: _first_layer(SparseInputs(pixels, scale), inputs, width),
        }
    )
    return sparse if both[sparse] * CLEARLY < both[best] else best


def _first_layer(examples: object, inputs: int, width: int) -> Callable[[], None]:
    """Forward pass and gradient of the first layer, three quarters of a step's arithmetic."""
    from trainers.engines.inputs import Inputs

    given: Inputs = examples  # type: ignore[assignment]
    weight, bias, out = torch.rand(inputs, width), torch.rand(width), torch.rand(ROWS, width)
    g_ref = torch.empty(inputs, width)

    def work() -> None:
        given.take(np.arange(ROWS))
        given.split(10)
        given.forward(weight, bias, out)
        given.products(out, g_ref)

    return work


def _seconds(ways: dict[NumericPath, Callable[[], None]]) -> dict[NumericPath, float]:
    """Median seconds of each, taking turns; the first turn, which compiles, does not count."""
    seen: dict[NumericPath, list[float]] = {path: [] for path in ways}
    for _ in range(TURNS + 1):
        for path, work in ways.items():
            started = time.perf_counter()
            work()
            seen[path].append(time.perf_counter() - started)
    return {path: statistics.median(times[1:]) for path, times in seen.items()}
