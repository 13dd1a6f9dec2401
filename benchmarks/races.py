"""How often a race drops the best value of a round, and what it saves, over kinds of noise.

    uv run python benchmarks/races.py [--races 2000] [--rows FILE]

A cell is a kind of noise, a number of values, and one of seeds. Finished cells go to --rows, from which an
interrupted benchmark goes on; all of them go to benchmarks/results/races.json, and their tables to docs/strategies.md.
"""

import argparse
import itertools
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np
from objectives import OBJECTIVES, REST_SD, SEED_SD

from epsearch.loop.strategy_driver.race import assign_seeds
from results.statistics.racing import adjusted_means

VALUES, SEEDS = (5, 11), (3, 5, 10)
STEEP = OBJECTIVES[0]
SMOOTH = 0.3  # length over which smooth noise hangs together, of an interval of 1
SLOPE = 2.0  # standard deviation of a seed's slope from the middle to an end, in that of the noise
BUDGETS = ((5, 5), (3, 10), (10, 10), (5, 20))  # --seeds, --most-seeds

Row = dict[str, Any]
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def scaled(best: float = 1.0, next_one: float = 1.0, others: float = 1.0) -> Draw:
    """Normal noise [K, R] of other sizes for the first value, which is the best, the second one and the rest."""
    return lambda rng, values, seeds: (
        rng.standard_normal((values, seeds)) * np.r_[best, next_one, np.full(values - 2, others)][:, None]
    )


def smooth(rng: np.random.Generator, values: int, seeds: int) -> np.ndarray:
    x = np.linspace(0, 1, values)
    covariance = np.exp(-(((x[:, None] - x) / SMOOTH) ** 2) / 2) + 1e-9 * np.eye(values)
    return np.linalg.cholesky(covariance) @ rng.standard_normal((values, seeds))


def slopes(rng: np.random.Generator, values: int, seeds: int) -> np.ndarray:
    x = np.linspace(-1, 1, values)
    return rng.standard_normal((values, seeds)) + SLOPE * x[:, None] * rng.standard_normal(seeds)


def heavy(rng: np.random.Generator, values: int, seeds: int) -> np.ndarray:
    return rng.standard_t(3, (values, seeds)) / np.sqrt(3)


NOISES: dict[str, Draw] = {
    "equal": scaled(),
    "best value twice as noisy": scaled(best=2),
    "best value three times": scaled(best=3),
    "another value three times": scaled(next_one=3),
    "all others twice": scaled(next_one=2, others=2),
    "smooth along ε": smooth,
    "Student's t, 3 degrees of freedom": heavy,
    "a slope of each seed": slopes,
}


def raced(means: np.ndarray, noise: np.ndarray, of_seeds: np.ndarray, enough: int) -> list[tuple[int, bool]]:
    """(seeds, whether dropped) of each value."""
    table = means[:, None] + REST_SD * noise + SEED_SD * of_seeds
    return assign_seeds(table, np.zeros(table.shape, dtype=bool), enough)


def cell(noise: str, values: int, seeds: int, races: int) -> Row:
    """Saved is what is not trained on the steep parabola, whose top is the first."""
    rng = np.random.default_rng((list(NOISES).index(noise), values, seeds))
    flat, steep = np.zeros(values), np.array([STEEP.mean(0.4 + 0.6 * x) for x in np.linspace(0, 1, values)])
    dropped, members = 0, 0
    for _ in range(races):
        drawn, of_seeds = NOISES[noise](rng, values, seeds), rng.standard_normal(seeds)
        dropped += raced(flat, drawn, of_seeds, seeds)[0][1]
        members += sum(count for count, _ in raced(steep, drawn, of_seeds, seeds))
    return {
        **{"noise": noise, "values": values, "seeds": seeds, "races": races},
        **{"dropped": dropped / races, "saved": 1 - members / (races * values * seeds)},
    }


def budget(curve: int, seeds: int, most: int, races: int) -> Row:
    """One round of 11 values with so many seeds, and more for those that cannot be told apart."""
    rng, objective = np.random.default_rng((curve, 99)), OBJECTIVES[curve]
    means = np.array([objective.mean(x) for x in np.linspace(0, 1, 11)])
    regrets, members = [], []
    for _ in range(races):
        drawn, of_seeds = (
            rng.standard_normal((11, BUDGETS[-1][1]))[:, :most],
            rng.standard_normal(BUDGETS[-1][1])[:most],
        )
        results = raced(means, drawn, of_seeds, seeds)
        beyond = np.arange(most) >= np.array([count for count, _ in results])[:, None]
        table = np.where(beyond, np.nan, means[:, None] + REST_SD * drawn + SEED_SD * of_seeds)
        regrets.append(means.max() - means[np.nanargmax(adjusted_means(table, over=seeds))])
        members.append(sum(count for count, _ in results))
    return {
        **{"objective": objective.name, "seeds": seeds, "most": most, "races": races},
        **{"regret": float(np.mean(regrets)), "members": float(np.mean(members))},
    }


def read(path: Path) -> dict[str, Row]:
    """Finished cells by what they are; the last line may have been cut off."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return {json.dumps(line["task"]): line["row"] for line in map(json.loads, lines)}


def work(task: list[Any]) -> Row:
    kind, *rest = task
    return cell(*rest) if kind == "cell" else budget(*rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--races", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=Path, default=Path("races-rows.jsonl"))
    args = parser.parse_args()
    cells = [["cell", *one, args.races] for one in itertools.product(NOISES, VALUES, SEEDS)]
    budgets = [["budget", curve, *one, args.races] for curve in range(len(OBJECTIVES)) for one in BUDGETS]
    known = read(args.rows)
    with ProcessPoolExecutor(args.workers) as pool, args.rows.open("a", encoding="utf-8") as file:
        asked = {pool.submit(work, task): task for task in (*cells, *budgets) if json.dumps(task) not in known}
        for future in as_completed(asked):
            file.write(json.dumps({"task": asked[future], "row": future.result()}) + "\n")
            file.flush()
    known = read(args.rows)
    figures = {
        "cells": [known[json.dumps(task)] for task in cells],
        "budgets": [known[json.dumps(task)] for task in budgets],
    }
    machine.save("races", figures)


if __name__ == "__main__":
    main()
