"""ε-SOFT-GEM on real CIFAR-100: the paper's search, `kg`, and the evaluation of six methods on seventeen tasks.

    uv run python benchmarks/split_cifar.py --data-dir FOLDER [--workers 2] [--until SECONDS]

Trains members one at a time, as `epsearch run` and `epsearch compare` train them. The accuracy matrix of each is in
benchmarks/results/split_cifar.json as soon as it is finished, and the searches are replayed from that file: the same
command continues where it stopped, also in another clone. Ten members of the search are trained once more from starts
moved by 1e-7 of themselves: how far their A_T moves is the rounding noise. A member of a search takes some minutes of
one core, one of the evaluation an hour or more; run it in the background (`nice -n 19`), and pause its process group
(`kill -STOP -PGID`) while anything is timed.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np
from members import go_on, leave_with_parent
from parabola import number

from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Certify, Job, execute
from epsearch.loop.strategy_driver.driver import StrategyDriver
from epsearch.loop.table import table_rows
from epsearch.preparation.build import build
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, Search
from results.files import write_atomically
from results.ledger.record import RunRecord
from trainers import Cohort, Learner
from trainers.streams import DataError

PATH = "cpu-float32-onednn"  # members one after another, so that each is the same alone and in any cohort
SEARCHES = ("narrowing", "kg")
METHODS = ("van", "ewc", "agem", "soft_agem", "er", "a_agem")
SEEDS = (0, 1, 2)
"""Seeds of the evaluation; the searches have the five of the paper."""
PRINTED = 0.5
"""ε of the paper's table."""
MOVED = (0.0, PRINTED)
"""Values that are trained from moved starts, too."""
MEASURED = ("accuracies", "initial", "within", "violations")
"""Matrices of a member."""


class Sizes(NamedTuple):
    """Sizes that are smaller in a try-out than in the paper; None for the values of the definition."""

    examples_per_task: int | None = None
    tasks: int = 20
    points: int = 7
    repeats: int = 5
    seeds: int = 5


TINY = Sizes(examples_per_task=20, tasks=5, points=3, repeats=1, seeds=2)


class Member(NamedTuple):
    """A learner on the stream of the search (`cv`) or of the evaluation (`eval`)."""

    phase: str
    method: str
    epsilon: float | None
    """None where the method has none."""
    seed: int
    moved: bool = False
    """True for a start that is moved by 1e-7 of itself."""


class Studies:
    """The studies whose members are trained.

    data_dir: the folder of the images; sizes: those of the studies.
    """

    def __init__(self, data_dir: str, sizes: Sizes) -> None:
        shared = {"dataset": "split_cifar", "data_dir": data_dir, "numeric_path": PATH, "tasks": sizes.tasks}
        shared |= {"examples_per_task": "all" if sizes.examples_per_task is None else sizes.examples_per_task}
        own = {"points": sizes.points, "repeats": sizes.repeats, "seeds": sizes.seeds}
        self.searches = [build(Search, shared | own | {"strategy": name}) for name in SEARCHES]
        self.comparison = build(Comparison, shared | {"methods": ",".join(METHODS), "seeds": len(SEEDS)})

    def learner(self, member: Member) -> Learner:
        """Returns the learner of a member, with the published values of its method."""
        if member.method == "soft_agem":
            return self.searches[0].learner((member.epsilon,), member.seed)
        row = next(row for row in table_rows(self.comparison) if row.method == member.method)
        return row.learner(member.seed)

    def study(self, member: Member) -> Study:
        """Returns the study that defines a member's stream."""
        return self.searches[0] if member.phase == "cv" else self.comparison


def missing(studies: Studies, members: Sequence[dict[str, Any]]) -> Iterator[Member]:
    """Returns the members that can be trained now, in the order of their worth.

    The paper's search comes first, then moved starts and the evaluation, also of the value that the search names. `kg`
    is last: no two of the first 17 values differ by more than chance explains, so that a rule that looks more closely
    at the best of them has the least to say.
    """
    stored = {member_of(one): record_of(one) for one in members}
    (rounds, choice), (further, other) = (replay(study, stored) for study in studies.searches)
    moved = [Member("cv", "soft_agem", value, seed, True) for value in MOVED for seed in studies.searches[0].seeds]
    wanted = [*rounds, *moved, *evaluated(METHODS, choice), *further, *evaluated(("soft_agem",), other)]
    return (one for one in dict.fromkeys(wanted) if one not in stored)


def evaluated(methods: Sequence[str], choice: float | None) -> Iterator[Member]:
    """Returns the members of the evaluation; choice: the value that a search names, None before.

    ε = 0 is A-GEM, which is trained once.
    """
    for method in methods:
        values = [PRINTED, *([choice] if choice else [])] if method == "soft_agem" else [None]
        yield from (Member("eval", method, value, seed) for value in values for seed in SEEDS)


class Waiting(Iterator[Member]):
    """Members to train next, each once; `members` grows meanwhile, and results open further rounds.

    A generator would end for good where all open members are being trained.
    """

    def __init__(self, studies: Studies, members: list[dict[str, Any]]) -> None:
        self._studies, self._members, self._begun = studies, members, set[Member]()

    def __next__(self) -> Member:
        following = next(one for one in missing(self._studies, self._members) if one not in self._begun)
        self._begun.add(following)
        return following


def replay(study: Search, stored: dict[Member, RunRecord]) -> tuple[list[Member], float | None]:
    """Returns the open members of a search, and the value that it names once it is done, else None."""

    def find(point: Sequence[Any], seed: int) -> RunRecord | None:
        return stored.get(Member("cv", "soft_agem", float(point[0]), seed))

    driver = StrategyDriver(study, find)
    while not driver.strategy.done:
        wanted = [(point, seed) for point, seeds in driver.open_seeds().items() for seed in seeds]
        open_members = [Member("cv", "soft_agem", float(point[0]), seed) for point, seed in wanted]
        if not all(one in stored for one in open_members):
            return open_members, None
        driver.strategy.tell(driver.observations())
    best = driver.strategy.best
    assert best is not None
    return [], float(best.point[0])


def member_of(entry: dict[str, Any]) -> Member:
    """Returns the member to which an entry of the file belongs."""
    return Member(**{name: entry[name] for name in Member._fields if name in entry})


def record_of(entry: dict[str, Any]) -> RunRecord:
    """Returns the record of an entry, as far as searches and tables read it: its status and what was measured."""
    measured = {name: np.array(entry[name], dtype=np.float64) for name in MEASURED}  # null becomes NaN
    return RunRecord(
        key="",
        phase=entry["phase"],
        method=entry["method"],
        epsilon=entry["epsilon"] or 0.0,
        seed=entry["seed"],
        **measured,
        status=entry["status"],
        diverged_task=0 if entry["status"] == "diverged" else None,
        diverged_step=0 if entry["status"] == "diverged" else None,
        steps=entry["steps"],
        seconds=entry["seconds"],
        content={},
        created="",
        fingerprint=entry["fingerprint"],
        cohort="",
    )


class Train(NamedTuple):
    """Trains a member in a process of its own."""

    data_dir: str
    sizes: Sizes
    workers: int

    def __call__(self, member: Member) -> dict[str, Any]:
        """Returns the entry of a member: its matrices as lists, null where nothing was measured."""
        studies = Studies(self.data_dir, self.sizes)
        study = studies.study(member)
        job = Job(
            number=0,
            stage="",
            phase=member.phase,
            cohort=Cohort((studies.learner(member),)),
            architecture=study.architecture,
            stream=study.request(member.phase),
            path=PATH,
            transfer=measures_transfer(member.phase),
            weights=(),  # progress is not reported
            at_once=self.workers,
            certify=Certify((), "", perturbed=True) if member.moved else None,
        )
        result = execute(job)
        value = result.value
        assert value is not None
        matrices = {name: plain(getattr(value, name)[0]) for name in MEASURED}
        status = "diverged" if value.diverged_task[0] >= 0 else "ok"
        facts = {"steps": int(value.steps[0]), "seconds": round(result.seconds, 1)}
        return {**member._asdict(), "status": status, **facts, "fingerprint": str(value.fingerprints[0]), **matrices}


def plain(values: np.ndarray) -> Any:
    """Returns an array as nested lists, with None for NaN."""
    return [plain(one) for one in values] if values.ndim else number(float(values))


def write(file: Path, content: dict[str, Any]) -> None:
    """Writes one line a member, sorted, so that two versions are easy to compare."""
    head = json.dumps({name: value for name, value in content.items() if name != "members"}, indent=1)
    members = sorted(content["members"], key=lambda one: tuple(value or 0 for value in member_of(one)))
    lines = ",\n".join(f"  {json.dumps(one)}" for one in members)
    write_atomically(file, f'{head[:-2]},\n "members": [\n{lines}\n ]\n}}\n'.encode())


def make(file: Path, data_dir: str, sizes: Sizes, workers: int, until: float) -> None:
    """Trains the members that the file lacks. Raises DataError without CIFAR-100, ValueError for other sizes."""
    fresh = {"sizes": sizes._asdict(), "seeds": list(SEEDS), "numeric_path": PATH, "members": []}
    content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else fresh
    if any(content[name] != fresh[name] for name in ("sizes", "seeds", "numeric_path")):
        raise ValueError(f"{file.name} has members of other sizes; move it away to begin anew")
    studies, facts, end = Studies(data_dir, sizes), machine.facts(), time.monotonic() + until
    studies.comparison.request("eval").open()  # decoded once, before there are processes
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=leave_with_parent) as pool:
        waiting, train = Waiting(studies, content["members"]), Train(data_dir, sizes, workers)
        for member, entry in go_on(waiting, pool, workers, train, end - time.monotonic()):
            content["members"].append({**entry, "commit": facts["commit"]})
            write(file, {"facts": facts, **{name: value for name, value in content.items() if name != "facts"}})
            accuracy = (
                "diverged" if entry["status"] == "diverged" else f"A_T {100 * np.mean(entry['accuracies'][-1]):.2f}"
            )
            print(f"{len(content['members'])}: {member}, {accuracy}, {entry['seconds']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="the folder that has CIFAR-100")
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument(
        "--until", type=float, default=float("inf"), metavar="SECONDS", help="after which no member is begun"
    )
    parser.add_argument("--tiny", type=Path, metavar="FILE", help="tries all of it with 20 images a task, into FILE")
    options = parser.parse_args()
    file, sizes = (options.tiny, TINY) if options.tiny else (machine.RESULTS / "split_cifar.json", Sizes())
    try:
        make(file, options.data_dir, sizes, options.workers, options.until)
    except (DataError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
