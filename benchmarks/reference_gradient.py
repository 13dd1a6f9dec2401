"""What the float32 arithmetic of the cross-entropy's gradient does to g_ref and to a search, on real MNIST.

    uv run python benchmarks/reference_gradient.py --data-dir FOLDER

Trains values of ε on the search stream (3 tasks of Permuted MNIST) on two numeric paths, with the gradient at the label
as a sum and as a subtraction, and measures at the end of the stream how far each CPU path's g_ref is from float64's.
Writes benchmarks/results/reference_gradient.json: A_T of every member, and the errors. docs/methods.md shows both.
"""

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from gradient_errors import CPU_PATHS, reference_errors

from results import metrics
from trainers import Cohort, Learner
from trainers.engines import fastest_for
from trainers.numeric_path import NumericPath
from trainers.population import MLP, Training, train_cohort
from trainers.streams import open_stream

EPSILONS = (0.0, 0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MEASURED = (0.0, 0.07, 0.5, 1.0)  # where g_ref's error is measured
DRAWS = 20  # reference batches of each member


def train(path: str, seed: int, data_dir: str, examples: int | None, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """These values of ε of one seed on one numeric path: A_T in percent, and g_ref's errors where they are measured."""
    torch.set_num_threads(1)
    stream = open_stream("permuted_mnist", Path(data_dir), range(3), examples)
    started = time.perf_counter()
    cohort = Cohort(tuple(Learner.of("soft_agem", seed, epsilon=epsilon) for epsilon in epsilons))
    result = train_cohort(cohort, Training(stream, MLP, NumericPath.parse(path), transfer=False))
    errors = {
        epsilon: reference_errors(result.params[epsilons.index(epsilon)], stream, cohort.learners[0], MLP.hidden, DRAWS)
        for epsilon in MEASURED
    }
    return {
        "path": path,
        "seed": seed,
        "seconds": time.perf_counter() - started,
        "A_T": {
            epsilon: 100 * float(metrics.average_accuracy(result.accuracies[i])) for i, epsilon in enumerate(epsilons)
        },
        "fingerprints": dict(zip(epsilons, result.fingerprints.tolist(), strict=True)),
        "errors": errors,
    }


def summary(runs: list[dict[str, Any]], path: str) -> dict[str, Any]:
    """Means of A_T over seeds, and the median and the largest error over seeds and draws, by ε and CPU path."""
    mine = [run for run in runs if run["path"] == path]
    return {
        "A_T": {epsilon: statistics.mean(run["A_T"][epsilon] for run in mine) for epsilon in EPSILONS},
        "worst_seed": {epsilon: min(run["A_T"][epsilon] for run in mine) for epsilon in EPSILONS},
        "errors": {
            epsilon: {
                name: {
                    "median": float(np.median([run["errors"][epsilon][name] for run in mine])),
                    "largest": float(np.max([run["errors"][epsilon][name] for run in mine])),
                }
                for name in CPU_PATHS
            }
            for epsilon in MEASURED
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--examples-per-task", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    sums = fastest_for(open_stream("permuted_mnist", Path(arguments.data_dir), range(3), None), MLP)
    paths = [str(replace(sums, subtracted=subtracted)) for subtracted in (False, True)]
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        futures = [
            pool.submit(train, path, seed, arguments.data_dir, arguments.examples_per_task, EPSILONS)
            for path in paths
            for seed in arguments.seeds
        ]
        runs = [future.result() for future in futures]
    figures = {
        "examples_per_task": arguments.examples_per_task or 60_000,
        "seeds": arguments.seeds,
        "paths": {path: summary(runs, path) for path in paths},
        "runs": [{key: run[key] for key in ("path", "seed", "seconds", "A_T", "fingerprints")} for run in runs],
    }
    for path in paths:
        print(path, {epsilon: round(value, 1) for epsilon, value in figures["paths"][path]["A_T"].items()})
    machine.save("reference_gradient", figures)


if __name__ == "__main__":
    main()
