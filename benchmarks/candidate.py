"""One candidate in a process of its own (see turns.py): the cohort engine, the plain loop, or bare matrix products.

    python candidate.py engine|plain|ceiling --threads N [--data-dir FOLDER]

Without a data folder it works on made-up images that are zero as often as MNIST's. compare.py asks the engine of
every revision for the same cases: PROTOCOL goes up whenever what `Engine` takes or answers means something else.
"""

import argparse
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import images as pictures
import numpy as np
import torch
import turns
from flops import BATCH, SIZES, Product
from images import CLASSES
from plain import PlainLoop

from trainers import Architecture, Cohort, Learner
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.streams.base import Images
from trainers.streams.images.split import SplitStream
from trainers.streams.permuted import PermutedStream

PROTOCOL = 1
VALUES = 11  # a round of the paper: 11 values of ε with every seed
OWN = {"soft_agem": ("epsilon", np.linspace(0, 1, VALUES)), "ewc": ("strength", np.geomspace(0.1, 10, VALUES))}
PER_CLASS = 30  # memory: 300 examples after the first task, so that a reference batch of 256 is always full
FEWEST, FEWEST_OF_PICTURES = 50, 10  # steps of a member: fewer would not fill that memory; a reference batch of 10
IN_TURN = NumericPath(products="onednn")  # of residual networks; a choice by measurement differs between processes
ROWS = 10_000


def cohort(members: int, method: str = "soft_agem", **values: Any) -> Cohort:
    """Learners as a search makes them: different ε, or λ, first, then different seeds."""
    name, own = OWN[method]
    return Cohort(
        tuple(Learner.of(method, seed=i // VALUES, **values, **{name: float(own[i % VALUES])}) for i in range(members))
    )


class Engine:
    """Steps of the second task, all with a full reference batch: a run of two tasks less one of its first task."""

    def __init__(self, data: Images | None) -> None:
        self._images = lru_cache(maxsize=None)(lambda pixels, steps: self._cut(data, pixels, steps))
        self._pictures = lru_cache(maxsize=None)(lambda pixels, steps: pictures.made_up_set(2 * CLASSES, steps, pixels))
        self._warm: set[Any] = set()  # what has had its first run, which compiles and chooses arithmetic

    def __call__(
        self,
        members: int,
        steps: int,
        memory_batch: int | None = None,
        pixels: int = SIZES[0],
        method: str = "soft_agem",
        network: str = "mlp",
    ) -> dict[str, Any]:
        """steps: of all members together, at least; memory_batch: None for a method without a memory; pixels: of an
        image, which is square and in colour for a residual network.
        """
        steps = max(steps // members, FEWEST if network == "mlp" else FEWEST_OF_PICTURES)
        memory = {} if memory_batch is None else {"memory": min(PER_CLASS, steps), "memory_batch": memory_batch}
        chosen = cohort(members, method, **memory)
        seconds = []
        for tasks in (1, 2) if (kind := (method, network, pixels)) in self._warm else (2, 1, 2):
            training = self._training(network, pixels, steps, range(tasks))
            started = time.perf_counter()
            train_cohort(chosen, training)
            seconds.append(time.perf_counter() - started)
        self._warm.add(kind)
        return {"steps": members * steps, "seconds": seconds[-1] - seconds[-2]}

    def _training(self, network: str, pixels: int, steps: int, tasks: range) -> Training:
        if network == "mlp":
            return Training(PermutedStream(self._images(pixels, steps), tasks))
        stream = SplitStream(self._pictures(pixels, steps), tasks, CLASSES)
        return Training(stream, Architecture(network), IN_TURN)

    def _cut(self, data: Images | None, pixels: int, steps: int) -> Images:
        if data is not None:
            return pictures.cut(data, BATCH * steps, 10)
        density = pictures.MNIST_DENSITY if pixels == SIZES[0] else pictures.DIGITS_DENSITY
        return pictures.made_up(BATCH * steps, 10, pixels, density)


class Plain:
    """Steps of the plain loop on float tensors in memory."""

    def __init__(self, data: Images | None) -> None:
        chosen = pictures.made_up(ROWS, 10) if data is None else pictures.cut(data, ROWS, 10)
        self._x = torch.tensor(chosen.train.inputs, dtype=torch.float32) / chosen.largest
        self._y = torch.tensor(chosen.train.labels)
        stored = PER_CLASS * chosen.classes
        self._memory, self._labels = self._x[:stored][:, torch.randperm(SIZES[0])], self._y[:stored]
        self._loop = PlainLoop(SIZES[0], SIZES[1:-1], SIZES[-1], 0.1)

    def __call__(self, memory_batch: int, steps: int) -> dict[str, Any]:
        started = time.perf_counter()
        for step in range(steps):
            start = BATCH * step % (ROWS - BATCH)
            now, drawn = slice(start, start + BATCH), torch.randperm(len(self._labels))[:memory_batch]
            self._loop.step(self._x[now], self._y[now], (self._memory[drawn], self._labels[drawn]))
        return {"steps": steps, "seconds": time.perf_counter() - started}


def ceiling(shapes: list[list[int]], seconds: float) -> dict[str, Any]:
    """FLOP/s of every library routine at hand on every product, each run again for `seconds`."""
    return {
        str(shape): {name: _product_rate(run, Product(*shape), seconds) for name, run in _routines(*shape).items()}
        for shape in shapes
    }


def _routines(m: int, k: int, n: int) -> dict[str, Callable[[], Any]]:
    a, b = torch.rand(m, k), torch.rand(k, n)
    array_a, array_b, transposed, bias = a.numpy(), b.numpy(), b.T.contiguous(), torch.zeros(n)
    found: dict[str, Callable[[], Any]] = {"torch.mm": lambda: torch.mm(a, b), "numpy": lambda: array_a @ array_b}
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        onednn = torch.ops.mkldnn._linear_pointwise
        found["oneDNN"] = lambda: onednn(a, transposed, bias, "none", [], "")
    return found


def _product_rate(run: Callable[[], Any], product: Product, seconds: float) -> float:
    run()
    started, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < seconds or not count:
        run()
        count += 1
    return count * product.flop / passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("engine", "plain", "ceiling"))
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    data = pictures.real(given.data_dir) if given.data_dir and given.kind != "ceiling" else None
    turns.serve({"engine": Engine, "plain": Plain}[given.kind](data) if given.kind != "ceiling" else ceiling)


if __name__ == "__main__":
    main()
