"""Commands on what has grown: a ledger of many studies, and a study of many members.

    uv run python benchmarks/grown.py FOLDER [--studies 500] [--values 1333] [--turns 3] [--before REVISION]

Makes both ledgers in FOLDER, unless they are there, by the loops that a run has, with accuracies that are made up:
studies of 2 rounds of 7 values and 2 seeds, a few of them searched by Gaussian processes; and one of random values with
3 seeds, whose choice a curve names. Each command is a process of its own, and an older revision takes turns with
it; processor seconds count, medians over the turns. Writes benchmarks/results/grown.json.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import machine
import numpy as np
from revisions import Revision

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

STRATEGIES = ("narrowing", "interval-ci", "grid", "random", "qmc", "tpe")
BY_PROCESS, SEEDS = 10, 3
FIRST, LARGE = f"{STRATEGIES[BY_PROCESS % len(STRATEGIES)]}-{BY_PROCESS}", "large"
COMMANDS = (
    ("list", "studies", "list", False),
    ("show, one of many", "studies", f"show {FIRST}", False),
    ("report, one of many", "studies", f"report {FIRST}", False),
    ("show", "members", f"show {LARGE}", False),
    ("show, the first time", "members", f"show {LARGE}", True),
    ("show --why", "members", f"show {LARGE} --why", False),
    ("report", "members", f"report {LARGE}", False),
    ("resume", "members", f"resume {LARGE}", False),
    ("export", "members", f"export {LARGE} copy.epsearch", False),
)
"""Name, ledger, arguments, and whether the choice must not be in the cache."""


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


def make(out: Path, **options: object) -> None:
    """Stores a study with made-up results, to its end."""
    fixed = {"device": "cpu", "numeric_path": "cpu-float32-mkl", "dataset": "permuted_digits"}
    study = build(Search, {**fixed, "out": out, **options})
    images = open_evaluation(study)[0].describe()
    with Store.open(study.storage) as store:
        history.save(store, study, images, Disjointness(), extend=False)
        loop = make_loop(study, images, store)
        sum_up(loop, store.study(study.name))
        while not loop.done:
            loop.tell([made_up(job) for job in loop.ask()])


def ledgers(folder: Path, studies: int, values: int) -> None:
    """Makes both ledgers, unless they are there."""
    many, large = folder / "studies", folder / "members"
    if not many.exists():
        many.mkdir(parents=True)
        for number in range(studies):
            strategy = "gp" if number < BY_PROCESS else STRATEGIES[number % len(STRATEGIES)]
            # The learning rate makes each study's members its own.
            own = {"name": f"{strategy}-{number}", "strategy": strategy, "lr": round(0.01 + 0.0001 * number, 6)}
            make(many, repeats=2, points=7, seeds=2, **own)
    if not large.exists():
        large.mkdir(parents=True)
        make(large, name=LARGE, strategy="random", points=values, repeats=1, seeds=SEEDS, certify=0)


def seconds(revision: Revision, ledger: str, arguments: str) -> float:
    """Returns the processor seconds of a command."""
    began = getrusage(RUSAGE_CHILDREN)
    revision.run([*arguments.split(), "--out", ledger])
    ended = getrusage(RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def measured(folder: Path, names: list[str], turns: int) -> list[dict[str, Any]]:
    """Returns a row a command, with the seconds of each revision at each turn; a first turn is left out."""
    rows = []
    with TemporaryDirectory() as around:
        revisions = {name: Revision(name, Path(around) / str(number)) for number, name in enumerate(names)}
        for number in range(len(names)):
            shutil.copytree(folder, Path(around) / str(number) / "work")
        for name, ledger, arguments, anew in COMMANDS:
            seen: dict[str, list[float]] = {one: [] for one in names}
            for _ in range(turns + 1):
                for number, (one, revision) in enumerate(revisions.items()):
                    if anew:
                        shutil.rmtree(Path(around) / str(number) / "cache" / "choices", ignore_errors=True)
                    seen[one].append(seconds(revision, ledger, arguments))
            rows.append({"command": name, "ledger": ledger, "seconds": {one: all_[1:] for one, all_ in seen.items()}})
            print(name, {one: round(median(all_[1:]), 2) for one, all_ in seen.items()}, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--values", type=int, default=1333, help="of the study of many members; three of each")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--before", metavar="REVISION", help="a git revision to measure beside")
    parser.add_argument("--file", type=Path, help="of the figures, another one than that of the page")
    arguments = parser.parse_args()
    ledgers(arguments.folder, arguments.studies, arguments.values)
    names = [arguments.before, "."] if arguments.before else ["."]
    rows = measured(arguments.folder, names, arguments.turns)
    sizes = {"studies": arguments.studies, "members": SEEDS * arguments.values, "turns": arguments.turns}
    machine.save("grown", {**sizes, "before": arguments.before, "rows": rows}, arguments.file)


if __name__ == "__main__":
    main()
