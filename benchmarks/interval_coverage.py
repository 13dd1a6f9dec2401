"""How often the stated interval has the top itself, and what the value that the curve names loses to it.

    nice uv run python benchmarks/interval_coverage.py [--workers 1] [--tables 1000] [--until SECONDS]

Each cell of interval_cells.py is a curve, noise, values that are tried and a number of seeds, with 1,000 tables of
scores, judged as a report does. An interval covers where it contains a value no lower than the top.
A cell falls short where the lower end of the 95 % Clopper–Pearson interval of its coverage is below 91 %.

Each finished cell is stored in benchmarks/results/interval_coverage.json, from where an interrupted run goes on; what
other code has measured is measured again. Its tables go to docs/coverage.md (doc_tables.py prints them).
"""

import argparse
import ast
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from interval_cells import CELLS, CURVES, FAILED_BY, Cell, missed, table

Row = dict[str, Any]
ROOT = Path(__file__).parent.parent
ROUNDING = 1e-9
SAMPLES = 1000
"""Of normal noise, for what rests on resamples."""
SEEDS = (3, 5, 10, 20)
"""Of these samples."""
CONFIDENCE, LEAST_COVERAGE = 0.95, 0.91
STATISTICS = "anova confidence_set curve gaussian_process outliers paired racing slope_tests"
MEASURED = (
    *(f"benchmarks/{name}.py" for name in ("interval_cells", "objectives")),
    *(f"results/statistics/{name}.py" for name in STATISTICS.split()),
    "results/verdict/curve.py",
)


def code() -> str:
    """A digest of everything that a row depends on; comments and docstrings are no part of it."""
    trees = (ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in MEASURED)
    return hashlib.sha256("".join(map(_without_text, trees)).encode()).hexdigest()[:12]


def _without_text(tree: ast.Module) -> str:
    """The tree without strings that are statements of their own."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [
                one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return ast.dump(tree)


def judged(cell: Cell, number: int) -> Row:
    """The verdict on one table, and whether it is true."""
    import numpy as np

    from results.statistics.confidence_set import best_interval
    from results.verdict.curve import verdict

    curve = CURVES[cell.curve]
    x, scores = table(cell, number)
    gone = np.isnan(scores)
    lost = gone if gone.any() else None
    known = best_interval(x, 100 * scores, 0.0, 1.0, apart=[0] if curve.apart else [])
    interval = verdict(known, 100 * scores, lost)
    means = scores.mean(axis=1)
    tried = float(x[np.nanargmax(means)])
    # As in `loop/strategy_driver/choice.py`: a value apart is named where it is above the choice of the curve.
    apart = (
        curve.apart
        and known.curve is not None
        and 100 * means[0] > np.interp(known.best, known.curve.places, known.curve.mean)
    )
    named = 0.0 if apart else known.best
    # A value of which members diverge loses as much as a failed member.
    losses = {
        way: min(missed(curve, value, value, (False, False)), FAILED_BY)
        for way, value in (("tried", tried), ("curve", named))
    }
    return {
        "covered": missed(curve, known.low, known.high, known.worse_ends) <= ROUNDING,
        "kind": interval.kind,
        "width": float(known.high - known.low),
        **losses,
    }


def measured(cell: Cell, tables: int) -> Row:
    """All tables of a cell. Losses in percentage points of A_T."""
    rows = [judged(cell, number) for number in range(tables)]
    kinds = [row["kind"] for row in rows]
    return {
        "cell": list(cell),
        "tables": tables,
        "covered": sum(row["covered"] for row in rows),
        "kinds": {kind: kinds.count(kind) for kind in sorted({*kinds})},
        "width": round(sum(row["width"] for row in rows) / tables, 4),
        **{way: round(100 * sum(row[way] for row in rows) / tables, 4) for way in ("tried", "curve")},
    }


def lowest(row: Row) -> float:
    """The lower end of the interval of a cell's coverage."""
    from scipy.stats import binomtest

    return float(binomtest(row["covered"], row["tables"]).proportion_ci(CONFIDENCE, method="exact").low)


def read(path: Path, digest: str) -> list[Row]:
    """The cells that this code has measured."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return list(stored["cells"]) if stored.get("code") == digest else []


def summed(rows: Sequence[Row]) -> Row:
    """All cells in their order, and the names of those that fall short."""
    by_name = {Cell(*row["cell"]): row for row in rows}
    known = [by_name[cell] for cell in CELLS if cell in by_name]
    short = [Cell(*row["cell"]).name for row in known if lowest(row) < LEAST_COVERAGE]
    return {"code": code(), "cells": known, "short": short}


def resampled(seeds: int) -> Row:
    """What resamples of so few seeds say: BCa intervals of a mean, and the share of the best of 11 equal values."""
    import numpy as np
    from scipy.stats import bootstrap

    from results.statistics.spread import probability_best

    held, shares = 0, []
    for number in range(SAMPLES):
        rng = np.random.default_rng([number, seeds])
        low, high = bootstrap((rng.normal(size=seeds),), np.mean, rng=rng).confidence_interval
        held += bool(low <= 0 <= high)
        scores = rng.normal(size=(11, seeds))
        shares.append(float(probability_best(scores)[np.argmax(scores.mean(axis=1))]))
    return {"seeds": seeds, "samples": SAMPLES, "covered": held, "share": float(np.mean(shares))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--until", type=float, default=math.inf, help="seconds after which no cell is begun")
    args = parser.parse_args()
    import machine

    known, began = read(ROOT / "benchmarks" / "results" / "interval_coverage.json", code()), time.monotonic()
    done = {Cell(*row["cell"]) for row in known}
    cells = iter([cell for cell in dict.fromkeys(CELLS) if cell not in done])
    of_seeds = [resampled(seeds) for seeds in SEEDS]
    with ProcessPoolExecutor(args.workers) as pool:
        running = {pool.submit(measured, cell, args.tables) for cell in islice(cells, args.workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            known += [future.result() for future in ended]
            machine.save("interval_coverage", {**summed(known), "resampled": of_seeds})
            if time.monotonic() - began < args.until:
                running |= {pool.submit(measured, cell, args.tables) for cell in islice(cells, len(ended))}
    figures = summed(known)
    print(*figures["short"], f"{len(figures['short'])} of {len(known)} cells fall short", sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
