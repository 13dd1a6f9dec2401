"""Avalanche's A-GEM, GEM, EWC, Replay and DER beside ours on the same streams, and why its A-GEM is not ours.

    python benchmarks/avalanche_side_by_side.py --data-dir FOLDER

in an environment that has `epsearch[avalanche]`; writes benchmarks/results/avalanche.json. Each method's values are
chosen on the three cross-validation tasks of Permuted MNIST, and are then measured on other tasks. Then settings of
Avalanche's A-GEM are changed one at a time. Strategies are trained by epsearch's own trainer of Avalanche, in a few
processes for all runs, as an import takes longer than most of them; one run is compared with one by `epsearch run`'s
way, a process of its own.
"""

import argparse
import itertools
import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from avalanche_changes import CHANGES, HERE, PER_CLASS
from machine import save

from results.metrics import average_accuracy, forgetting
from trainers import Cohort, Learner
from trainers.cohort import Architecture
from trainers.engines import fastest_for
from trainers.foreign.inputs import StreamView, write_scaled
from trainers.foreign.inside.seeds import Seeds
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.streams import open_stream
from trainers.streams.scores import accuracies

CHOOSING, MEASURED, EXAMPLES, SEEDS = range(3), range(3, 8), 1000, range(5)
CLASSES, REFERENCE = 10, 256
PER_TASK = PER_CLASS * CLASSES
RATES = (0.03, 0.1)


@dataclass(frozen=True)
class Run:
    """One learner of Avalanche."""

    strategy: str
    values: dict[str, Any] = field(hash=False)
    tasks: range = MEASURED
    seed: int = 0
    changed: str = ""
    """A name of CHANGES: other code in the place of Avalanche's."""


class Stream:
    """What a trainer is given, without a process of its own."""

    def __init__(self, view: StreamView) -> None:
        facts, arrays = view.facts()
        self._view, self._facts, self._mean = view, facts, None if facts["largest"] is not None else arrays[1]
        self.tasks, self.shape, self.outputs = range(len(view)), tuple(facts["shape"]), view.outputs

    def labels(self, task: int) -> Any:
        return np.arange(self.outputs)

    def train(self, task: int) -> tuple[Any, Any]:
        return self._all(self._view.train, task)

    def test(self, task: int) -> tuple[Any, Any]:
        return self._all(self._view.test, task)

    def _all(self, get: Any, task: int) -> tuple[Any, Any]:
        stored, labels, rows = [], [], 1
        while sum(map(len, labels)) < rows:
            rows, part = get(task, sum(map(len, labels)))
            stored.append(part.inputs)
            labels.append(part.labels)
        inputs = np.empty((rows, *self.shape), np.float32)
        write_scaled(self._facts, self._mean, np.concatenate(stored), inputs)
        return inputs, np.concatenate(labels)


def trained(run: Run, folder: Path) -> list[list[float]]:
    """The matrix of accuracies of a run."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    from trainers.foreign.libraries import avalanche

    view = StreamView(open_stream("permuted_mnist", folder, run.tasks, EXAMPLES), run.seed)
    stream, seeds = Stream(view), Seeds(run.seed, 1)
    matrix = np.full((len(run.tasks), len(run.tasks)), np.nan)

    def report(task: int, predict: Any = None, diverged: bool = False) -> None:
        if diverged:
            raise FloatingPointError
        with seeds.preserve():
            for one in range(task + 1):
                inputs, labels = stream.test(one)
                hits = np.asarray(predict(inputs, one)) == labels
                matrix[task, one] = accuracies(hits[None], labels[None], False)[0]
        seeds.begin(max(task + 1, 0))

    strategy = getattr(avalanche, run.strategy)
    values = {name: one["default"] for name, one in strategy.parameters.items()} | run.values
    seeds.begin(0)
    with CHANGES.get(run.changed, nullcontext)():
        try:
            strategy.train(values, stream, run.seed, report)
        except FloatingPointError:
            matrix[:] = np.nan
    return matrix.tolist()


def ours(method: str, tasks: range, folder: Path, path: str = "", **values: Any) -> np.ndarray:
    """[seed, k, j] of one of our methods."""
    torch.set_num_threads(1)
    learners = tuple(Learner.of(method, seed, **values) for seed in SEEDS)
    stream = open_stream("permuted_mnist", folder, tasks, EXAMPLES)
    chosen = NumericPath.parse(f"{fastest_for(stream, Architecture())}{path}")
    return train_cohort(Cohort(learners), Training(stream, path=chosen, transfer=False)).accuracies


# title -> (our method, grid of its values, strategy, grid of its values)
Grid = dict[str, tuple[Any, ...]]
KEPT: Grid = {"memory": (PER_CLASS,)}
METHODS: dict[str, tuple[str | None, Grid, str, Grid]] = {
    "A-GEM": (
        "agem",
        {"lr": RATES, **KEPT, "memory_batch": (REFERENCE,)},
        "AGEM",
        {"lr": RATES, "patterns_per_exp": (PER_TASK,), "sample_size": (REFERENCE,)},
    ),
    "GEM": ("gem", {"lr": RATES, **KEPT}, "GEM", {"lr": RATES, "patterns_per_exp": (PER_TASK,)}),
    "EWC": (
        "ewc",
        {"lr": RATES, "strength": (1.0, 10.0, 100.0)},
        "EWC",
        {"lr": RATES, "ewc_lambda": (1.0, 10.0, 100.0)},
    ),
    "Replay": (
        "er",
        {"lr": RATES, **KEPT, "memory_batch": (10,)},
        "Replay",
        {"lr": RATES, "mem_size": (len(MEASURED) * PER_TASK,)},
    ),
    "DER": (None, {}, "DER", {"lr": RATES, "mem_size": (len(MEASURED) * PER_TASK,), "batch_size_mem": (10,)}),
}
MATCHED = {"train_mb_size": 10, "patterns_per_exp": PER_TASK, "sample_size": REFERENCE, "lr": 0.1}
CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "Avalanche, with all that can be alike": ({}, ""),
    "… and as many examples of each class kept": ({}, "by class"),
    "… and reference batches drawn from all that is kept": ({}, "from all"),
    "… and both": ({}, "both"),
    "… but 64 examples in a reference batch, its default": ({"sample_size": 64}, ""),
    "… but mini-batches in an order of its own": ({"shuffle": "True"}, ""),
    "… but torch's usual start": ({"model": f"{HERE}:torch_start"}, ""),
    "… but SimpleMLP without its dropout": ({"model": f"{HERE}:simple_without_dropout"}, ""),
    "… but SimpleMLP as it is": ({"model": "simple_mlp"}, ""),
    "… but learning rate 0.001, momentum 0.9": ({"lr": 0.001, "momentum": 0.9}, ""),
    "SimpleMLP, 64 in a reference batch, mini-batches of 100, learning rate 0.001, momentum 0.9": (
        {"model": "simple_mlp", "sample_size": 64, "train_mb_size": 100, "lr": 0.001, "momentum": 0.9},
        "",
    ),
}


def points(grid: Grid) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def scores(matrices: Any) -> dict[str, list[float]]:
    """A_T in percent and F_T of each seed; NaN where it diverged."""
    array = np.asarray(matrices)
    return {"A_T": (100 * average_accuracy(array)).tolist(), "F_T": forgetting(array).tolist()}


def choose(results: list[dict[str, list[float]]], among: list[dict[str, Any]]) -> dict[str, Any]:
    """The values whose mean A_T is the highest."""
    means = [np.nan_to_num(np.mean(one["A_T"])) for one in results]
    return among[int(np.argmax(means))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    folder, started = arguments.data_dir.absolute(), time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:

        def theirs(runs: list[Run]) -> list[dict[str, list[float]]]:
            """Of each run, with all seeds."""
            every = [replace(run, seed=seed) for run in runs for seed in SEEDS]
            results = list(pool.map(trained, every, [folder] * len(every)))
            return [scores(results[at : at + len(SEEDS)]) for at in range(0, len(results), len(SEEDS))]

        rows: dict[str, Any] = {}
        for title, (method, own, strategy, grid) in METHODS.items():
            among = [one | {"train_mb_size": 10} for one in points(grid)]
            chosen = choose(theirs([Run(strategy, one, CHOOSING) for one in among]), among)
            (theirs_found,) = theirs([Run(strategy, chosen)])
            rows[title] = {"Avalanche": {"strategy": strategy, "values": chosen, **theirs_found}}
            if method is not None:
                best = choose([scores(ours(method, CHOOSING, folder, **one)) for one in points(own)], points(own))
                result = scores(ours(method, MEASURED, folder, **best))
                rows[title]["epsearch"] = {"method": method, "values": best, **result}
            print(f"{title}: {time.perf_counter() - started:.0f} s, {rows[title]}", flush=True)
        causes: dict[str, Any] = {}
        for title, (values, changed) in CAUSES.items():
            (causes[title],) = theirs([Run("AGEM", MATCHED | values, changed=changed)])
            print(f"{title}: {time.perf_counter() - started:.0f} s, {causes[title]}", flush=True)
    agem = {"memory": PER_CLASS, "memory_batch": REFERENCE, "lr": 0.1}
    causes = {
        "epsearch": scores(ours("agem", MEASURED, folder, **agem)),
        "epsearch, gradients by subtraction": scores(ours("agem", MEASURED, folder, "-subtracted", **agem)),
    } | causes
    save("avalanche", {"rows": rows, "causes": causes, "same": same(folder), **sizes()})


def same(folder: Path) -> bool:
    """Whether a run here has the accuracies of one as `epsearch run` makes it, in a process of its own."""
    from trainers.foreign import running

    run = Run("AGEM", dict(MATCHED), CHOOSING)
    alone = running.train(
        running.Request("avalanche:AGEM"),
        running.Run(defaults("AGEM") | run.values, 0, open_stream("permuted_mnist", folder, CHOOSING, EXAMPLES), False),
    )
    return bool(np.array_equal(alone.accuracies[0], np.array(trained(run, folder)), equal_nan=True))


@cache
def _strategy(name: str) -> Any:
    from trainers.foreign.libraries import avalanche

    return getattr(avalanche, name)


def defaults(name: str) -> dict[str, Any]:
    return {parameter: one["default"] for parameter, one in _strategy(name).parameters.items()}


def sizes() -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "tasks": {"chosen on": len(CHOOSING), "measured on": len(MEASURED)},
        "examples": EXAMPLES,
        "seeds": len(SEEDS),
        "avalanche-lib": version("avalanche-lib"),
    }


if __name__ == "__main__":
    main()
