"""How often the stated interval holds a value as good as the top, and how often a flat curve is called resolved.

    nice uv run python benchmarks/interval_coverage.py [--rows FILE] [--workers 1] [--chosen] [--dry]

Each case of interval_cells.py is a curve, noise, values that are tried and a number of seeds. The chosen ones get 200
tables each, all others 30. An interval covers where it contains a value at most 0.1 points of A_T below the top; how
often it contains the top itself is counted, too. A case fails where its 99.9 % Clopper–Pearson interval lies wholly
below 90 % of coverage; on a flat curve also where it lies above 3 % of verdicts "resolved".

An interrupted run goes on from --rows, the rows of single cases; what other code has measured is measured again.
The sum goes to benchmarks/results/interval_coverage.json, its tables to docs/coverage.md (doc_tables.py prints them).
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from interval_cells import CELLS, CHOSEN, CURVES, NOISES, SEEDS, Cell, missed, table

Row = dict[str, Any]
ROOT = Path(__file__).parent.parent
TABLES, TABLES_CHOSEN = 30, 200
WITHIN, ROUNDING = 0.001, 1e-9
"""A value whose mean is at most 0.1 points of A_T below the top is as good as the top."""
SAMPLES = 1000
"""Of normal noise, for what rests on resamples."""
CONFIDENCE, LEAST_COVERAGE, MOST_RESOLVED = 0.999, 0.90, 0.03
STATISTICS = "anova confidence_set curve gaussian_process outliers paired racing slope_tests"
MEASURED = (
    *(f"benchmarks/{name}.py" for name in ("interval_cells", "objectives")),
    *(f"results/statistics/{name}.py" for name in STATISTICS.split()),
    "results/verdict/curve.py",
)


def code() -> str:
    """A digest of everything that a row depends on."""
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in MEASURED)).hexdigest()[:12]


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
    found = verdict(known, 100 * scores, lost)
    told = found.kind == "diverging"  # it says that the tried values cannot show it
    below = missed(curve, known.low, known.high, known.worse_ends)
    return {
        "covered": told or below <= WITHIN,
        "exact": told or below <= ROUNDING,
        "told": told,
        "kind": found.kind,
        "width": known.high - known.low,
    }


def measured(cell: Cell, tables: int) -> Row:
    """All tables of a cell."""
    rows = [judged(cell, number) for number in range(tables)]
    return {
        "cell": list(cell),
        "tables": tables,
        "covered": sum(row["covered"] for row in rows),
        "exact": sum(row["exact"] for row in rows),
        "told": sum(row["told"] for row in rows),
        "resolved": sum(row["kind"] == "resolved" for row in rows),
        "width": round(sum(row["width"] for row in rows) / tables, 4),
    }


def failures(row: Row) -> list[str]:
    """Which of the two promises a cell breaks."""
    from scipy.stats import binomtest

    def ends(count: int) -> tuple[float, float]:
        found = binomtest(count, row["tables"]).proportion_ci(CONFIDENCE, method="exact")
        return found.low, found.high

    broken = ["coverage"] if ends(row["covered"])[1] < LEAST_COVERAGE else []
    if row["cell"][0] == "flat" and ends(row["resolved"])[0] > MOST_RESOLVED:
        broken.append("resolved")
    return broken


def wanted(cell: Cell) -> int:
    return TABLES_CHOSEN if cell in CHOSEN else TABLES


def read(path: Path, digest: str) -> list[Row]:
    """Rows of complete lines that this code has measured: the last line may have been cut off."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    rows = (json.loads(line) for line in lines if line)
    return [row for row in rows if row.pop("code") == digest]


def summed(rows: Sequence[Row]) -> Row:
    """The chosen cells one by one; the others by curve and noise, with the lowest coverage of any cell."""
    by_name = {Cell(*row["cell"]): row for row in rows}
    chosen = [{**by_name[cell], "fails": failures(by_name[cell])} for cell in CHOSEN if cell in by_name]
    groups = {
        curve: {noise: some for noise in NOISES if (some := [row for row in rows if row["cell"][:2] == [curve, noise]])}
        for curve in CURVES
    }
    return {
        "chosen": chosen,
        "all": {curve: {noise: total(some) for noise, some in parts.items()} for curve, parts in groups.items()},
        "failed": sorted(f"{Cell(*row['cell']).name}: {what}" for row in rows for what in failures(row)),
    }


def total(rows: Sequence[Row]) -> Row:
    counts = {key: sum(row[key] for row in rows) for key in ("tables", "covered", "exact", "told", "resolved")}
    return {"cells": len(rows), **counts, "lowest": min(row["covered"] / row["tables"] for row in rows)}


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
    parser.add_argument("--rows", type=Path, default=Path("interval-coverage-rows.jsonl"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--chosen", action="store_true", help="only the chosen cells")
    parser.add_argument("--dry", action="store_true", help="print what fails so far, measure and write nothing")
    args = parser.parse_args()
    digest = code()
    known = read(args.rows, digest)
    done = {Cell(*row["cell"]) for row in known}
    cells = [cell for cell in dict.fromkeys((*CHOSEN, *(() if args.chosen else CELLS))) if cell not in done]
    if not args.dry:
        with ProcessPoolExecutor(args.workers) as pool, args.rows.open("a", encoding="utf-8") as file:
            for future in as_completed([pool.submit(measured, cell, wanted(cell)) for cell in cells]):
                known.append(future.result())
                file.write(json.dumps({**known[-1], "code": digest}) + "\n")
                file.flush()
    found = summed(known)
    print(*found["failed"], f"{len(found['failed'])} fail of {len(known)} cells", sep="\n", file=sys.stderr)
    if not args.dry and not args.chosen:
        import machine

        machine.save("interval_coverage", {**found, "resampled": [resampled(seeds) for seeds in SEEDS[1:]]})


if __name__ == "__main__":
    main()
