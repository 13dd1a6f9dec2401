"""Where the time of a CPU step goes: the engine's own functions under a clock, one member, one thread, real MNIST.

    uv run python benchmarks/step_profile.py [--steps 400] [--turns 5] [--numeric-path NAME] [--data-dir FOLDER]

Writes benchmarks/results/step_profile.json. A clock costs a fraction of a microsecond a call, which goes to the rest.
"""

import argparse
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import images as pictures
import machine
import numpy as np
import torch
from flops import BATCH, SIZES

from epsearch.cache import cache_folder
from trainers import Architecture, Cohort, Learner
from trainers.engines import make_engine
from trainers.engines.base import Learners
from trainers.engines.compiled import kernels, nonzero, sparse
from trainers.engines.compiled.lists import Output
from trainers.engines.compiled.products import PRODUCTS, MatrixProducts
from trainers.engines.pixel_choice import fastest_path
from trainers.numeric_path import NumericPath
from trainers.streams.permuted import PermutedStream

PARTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "first layer, forward": (sparse, ("forward",)),
    "first layer, g_ref and inner products": (sparse, ("layer_products",)),
    "first layer, update": (sparse, ("update_layer",)),
    "batch by pixel, once for all members": (sparse, ("sort_by_pixel", "gram")),
    "other layers, inner products": (kernels, ("layer_products",)),
    "other layers, update": (kernels, ("update_layer",)),
    "softmax and ReLU masks": (kernels, ("output_delta", "mask")),
    "forward": (nonzero, ("forward",)),
    "backward": (nonzero, ("backward",)),
    "inner products of examples": (nonzero, ("inner",)),
    "inner products of images, once for all members": (nonzero, ("gram",)),
    "g_ref, where it is made": (nonzero, ("reference", "with_reference")),
    "update": (nonzero, ("update",)),
}
MATRIX, REST = "matrix products of the other layers", "rest: Python, ReLU, method"


def put_clocks() -> Counter[str]:
    """Replaces the functions by timed ones; returns the seconds by part, which fill as they are called."""
    seconds: Counter[str] = Counter()
    # Compiled as they are, before what they call is replaced.
    fastest_path(SIZES[0], SIZES[1:-1], 0.2)

    def both_ways(rows: Any, lists: Any, layers: Any, hidden: Any, deltas: Any, outputs: Any, loss: Any) -> Any:
        """As `nonzero.both_ways`, in parts."""
        nonzero.forward(rows, lists, layers, hidden, outputs)
        labels, *rest, subtracted = loss
        delta = kernels.output_delta(hidden[-1], labels, *rest, deltas[-1], subtracted)
        nonzero.backward(layers, deltas, outputs)
        return delta

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = work(*arguments)
            seconds[part] += time.perf_counter() - started
            return result

        return run

    for part, (module, names) in PARTS.items():
        for name in names:
            setattr(module, name, timed(part, getattr(module, name)))
    nonzero.both_ways = both_ways
    for name, (product, affine) in PRODUCTS.items():
        PRODUCTS[name] = MatrixProducts(timed(MATRIX, product), timed(MATRIX, affine))
    return seconds


def profile(data: pictures.Images, memory_batch: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Median microseconds of a member-step by part, and of the whole without clocks."""
    stream = PermutedStream(data, range(2), BATCH * arguments.steps)
    path = NumericPath.parse(arguments.numeric_path or str(fastest_path(SIZES[0], SIZES[1:-1], 0.2)))
    # 300 stored: every reference batch is full
    one = Learner.of("soft_agem", seed=0, epsilon=0.1, memory=30, memory_batch=memory_batch)
    engine = make_engine(Cohort((one,)), (0,), stream, Architecture(), path)
    with torch.inference_mode():
        learners = Learners.of(
            engine.start(), torch.tensor([0]), {"epsilon": [0.1], "lr": [one.hyperparameters.lr]}, {}
        )
        for task in range(2):
            engine.load_task(task)
            if task == 0:
                engine.train(learners, 0, engine.steps)
                engine.remember(task)
        engine.train(learners, 0, 10)
        seen: list[Counter[str]] = []
        for _ in range(arguments.turns):
            CLOCKS.clear()
            started = time.perf_counter()
            engine.train(learners, 0, engine.steps)
            whole = time.perf_counter() - started
            parts = Counter(CLOCKS)
            parts[REST] = whole - sum(parts.values())
            seen.append(parts)
    names = (MATRIX, *PARTS, REST)
    rows = [{"part": name, "us": 1e6 * statistics.median(one[name] for one in seen) / engine.steps} for name in names]
    return {"memory_batch": memory_batch, "path": str(path), "rows": [row for row in rows if row["us"] > 0]}


def row_rates(data: pictures.Images, turns: int) -> dict[str, float]:
    """Gigabytes of weights a second that the first layer's product reads without zeros, by the rows that it reads.

    Those of a batch's pixels; as many one after another, which is the rate of the cache that holds the weights; as many
    that stay in the first-level cache, which is the rate of the processor.
    """
    pixels, width = SIZES[:2]
    starts, pixel, value = sparse.without_zeros(data.train.inputs[: BATCH + 256], torch.rand(256).numpy())
    weight, bias, out = (torch.zeros(shape).numpy() for shape in ((pixels, width), (width,), (BATCH + 256, width)))
    order = np.arange(len(pixel))
    read = {"pixels of a batch": pixel, "one after another": order % pixels, "16 of them": order % 16}
    seconds: dict[str, list[float]] = {name: [] for name in read}
    for _, (name, rows) in itertools.product(range(100 * turns), read.items()):
        lists = sparse.Sparse(starts, rows.astype(np.uint16), value)
        started = time.perf_counter()
        nonzero.forward(np.arange(len(out)), lists, ((weight, bias),), (out,), (Output.empty(1, width),))
        seconds[name].append(time.perf_counter() - started)
    return {name: len(pixel) * width * 4 / statistics.median(all_of) / 1e9 for name, all_of in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--numeric-path", help="default: the fastest here")
    parser.add_argument("--data-dir", type=Path, default=cache_folder())
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = pictures.real(arguments.data_dir)
    runs = [profile(data, batch, arguments) for batch in (256, 10)]
    for run in runs:
        for row in run["rows"]:
            print(f"reference batch {run['memory_batch']:4}  {row['part']:42} {row['us']:8.0f} µs")
    rates = row_rates(data, arguments.turns)
    for name, rate in rates.items():
        print(f"rows of weights, {name:20} {rate:8.0f} GB/s")
    machine.save("step_profile", {"turns": arguments.turns, "steps": arguments.steps, "runs": runs, "row_rates": rates})


CLOCKS = put_clocks()

if __name__ == "__main__":
    main()
