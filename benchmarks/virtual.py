"""A study's own driver under Ray Tune's searcher, with workers that only pass virtual time: 64 or 512 need no cluster.

Real are the searcher, the source, the loop, the monitor and the ledger with its lease, so claims are made, too. What
they take by the wall clock is added to the virtual time, one call after the other, as Tune calls them in one thread.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from grown import made_up

from epsearch.events import ignore
from epsearch.loop.jobs import Job, encode
from epsearch.loop.search import SearchLoop
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.runners.on_ray.trials import Source
from epsearch.runners.progress import Monitor
from epsearch.session.lease import hold
from epsearch.session.session import make_loop, sum_up
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Search
from results.ledger.store import Store
from search_spaces.adapters.ray_tune import AskTellSearcher

Seconds = Callable[[Job], float]
Clock = Callable[[], float]


@dataclass
class Ran:
    """What one study took, in virtual seconds."""

    search: float
    """To the end of its last round."""
    whole: float
    """To the end of the evaluation."""
    busy_search: float
    """Of all workers together, up to the end of the last round."""
    busy: float
    """Of all workers together."""
    bound: float
    """Of the whole: no schedule on so many workers is shorter, as a round waits for the one before; see `bound`."""
    driver: float
    """Seconds of the driver's own work."""
    jobs: int
    members: int


def run(
    options: dict[str, Any],
    workers: int,
    seconds: Seconds,
    folder: Path,
    storage: str | None = None,
    clock: Clock = time.perf_counter,
) -> Ran:
    """Trains a made-up study with so many workers.

    options: of `epsearch run`; seconds: what each member of a job takes; folder, storage: where its ledger is; clock:
    by which the driver's work takes its time, on a busy machine `time.thread_time`.
    """
    with opened(options, folder, storage) as (loop, monitor):
        loop.workers = workers
        source = Source(loop, monitor)
        ran = _Cluster(loop, source, workers, seconds, clock).run()
        if source.error is not None:
            raise source.error
        return ran


@contextmanager
def opened(options: dict[str, Any], folder: Path, storage: str | None = None) -> Iterator[tuple[SearchLoop, Monitor]]:
    """The loop of a new study, which is held, and its monitor; arguments as of `run`."""
    study = build(
        Search,
        {"dataset": "permuted_digits", "numeric_path": "cpu-float32-mkl", "device": "cpu", "out": folder}
        | ({"storage": storage} if storage else {})
        | options,
    )
    images = open_evaluation(study)[0].describe()
    with Store.open(study.storage) as store, hold(store, study.name, ignore) as held:
        history.save(store, study, images, Disjointness(), extend=False)
        loop = make_loop(study, images, store)
        assert isinstance(loop, SearchLoop)
        held.runs()
        sum_up(loop, store.study(study.name))
        yield loop, Monitor(loop, held.listener)


class _Cluster:
    """Workers that pass virtual time, and the driver, which is busy by the wall clock."""

    def __init__(self, loop: SearchLoop, source: Source, workers: int, seconds: Seconds, clock: Clock) -> None:
        self._loop, self._source, self._workers, self._seconds = loop, source, workers, seconds
        self._clock = clock
        self._searcher = AskTellSearcher(source, lambda job: {"number": job.number, "job": job}, lambda *pair: pair)
        self._now = self._driver = 0.0
        self._jobs: list[tuple[float, float, Job]] = []  # begin, end, what

    def run(self) -> Ran:
        running: list[tuple[float, str, Job]] = []  # the end of a job, its trial, what it trains
        ended = 0.0  # of the search
        trial, over = 0, False
        while True:
            while len(running) < self._workers and not over:
                trial += 1
                config = self._timed(self._searcher.suggest, str(trial))
                if not isinstance(config, dict):
                    over = config is not None
                    break
                job = config["job"]
                taken = len(job.cohort.learners) * self._seconds(job)
                heapq.heappush(running, (self._now + taken, str(trial), job))
                self._jobs.append((self._now, self._now + taken, job))
            if not running:
                break
            end, name, job = heapq.heappop(running)
            self._now = max(self._now, end)
            result = made_up(job)
            report = {
                "value": encode(result.value),
                "seconds": 1.0,
                "parameter_difference": 0.0,
                "machine": "",
                "self_check": "",
                "imported": 0.0,
            }
            self._timed(self._searcher.on_trial_complete, name, report)
            ended = ended or (self._now if self._loop.evaluating else 0.0)
        members = sum(len(job.cohort.learners) for _, _, job in self._jobs)
        return Ran(
            search=ended,
            whole=self._now,
            busy_search=sum(min(end, ended) - begin for begin, end, _ in self._jobs if begin < ended),
            busy=sum(end - begin for begin, end, _ in self._jobs),
            bound=bound([(job, end - begin) for begin, end, job in self._jobs], self._workers),
            driver=self._driver,
            jobs=len(self._jobs),
            members=members,
        )

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        begun = self._clock()
        answer = call(*arguments)
        taken = self._clock() - begun
        self._now += taken
        self._driver += taken
        return answer


def bound(jobs: list[tuple[Job, float]], workers: int) -> float:
    """The shortest time in which so many workers can train these jobs, each given with its seconds.

    A round takes at least its longest member, and at least its work shared out evenly; so does the evaluation. The
    baseline may be trained beside any round, so it counts in the work of the whole alone.
    """
    stages: dict[str, list[tuple[Job, float]]] = {}
    for job, seconds in jobs:
        if job.phase == "cv" or job.stage == "evaluation":
            stages.setdefault(job.stage, []).append((job, seconds))
    least = sum(
        max(max(seconds / len(job.cohort.learners) for job, seconds in stage), _work(stage) / workers)
        for stage in stages.values()
    )
    return max(least, _work(jobs) / workers)


def _work(jobs: list[tuple[Job, float]]) -> float:
    return sum(seconds for _, seconds in jobs)


def recorded(ratios: list[float], mean: float, seed: int = 0) -> Seconds:
    """What a member of a job takes: a recorded cohort's, drawn at random, at so many seconds in the mean.

    A member of the evaluation trains more tasks, and takes longer by their number.
    """
    rng = np.random.default_rng(seed)

    def of(job: Job) -> float:
        return mean * float(rng.choice(ratios)) * (len(job.stream.tasks) / 3)

    return of
