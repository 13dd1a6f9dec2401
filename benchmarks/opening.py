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

from listing import made_up

from epsearch.findings import listing
from epsearch.ledger.location import ledger_url
from epsearch.preparation import growth
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.session.session import make_loop, sum_up
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Search
from results.ledger.store import Store

NAME = "many"


def make(out: Path, points: int, seeds: int) -> None:
    """One finished study of random values."""
    given = {"name": NAME, "strategy": "random", "out": out, "device": "cpu", "numeric_path": "cpu-float32-mkl"}
    given |= {"points": points, "repeats": 1, "seeds": seeds, "certify": 0, "dataset": "permuted_digits"}
    study = build(Search, given)
    images = open_evaluation(study)[0].describe()
    with Store.open(study.storage) as store:
        growth.keep(store, study, images, Disjointness(), extend=False)
        loop = make_loop(study, images, store)
        sum_up(loop, store.study(study.name))
        while not loop.done:
            loop.tell([made_up(job) for job in loop.ask()])


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
