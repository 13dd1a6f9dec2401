"""Many workers: what a study takes beside its cohorts, Ray with up to 16 workers that sleep, the driver with 512.

    uv run python benchmarks/cluster.py [--turns 3] [--only overhead ray virtual] [--storage URL] [--busy]

overhead: a search of the digits by Ray Tune on two cores: its wall time, the seconds of its cohorts, and the parts of
the start. ray: cohorts that sleep, and need no torch, so 16 workers fit on two cores. virtual: 64 and 512 workers that
pass virtual time, in cohorts whose times are those recorded by `overhead` (benchmarks/virtual.py).
Writes benchmarks/results/cluster.json; what --only leaves out stays as it was measured before.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import machine
import turns

WORKERS = (1, 2, 4, 8, 16)
MEMBER_SECONDS = 0.5  # that a member sleeps
GRID = {"strategy": "grid", "repeats": 1, "seeds": 10}
STUDIES = {
    "grid of 1,010 members": GRID | {"points": 101},
    "grid of 5,050 members": GRID | {"points": 505},
    "narrowing, 55 members a round": {},
}
# As one of the digits, ten times that, and one of MNIST at full size: 18,000 steps at 300 a second.
SECONDS = (0.3, 3.0, 60.0)
CASES = (
    *itertools.product(("grid of 1,010 members", "narrowing, 55 members a round"), (64,), SECONDS),
    ("grid of 5,050 members", 64, 60.0),
    ("grid of 1,010 members", 512, 60.0),
    ("narrowing, 55 members a round", 512, 60.0),
    ("grid of 5,050 members", 512, 60.0),
)


def overhead(turn_count: int) -> dict[str, Any]:
    """Of a search of the digits with two rounds: seconds by part, of every turn; and its cohorts' times."""
    searches = []
    for _ in range(turn_count):
        with tempfile.TemporaryDirectory() as folder:
            environment = machine.surroundings(Path(folder) / "cache")
            command = [sys.executable, str(Path(__file__).parent / "overhead.py"), folder, str(time.time())]
            answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            ended = time.time()
            one = json.loads(answer.stdout.splitlines()[-1])
            one["parts"]["end of the process"] = ended - one.pop("ended")
            one["wall"] = ended - one.pop("begun")
            searches.append(one)
            print(f"overhead: {one['wall']:.1f} s, compute {one['compute']:.1f} s on 2", file=sys.stderr)
    return {
        "wall": turns.summary([one["wall"] for one in searches]),
        "compute": turns.summary([one["compute"] for one in searches]),
        "share": turns.summary([one["compute"] / 2 / one["wall"] for one in searches]),
        "parts": {part: turns.summary([one["parts"][part] for one in searches]) for part in searches[0]["parts"]},
        "members": searches[0]["members"],
        "cohorts": searches[-1]["cohorts"],
        "turns": turn_count,
    }


def sleeping(config: dict[str, Any], **others: Any) -> None:
    """The place of `trainable.train`: sleeps for each member of the job, and reports what a trained one would."""
    from ray import tune

    from epsearch.loop.jobs import encode

    job, started = config["job"], Path(os.environ["STARTED"])
    # Tune hands a waiting cohort to a worker that is free, and takes back the start of another: all are to start first.
    (started / str(os.getpid())).touch()
    while len(os.listdir(started)) < int(os.environ["WORKERS"]):
        time.sleep(0.05)
    began = time.time()
    time.sleep(len(job.cohort.learners) * float(os.environ["MEMBER_SECONDS"]))
    value = encode(made_up(job))
    seen = {"pid": os.getpid(), "began": began, "ended": time.time()}
    tune.report(
        {
            "steps": 1,
            "value": value,
            "seconds": 1.0,
            "parameter_difference": 0.0,
            "machine": "",
            "self_check": "",
            "imported": 0.0,
            **seen,
        }
    )


def made_up(job: Any) -> Any:
    """The same accuracy for all."""
    from dataclasses import replace

    import numpy as np

    from trainers.cohort import CohortResult

    tasks, count = len(job.stream.tasks), len(job.cohort.learners)
    nowhere = np.full(count, -1)
    accuracies = np.where(np.tri(tasks, dtype=bool), np.linspace(0.5, 0.6, count)[:, None, None], np.nan)
    empty = CohortResult.empty(count, tasks)
    return replace(empty, accuracies=accuracies, diverged_task=nowhere, diverged_step=nowhere)


def real(turn_count: int) -> list[dict[str, Any]]:
    """Ray with workers that sleep: a row for each number of them, and a last one whose cohorts take no time."""
    from epsearch.runners.on_ray.private import PrivateRay

    rows = []
    for workers, seconds in (*((count, MEMBER_SECONDS) for count in WORKERS), (WORKERS[-1], 0.0)):
        searches = []
        for _ in range(turn_count):
            with tempfile.TemporaryDirectory() as started:
                os.environ |= {"MEMBER_SECONDS": str(seconds), "WORKERS": str(workers), "STARTED": started}
                own = PrivateRay(workers)
                try:
                    own.start()
                    own.join()
                    searches.append(_slept(workers))
                finally:
                    own.end()
        row = {key: turns.summary([one[key] for one in searches]) for key in searches[0]}
        rows.append({"workers": workers, "cohort_seconds": 2 * seconds, **row})
        print(f"ray: {rows[-1]}", file=sys.stderr)
    return rows


def _slept(workers: int) -> dict[str, float]:
    """One search of 4 cohorts of 2 members a worker."""
    import virtual

    from epsearch.runners.on_ray import trials

    trials.train = sleeping
    seen: list[dict[str, Any]] = []

    class Watched(trials.Source):
        def tell(self, attempts: Any) -> None:
            seen.extend(attempt.report for attempt in attempts)
            super().tell(attempts)

    with (
        tempfile.TemporaryDirectory() as folder,
        virtual.opened(_all_at_once(workers), Path(folder)) as (loop, monitor),
    ):
        loop.workers = workers
        source = Watched(loop, monitor)
        begun = time.time()
        trials.fit(source, Path(folder), workers, {"cpu": 1.0})
        wall = time.time() - begun
        if source.error is not None:
            raise source.error
    by_worker: dict[int, list[dict[str, Any]]] = {}
    for one in sorted(seen, key=lambda one: one["began"]):
        by_worker.setdefault(one["pid"], []).append(one)
    gaps = [after["began"] - before["ended"] for own in by_worker.values() for before, after in itertools.pairwise(own)]
    at_work = sum(own[-1]["ended"] - own[0]["began"] for own in by_worker.values())
    first, last = min(one["began"] for one in seen), max(one["ended"] for one in seen)
    return {
        "wall": wall,
        "to_last_worker": max(own[0]["began"] for own in by_worker.values()) - begun,
        "hand_over": statistics.median(gaps),
        "efficiency": sum(one["ended"] - one["began"] for one in seen) / at_work,
        "jobs_per_second": len(seen) / (last - first),
    }


def _all_at_once(workers: int) -> dict[str, Any]:
    """A grid that needs no evaluation: one stage."""
    return {"strategy": "grid", "repeats": 1, "seeds": 2, "points": 4 * workers, "score_on": "eval", "certify": 0}


def in_virtual_time(cohorts: list[dict[str, Any]], storage: str | None, busy: bool) -> list[dict[str, Any]]:
    """A row for each of CASES."""
    import virtual

    # Not the first of each of the two workers, which also load what is compiled: that is a part of their start.
    times = [one["member_seconds"] for one in cohorts if one["phase"] == "cv"][2:]
    ratios = [one / statistics.mean(times) for one in times]
    with tempfile.TemporaryDirectory() as folder:  # what is imported at first use is not the driver's work
        virtual.run({"name": "first", "points": 3, "repeats": 1, "seeds": 2}, 2, lambda job: 1.0, Path(folder))
    rows, clock = [], time.thread_time if busy else time.perf_counter
    for study, workers, seconds in CASES:
        with tempfile.TemporaryDirectory() as folder:
            name = {"name": f"case-{len(rows)}-{time.time_ns()}"}
            ran = virtual.run(
                STUDIES[study] | name, workers, virtual.recorded(ratios, seconds), Path(folder), storage, clock
            )
        rows.append({"study": study, "workers": workers, "member_seconds": seconds, **asdict(ran)})
        print(f"virtual: {rows[-1]}", file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=("overhead", "ray", "virtual"))
    parser.add_argument("--storage", help="URL of an empty ledger, for virtual")
    parser.add_argument(
        "--busy", action="store_true", help="virtual: the driver's processor time, not the wall clock's"
    )
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "overhead": lambda: overhead(arguments.turns),
        "ray": lambda: real(arguments.turns),
        "virtual": lambda: in_virtual_time(_stored()["overhead"]["cohorts"], arguments.storage, arguments.busy),
    }
    for part in parts if arguments.only is None else [one for one in parts if one in arguments.only]:
        load = round(os.getloadavg()[0], 2)
        figures = {part: parts[part]()} | (
            {"clock": "processor" if arguments.busy else "wall"} if part == "virtual" else {}
        )
        before = _stored()
        machine.save("cluster", before | figures | {"load_before": before.get("load_before", {}) | {part: load}})


def _stored() -> dict[str, Any]:
    """What was measured before, without the facts."""
    path = machine.RESULTS / "cluster.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: one for name, one in content.items() if name != "facts"}


if __name__ == "__main__":
    main()
