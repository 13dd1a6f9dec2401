"""How long `epsearch list` takes on a ledger of many studies, of which some were searched by Gaussian processes.

    uv run python benchmarks/listing.py FOLDER [--studies 200] [--gp 10]

Makes the ledger in FOLDER, unless there is one, by the loops that a run has, with accuracies that are made up: every
study is finished, of 5 rounds of 11 values and 5 seeds. Prints seconds, as JSON; writes nothing else.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from epsearch.findings import listing
from epsearch.ledger.location import ledger_url
from epsearch.loop.jobs import Job, JobResult
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.session.confirmation import sum_up
from epsearch.session.session import make_loop
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Search
from results.ledger.store import Store
from trainers.cohort import CohortResult

OTHERS = ("narrowing", "interval-ci", "grid", "random", "qmc", "tpe")


def made_up(job: Job) -> JobResult:
    """A parabola of ε with its top at 0.3, and noise by seed."""
    tasks, members = len(job.stream.tasks), job.cohort.learners
    points = [(one.seed, one.hyperparameters.epsilon) for one in members]
    noise = [np.random.default_rng([seed, round(1e9 * epsilon)]).normal(0, 0.003) for seed, epsilon in points]
    values = [0.8 - 0.1 * (epsilon - 0.3) ** 2 + shift for (_, epsilon), shift in zip(points, noise, strict=True)]
    accuracies = np.where(np.tri(tasks, dtype=bool), np.array(values)[:, None, None], np.nan)
    nowhere = np.full(len(members), -1)
    empty = CohortResult.empty(len(members), tasks)
    return JobResult(
        job.number, replace(empty, accuracies=accuracies, diverged_task=nowhere, diverged_step=nowhere), 1.0
    )


def make(out: Path, name: str, strategy: str, rate: float) -> None:
    """One finished study; the learning rate makes its members its own."""
    given = {"name": name, "strategy": strategy, "lr": rate, "out": out, "device": "cpu"}
    finish(build(Search, given | {"numeric_path": "cpu-float32-mkl", "dataset": "permuted_digits"}))


def finish(study: Search) -> None:
    """Stores a study with made-up results, to its end."""
    images = open_evaluation(study)[0].describe()
    with Store.open(study.storage) as store:
        history.save(store, study, images, Disjointness(), extend=False)
        loop = make_loop(study, images, store)
        sum_up(loop, store.study(study.name))
        while not loop.done:
            loop.tell([made_up(job) for job in loop.ask()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--gp", type=int, default=10, help="those of them with the strategy gp")
    given = parser.parse_args()
    if not given.folder.exists():
        given.folder.mkdir(parents=True)
        for number in range(given.studies):
            strategy = "gp" if number < given.gp else OTHERS[number % len(OTHERS)]
            make(given.folder, f"{strategy}-{number}", strategy, round(0.01 + 0.0001 * number, 6))
    url = ledger_url(given.folder)
    started = time.perf_counter()
    rows = listing.list_studies(url, given.folder)
    listed = time.perf_counter()
    command = [sys.executable, "-m", "epsearch", "list", "--json", "--out", str(given.folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - listed
    found = {"studies": len(rows), "seconds after start-up": listed - started, "seconds of the command": whole}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
