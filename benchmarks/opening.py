"""How long it takes to open a finished search of many values, whose choice a curve names: anew, and from the cache.

    uv run python benchmarks/opening.py FOLDER [--points 2000] [--seeds 3]

Makes the ledger in FOLDER, unless there is one, by the loops that a run has, with accuracies that are made up. Prints
seconds of wall and processor time, as JSON; writes nothing else.
"""

import argparse
import json
import os
import shutil
import time
from pathlib import Path

from listing import finish

from epsearch.findings import listing
from epsearch.ledger.location import ledger_url
from epsearch.preparation.build import build
from epsearch.study.kinds import Search

NAME = "many"


def make(out: Path, points: int, seeds: int) -> None:
    """One finished study of random values."""
    given = {"name": NAME, "strategy": "random", "out": out, "device": "cpu", "numeric_path": "cpu-float32-mkl"}
    given |= {"points": points, "repeats": 1, "seeds": seeds, "certify": 0, "dataset": "permuted_digits"}
    finish(build(Search, given))


def opened(out: Path) -> dict[str, float]:
    """Seconds that opening it takes."""
    began, worked = time.perf_counter(), time.process_time()
    listing.load(NAME, ledger_url(out), out)
    return {"seconds": time.perf_counter() - began, "of processors": time.process_time() - worked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    os.environ["EPSEARCH_CACHE"] = str(given.folder / "cache")
    if not (given.folder / "runs").exists():
        (given.folder / "runs").mkdir(parents=True)
        make(given.folder / "runs", given.points, given.seeds)
    shutil.rmtree(given.folder / "cache" / "choices", ignore_errors=True)
    anew, kept = opened(given.folder / "runs"), opened(given.folder / "runs")
    print(json.dumps({"points": given.points, "anew": anew, "from the cache": kept}, indent=1))


if __name__ == "__main__":
    main()
