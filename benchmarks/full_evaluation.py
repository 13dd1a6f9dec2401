"""One full-size evaluation on real MNIST: 17 tasks × 60,000 images, ε = 0.07185 and A-GEM, one process a core.

    uv run python benchmarks/full_evaluation.py --data-dir FOLDER [--moved N]

Writes benchmarks/results/full_evaluation.json: the metrics of every member, and the time it took. With --moved each
member is trained N times more, from starts moved by 1e-7, 2e-7, … of themselves, and benchmarks/results/
full_evaluation_moved.json is written: how far its A_T moves is its rounding noise.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch

from epsearch.preparation.arithmetic import fastest_here
from results import metrics
from trainers import Cohort, Learner
from trainers.engines import make_engine
from trainers.engines.base import Engine
from trainers.engines.perturbed_start import perturb as nudged
from trainers.numeric_path import NumericPath
from trainers.population import MLP, Training, train_rest
from trainers.streams import open_stream


def evaluate(
    epsilon: float, seed: int, data_dir: str, examples: int | None, path: NumericPath, moved: int
) -> dict[str, Any]:
    """Trains one member and returns its metrics in the paper's units."""
    torch.set_num_threads(1)
    stream = open_stream("permuted_mnist", Path(data_dir), range(3, 20), examples)
    started = time.perf_counter()
    cohort, training = Cohort((Learner.of("soft_agem", seed, epsilon=epsilon),)), Training(stream, MLP, path)

    def start_moved(*values: Any) -> Engine:
        engine = make_engine(*values)
        start = engine.start
        engine.start = lambda: reduce(lambda state, _: nudged(state, (seed,)), range(moved), start())  # type: ignore
        return engine

    result = train_rest(cohort, training, training.checkpoints(cohort), {}, None, start_moved)
    seconds = time.perf_counter() - started
    a = result.accuracies[0]
    return {
        "method": "agem" if epsilon == 0 else "soft_agem",
        "epsilon": epsilon,
        "seed": seed,
        "moved": moved,
        "A_T": 100 * float(metrics.average_accuracy(a)),
        "F_T": float(metrics.forgetting(a)),
        "a_1": 100 * float(metrics.first_task_accuracy(a)),
        "a_t": 100 * float(metrics.last_task_accuracy(a)),
        "LCA_10": float(metrics.learning_curve_area(result.within[0])),
        "BWT": 100 * float(metrics.backward_transfer(a)),
        "FWT": 100 * float(metrics.forward_transfer(a, result.initial[0])),
        "projected": float(np.nanmean(result.violations[0])),
        "seconds": seconds,
        "steps": int(result.steps[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--examples-per-task", type=int)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.07185, 0.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--numeric-path", help="the arithmetic; by default what `epsearch run` takes on this machine")
    parser.add_argument("--moved", type=int, default=0)
    arguments = parser.parse_args()
    path = arguments.numeric_path or fastest_here(784, MLP.hidden, 0.2)
    started = time.perf_counter()
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        futures = [
            pool.submit(
                evaluate, epsilon, seed, arguments.data_dir, arguments.examples_per_task, NumericPath.parse(path), moved
            )
            for moved in range(1 + arguments.moved)
            for seed in arguments.seeds
            for epsilon in arguments.epsilons
        ]
        rows = [future.result() for future in futures]
    for row in rows:
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    wall = time.perf_counter() - started
    name = "full_evaluation_moved" if arguments.moved else "full_evaluation"
    machine.save(name, {"numeric_path": path, "members": rows, "wall_seconds": wall})


if __name__ == "__main__":
    main()
