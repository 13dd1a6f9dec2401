"""Which arithmetic of a CPU is the fastest: steps of a perceptron on every numeric path, in turns, one thread.

    uv run python benchmarks/cpu_paths.py [--turns 5] [--seconds 0.2] [--data-dir FOLDER]

Real MNIST, the digits, and dense images that are made up; ε-SOFT-GEM with reference batches of 10, 40 and 256, and EWC,
which has none; cohorts of 1, 5 and 55 members. Seconds are of processor time, which other work changes little. On a
processor with AVX-512, every case is measured a second time by processes that use AVX2 alone. Writes
benchmarks/results/cpu_paths.json.
"""

import argparse
import itertools
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candidate
import images as pictures
import machine
import numpy as np
import torch
import turns

from epsearch.cache import cache_folder
from trainers import Architecture
from trainers.engines import make_engine
from trainers.engines.base import Engine, Learners
from trainers.numeric_path import NumericPath
from trainers.streams.base import Examples, Images
from trainers.streams.permuted import PermutedStream
from trainers.streams.pixels import digits

BATCHES: tuple[int | None, ...] = (10, 40, 256, None)  # None: EWC
MEMBERS = (1, 5, 55)
STEPS = 100  # of each of two tasks
# "mkl-lazy" and "onednn-lazy" are the same arithmetic.
PATHS = tuple(f"cpu-float32-{kind}" for kind in ("mkl", "onednn", "mkl-sparse", "onednn-sparse", "mkl-lazy"))
AVX2 = {
    "NUMBA_CPU_NAME": "x86-64-v3",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
}
"""The environment of a process that uses no AVX-512."""


def dense() -> Images:
    """Images of 784 pixels, none of them zero: a prototype for each class, and noise."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(40, 216, (pictures.CLASSES, 784))
    labels = np.arange(2_000) % pictures.CLASSES
    noise = rng.integers(-39, 40, (len(labels), 784))
    part = Examples((prototypes[labels] + noise).astype(np.uint8), labels.astype(np.int64))
    return Images(part, part, pictures.CLASSES, 255.0)


class Steps:
    """Steps of the second task on each path, of members whose first task is trained."""

    def __init__(self, data_dir: Path) -> None:
        self._images = {"MNIST": pictures.real(data_dir), "digits": digits.load(), "dense": dense()}
        self._case: tuple[Any, ...] = ()
        self._ready: dict[str, tuple[Engine, Learners]] = {}

    def __call__(self, images: str, batch: int | None, members: int, path: str, steps: int) -> dict[str, Any]:
        if (images, batch, members) != self._case:
            self._case, self._ready = (images, batch, members), {}
        with torch.inference_mode():
            if path not in self._ready:
                self._ready[path] = self._prepared(images, batch, members, path)
            engine, learners = self._ready[path]
            started = time.process_time()
            for start in range(0, steps, engine.steps):
                engine.train(learners, 0, min(engine.steps, steps - start))
        return {"steps": steps * members, "seconds": time.process_time() - started}

    def _prepared(self, images: str, batch: int | None, members: int, path: str) -> tuple[Engine, Learners]:
        data = self._images[images]
        stream = PermutedStream(data, range(2), STEPS * 10)
        if batch is None:
            cohort = candidate.cohort(members, "ewc", lr=0.03)
        else:  # 30 of each class: every reference batch is full
            cohort = candidate.cohort(members, lr=0.03, memory=30, memory_batch=batch)
        engine = make_engine(cohort, (0,), stream, Architecture(), NumericPath.parse(path))
        names = cohort.declared.per_learner
        own = {name: [one.hyperparameters.get(name) for one in cohort.learners] for name in names}
        first = engine.start()  # of the first task, which all members share
        learner = self._learners(engine, first, {name: values[:1] for name, values in own.items()})
        engine.load_task(0)
        engine.train(learner, 0, engine.steps)
        engine.finish(learner, True)
        engine.remember(0)
        engine.load_task(1)
        learners = self._learners(engine, learner.params.repeat(members, 1), own)
        for name, array in learner.state.items():
            learners.state[name].copy_(array.expand_as(learners.state[name]))
        return engine, learners

    def _learners(self, engine: Engine, params: torch.Tensor, own: dict[str, list[Any]]) -> Learners:
        return Learners.of(params, torch.zeros(len(params), dtype=torch.int64), own, engine.state(params))


def cases() -> Iterator[tuple[str, int | None, int]]:
    yield from itertools.product(("MNIST", "digits", "dense"), BATCHES, MEMBERS)


def measure(workers: dict[str, turns.Candidate], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of a case, a kind of vectors and a path: microseconds of a member-step."""
    rows = []
    for images, batch, members in cases():
        seen: dict[tuple[str, str], list[float]] = {(v, path): [] for v in workers for path in PATHS}
        steps = dict.fromkeys(seen, 5)
        for turn in range(
            -2, arguments.turns
        ):  # the first turn compiles, the second one says how many steps fill a turn
            for vectors, path in random.Random(turn).sample(sorted(seen), len(seen)):
                request = {"images": images, "batch": batch, "members": members, "path": path}
                (answer,) = turns.together([workers[vectors]], **request, steps=steps[vectors, path])
                each = answer["seconds"] / answer["steps"]
                if turn == -1:
                    steps[vectors, path] = max(2, round(arguments.seconds / (each * members)))
                if turn >= 0:
                    seen[vectors, path].append(1e6 * each)
        for (vectors, path), times in seen.items():
            row = {"images": images, "memory_batch": batch, "members": members, "vectors": vectors, "path": path}
            rows.append(row | {"us": turns.summary(times)})
        fastest = min(seen, key=lambda one: statistics.median(seen[one]))
        print(f"{images:6} {batch or 'ewc':>4} {members:3} members: {fastest[1]}, {fastest[0]}", file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn of a path")
    parser.add_argument("--data-dir", type=Path, default=cache_folder())
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        torch.set_num_threads(1)
        turns.serve(Steps(arguments.data_dir))
        return
    command = (sys.executable, __file__, "--serve", "--data-dir", str(arguments.data_dir))
    wide = machine.facts()["vectors"]
    workers = {}
    for vectors in dict.fromkeys((wide, "AVX2")):
        os.environ.update(AVX2 if vectors != wide else {})
        workers[vectors] = turns.Candidate(command, 1)
    try:
        rows = measure(workers, arguments)
    finally:
        for worker in workers.values():
            worker.close()
    machine.save("cpu_paths", {"turns": arguments.turns, "seconds": arguments.seconds, "rows": rows})


if __name__ == "__main__":
    main()
