"""All strategies on curves with a known maximum: error, regret, members spent, and how often the interval has it.

    uv run python benchmarks/strategies.py [--repetitions 200] [--strategies …] [--objectives …] [--rows FILE]

Every search has the default budget: 5 rounds of 11 values, 5 seeds; as in a search of ε, the value 0 stands apart. Rows
of single searches go to --rows, from which an interrupted benchmark goes on; their summary goes to
benchmarks/results/strategies.json, and its table and figures to docs/strategies.md.
"""

import argparse
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np
import objectives
from interval_cells import rise_and_fall
from objectives import PEAK, Noisy, Objective

from epsearch.loop.strategy_driver import race
from epsearch.loop.strategy_driver.driver import confidence, model
from results.statistics.racing import adjusted_means
from search_spaces import STRATEGIES, Budget, Observation, Parameter, Space, Strategy

POINTS, REPEATS, SEEDS = 11, 5, 5
RACE = "narrowing, raced"
NAMES = (*STRATEGIES, RACE)
SPACE = Space((Parameter("epsilon", 0.0, 1.0, apart=(0.0,)),))
OBJECTIVES = (
    *objectives.OBJECTIVES,
    # As on the main data set: A-GEM, at 0, is far below, and the rest rises within the first tried values.
    Objective("kink near 0", lambda x: float(rise_and_fall(np.float64(x))) if x else PEAK - 0.04, 0.047, False),
)
KINDS = ("resolved", "one-sided", "edge", "level", "open", "diverging")
Row = dict[str, Any]


def searched(name: str, objective: Objective, repetition: int) -> tuple[Strategy, Noisy]:
    """One search, to its end."""
    noisy = Noisy(objective, repetition, SEEDS)
    strategy = STRATEGIES["narrowing" if name == RACE else name](
        SPACE, Budget(POINTS, REPEATS, repetition, confidence, model)
    )
    while not strategy.done:
        asked = strategy.ask()
        table = scored([float(one.point[0]) for one in asked], noisy, raced=name == RACE)
        means = (adjusted_means(table) if name == RACE else table.mean(axis=1)).tolist()
        seen = (tuple(None if np.isnan(score) else float(score) for score in row) for row in table)
        strategy.tell([Observation(one.number, mean, row) for one, mean, row in zip(asked, means, seen, strict=True)])
    return strategy, noisy


def scored(values: list[float], noisy: Noisy, raced: bool) -> np.ndarray:
    """Scores [K, R] of a round; in a race NaN for seeds that a value is not given."""
    table = np.full((len(values), SEEDS), np.nan)
    shares = [0] * len(values)
    while True:
        nothing_lost = np.zeros(table.shape, dtype=bool)
        wanted = [count if raced else SEEDS for count, _ in race.assign_seeds(table, nothing_lost, SEEDS)]
        if wanted == shares:
            return table
        for row, (value, share) in enumerate(zip(values, wanted, strict=True)):
            table[row, :share] = [noisy(value, seed) for seed in range(share)]
        shares = wanted


def one(name: str, objective: Objective, repetition: int) -> Row:
    """What a search tried and chose: all else follows from that, so that a verdict can be judged anew."""
    strategy, noisy = searched(name, objective, repetition)
    assert strategy.best is not None
    shares: dict[float, int] = {}
    for value, seed in noisy.asked:
        shares[value] = max(shares.get(value, 0), seed + 1)
    return {
        "strategy": name,
        "objective": objective.name,
        "repetition": repetition,
        "chosen": float(strategy.best.point[0]),
        "tried": sorted(shares.items()),
    }


def judged(row: Row) -> Row:
    """How true it is, and what the value is worth that a curve through the same scores names."""
    from epsearch.loop.strategy_driver.choice import choose
    from results.statistics.confidence_set import best_interval
    from results.verdict.curve import verdict

    objective = next(one for one in OBJECTIVES if one.name == row["objective"])
    noisy, best = Noisy(objective, row["repetition"], SEEDS), objective.best
    values = [value for value, _ in row["tried"]]
    table = np.full((len(values), SEEDS), np.nan)
    for index, (value, share) in enumerate(row["tried"]):
        table[index, :share] = [noisy(value, seed) for seed in range(share)]
    apart = [index for index, value in enumerate(values) if value in SPACE.parameters[0].apart]
    interval = verdict(best_interval(values, 100 * table, 0.0, 1.0, apart=apart), 100 * table)
    curve = choose(SPACE, [(value,) for value in values], table).point
    named = row["chosen"] if curve is None else float(curve[0])
    ways = {"tried": row["chosen"], "curve": named}
    return {
        **row,
        "error": {way: None if best is None else abs(value - best) for way, value in ways.items()},
        "regret": {
            way: 0.0 if best is None else objective.mean(best) - objective.mean(value) for way, value in ways.items()
        },
        "members": sum(share for _, share in row["tried"]),
        "more": 0 if named in values else SEEDS,
        "kind": interval.kind,
        "low": interval.low,
        "high": interval.high,
        "covered": None if best is None else bool(interval.low <= best <= interval.high),
    }


def summary(rows: list[Row]) -> Row:
    """Of the searches of one strategy on one objective."""
    covered = [row["covered"] for row in rows if row["covered"] is not None]
    kinds = [row["kind"] for row in rows]
    return {
        "searches": len(rows),
        **{way: chosen(rows, way) for way in ("tried", "curve")},
        "members": float(np.mean([row["members"] for row in rows])),
        "more": float(np.mean([row["more"] for row in rows])),
        "coverage": None if not covered else float(np.mean(covered)),
        "width": float(np.mean([row["high"] - row["low"] for row in rows])),
        "verdicts": {kind: kinds.count(kind) for kind in KINDS},
    }


def compared(rows: list[Row]) -> Row:
    """By strategy, over all curves that have a top: mean regret of each way of choosing.

    more: how much more that is than the curve's, the mean of the paired differences and its standard error.
    """
    figures: Row = {}
    for name in NAMES:
        some = [row for row in rows if row["strategy"] == name and row["error"]["curve"] is not None]
        for way in ("curve", "tried") if some else ():
            apart = np.array([row["regret"][way] - row["regret"]["curve"] for row in some])
            figures.setdefault(name, {})[way] = {
                "regret": float(np.mean([row["regret"][way] for row in some])),
                "more": [float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))],
            }
    return figures


def chosen(rows: list[Row], way: str) -> Row:
    """What came of choosing the best tried value, or the one that a curve names."""
    regrets = [row["regret"][way] for row in rows]
    errors = [row["error"][way] for row in rows if row["error"][way] is not None]
    return {
        "error": None if not errors else float(np.median(errors)),
        "regret": float(np.mean(regrets)),
        "regret_10": float(np.quantile(regrets, 0.1)),
        "regret_90": float(np.quantile(regrets, 0.9)),
    }


def tasks(args: argparse.Namespace, done: set[tuple[str, str, int]]) -> Iterator[tuple[str, int, int]]:
    for repetition in range(args.repetitions):
        for name in args.strategies:
            for index, objective in enumerate(OBJECTIVES):
                wanted = args.objectives is None or objective.name in args.objectives
                if wanted and (name, objective.name, repetition) not in done:
                    yield name, index, repetition


def work(task: tuple[str, int, int]) -> Row:
    name, index, repetition = task
    return one(name, OBJECTIVES[index], repetition)


def read(path: Path) -> list[Row]:
    """Rows of complete lines: the last one may have been cut off."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--strategies", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--objectives", nargs="+", choices=[one.name for one in OBJECTIVES], default=None)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=Path, default=Path("strategies-rows.jsonl"))
    args = parser.parse_args()
    known = read(args.rows)
    done = {(row["strategy"], row["objective"], row["repetition"]) for row in known}
    with ProcessPoolExecutor(args.workers) as pool, args.rows.open("a", encoding="utf-8") as file:
        for future in as_completed([pool.submit(work, task) for task in tasks(args, done)]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
    with ProcessPoolExecutor(args.workers) as pool:
        rows = list(pool.map(judged, read(args.rows), chunksize=20))
    figures = {
        objective.name: {
            name: summary(some)
            for name in NAMES
            if (some := [row for row in rows if (row["strategy"], row["objective"]) == (name, objective.name)])
        }
        for objective in OBJECTIVES
    }
    machine.save("strategies", {"budget": [REPEATS, POINTS, SEEDS], "objectives": figures, "ways": compared(rows)})


if __name__ == "__main__":
    main()
