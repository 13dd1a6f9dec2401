"""Base of all loops: members -> cohorts -> jobs -> records.

A loop has an ask/tell interface: `ask()` returns the open jobs of the stage, `tell()` takes results in any order and
stores them first. Its state is derived from the ledger, so opening it anew resumes the work. Making one reads nothing:
see `open_search`.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

from epsearch.failures.errors import TrainingFailed, UsageError
from epsearch.ledger.evaluation_log import EvaluationLog
from epsearch.loop.claims import Claims
from epsearch.loop.cohorts import CohortRuns, Kind, cut, kind_of
from epsearch.loop.content import content, further_tasks, measure_of, measures_transfer, records, run_key
from epsearch.loop.estimates import MemberCounts
from epsearch.loop.jobs import Job, JobResult, Prefix, Run, checkpoint_names, delete_checkpoints
from epsearch.loop.work import Work
from epsearch.plugins.loading import of_workers
from epsearch.study.description import Disjointness, Study
from results.ledger.record import Certificate, RunRecord, Summary
from search_spaces.space import Value
from search_spaces.strategy import Best
from trainers.cohort import Cohort
from trainers.forks import cut_of
from trainers.notes import redirect_notes
from trainers.plugins.source import SOURCE
from trainers.streams import StreamRequest
from trainers.streams.base import TaskStream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


LOGS = "logs"
"""Folder of a study's folder, for the output of plug-in trainers."""


class Loop(ABC):
    """Base of loops; subclasses choose the members of a stage.

    study      the study to train
    images     the stream's description, which is part of every key
    store      the ledger; only this process writes to it
    """

    def __init__(self, study: Study, images: Mapping[str, Any], store: "Store") -> None:
        self.study = study
        self.workers = 1  # jobs that are trained at a time, as the runner sets it
        self.fitting: Callable[[Job], list[int]] | None = None  # of a job's members, how many fit on each worker's GPU
        self.records: dict[str, RunRecord] = {}
        self.reused = 0  # members that were stored before
        self.stored: list[RunRecord] = []  # members trained since
        self.certificates: dict[str, Certificate] = {}
        self.new_certificates = 0  # those that were not stored before
        self.imports: list[float] = []  # seconds in which workers have imported a plug-in trainer
        self.saved = 0  # member-steps saved, as members share their first task
        self.notify: Callable[[str], object] = str  # called with lines for the user, after results are stored
        self.damaged: dict[str, str] = {}  # unusable records, some trained again since
        self.was_finished = False  # whether its stored state is that of a finished study
        self.disjointness = Disjointness()  # stored proof that search and evaluation are disjoint
        self.evaluation_log = EvaluationLog()  # of all ledgers of this user
        self.stored_at = ""  # time at which the study was stored first, ISO-8601 in UTC; "" for one that is not stored
        self.row = ""  # checksum of the study's row; if set, the study's summary in the ledger is kept up to date
        self.images, self._store = dict(images), store
        self._jobs, self._numbers = dict[int, Job](), itertools.count()
        self._members = lru_cache(1)(self._find_members)  # computed several times for each cohort
        self._key = cache(partial(run_key, study, self.images))  # used at every report, and a hash of much JSON
        self.claims = Claims(store, self._key)
        self._measure = partial(measure_of, study, self.images)
        self._counted = Work(study, self._request, self._measure)
        self._work = self._counted.of

    @property
    def trained(self) -> int:
        """Members trained since the loop was made."""
        return len(self.stored)

    @property
    def best(self) -> Best | None:
        """The best point so far; None without a search."""
        return None

    @property
    def inert(self) -> bool:
        """True if all values have equal scores, bit for bit."""
        return False

    @property
    def seen_tasks(self) -> int | None:
        """How many first tasks of the evaluation choose; None for all, or for tasks of the search."""
        return None

    def claimable(self) -> dict[str, list[Run]]:
        """Returns the runs of the evaluation by the name that a claim has for them, as far as they are known."""
        return {}

    def choice(self) -> dict[str, Value] | None:
        """Returns the best point so far, by names of hyperparameters."""
        return None

    @property
    @abstractmethod
    def done(self) -> bool:
        """True if nothing is left to train."""

    @property
    @abstractmethod
    def stage(self) -> str:
        """The stage, in words."""

    @abstractmethod
    def headline(self) -> str:
        """Returns the best result so far, in words."""

    @abstractmethod
    def heading(self) -> str:
        """Returns the size of the study, in words."""

    @abstractmethod
    def counts(self) -> MemberCounts:
        """Returns the numbers of stored and remaining members."""

    @abstractmethod
    def remaining(self) -> list[tuple[int, list[Run]]]:
        """Returns, for each stream, the largest number of remaining members, and examples of them."""

    @abstractmethod
    def work_of(self, counts: MemberCounts) -> tuple[float, float, float]:
        """Returns the smallest, the usual and the largest remaining work, in FLOP."""

    def usual_points(self, *strategies: str) -> tuple[int | None, ...]:
        """Returns the usual number of points of a search by each strategy ("": its own); None where there is none."""
        return (None,) * len(strategies)

    @abstractmethod
    def scores(self) -> "NDArray[np.float64]":
        """Returns A_T [K, R] in [0, 1] of K points or rows and R seeds, NaN if unknown."""

    @abstractmethod
    def _stage_runs(self) -> list[Run]:
        """Returns all members of the current stage."""

    @abstractmethod
    def _advance(self) -> None:
        """Advances through the stages whose records are in the ledger.

        It is called after every `tell`, and must do nothing while jobs of the stage are open.
        """

    def catch_up(self) -> Self:
        """Advances through the stages whose records are in the ledger; returns itself."""
        self._advance()
        return self

    def ask(self) -> list[Job]:
        """Returns the open jobs that may be trained now, the same ones until `tell` has their results.

        There may be none while other studies train the same members: a later call has their results, or jobs. With
        claims there are at most as many jobs as workers. Raises TrainingFailed where only failed jobs are left.
        """
        if not self._jobs and self.claims.due():
            self._advance()
        if self.done:
            return []
        if not self._jobs:
            self._jobs = self._number_jobs(self._stage_cohorts(self.workers))
        return self.claims.of((self._jobs, self._early_jobs), self.workers)

    def upcoming(self, workers: int) -> list[Job]:
        """Returns the next jobs for a number of workers, numbered from 0, without opening them."""
        cohorts = [] if self.done else [*self._stage_cohorts(workers), *self._early()]
        return [self._job(number, cohort, workers) for number, cohort in enumerate(cohorts)]

    def checkpoints(self) -> set[str]:
        """Returns the names of the checkpoints of the missing members of this stage, and of early ones."""
        return {name for job in self.upcoming(1) for name in checkpoint_names(job, self._job_stream(job))}

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores results, and advances when the stage is complete.

        Results may come in any order. A job without a value has failed, see `ask`. Raises UsageError where code of a
        plug-in failed, TrainingFailed where the machine failed, for all jobs alike.
        """
        lines: list[str] = []
        try:
            for result in results:
                self._process(result, lines)
        finally:  # also lines of results before one that ends the study
            for line in lines:
                self.notify(line)
        if not self._jobs:  # else the stage continues, and the results were stored with a summary
            # Only now: after a crash in between, a loop that is opened anew finds the stage from the ledger.
            self._advance()
            self.sum_up()

    def _process(self, result: JobResult, lines: list[str]) -> None:
        """Stores a result, and appends the lines for the user. Raises as `tell`."""
        if result.foreign or result.stops:
            raise (UsageError if result.foreign else TrainingFailed)(result.error)
        if result.value is None:
            lines.append(self.claims.give_up(result))
            return
        self.saved += result.value.saved
        self.imports += [result.imported] if result.imported else []
        lines += result.value.note.splitlines()
        job = self._close(result.number)
        self._store_result(job, result)
        if job.certify is None and not self._continues(job):
            self._delete_checkpoints(job, lines)

    def _continues(self, job: Job) -> bool:
        """Returns whether others may go on with what is kept of a job's members: here, those on further tasks."""
        return job.until is not None and job.prefix is None

    def _delete_checkpoints(self, job: Job, lines: list[str]) -> None:
        """Removes what is kept of a job's members; appends lines for the user."""
        with redirect_notes(lines.append):
            delete_checkpoints(job, self._job_stream(job))

    def _job_stream(self, job: Job) -> TaskStream:
        return self._counted.stream(job.phase, job.order, further_tasks(self.study, job.runs[0]))

    def _delete_kept(self, runs: Iterable[Run]) -> None:
        """Removes what is kept of runs, for whatever might have gone on from it."""
        kinds, lines = dict[Kind, list[Run]](), list[str]()
        for run in runs:
            kinds.setdefault(kind_of(run), []).append(run)
        for alike in kinds.values():
            self._delete_checkpoints(self._job(0, (alike, None), 1), lines)
        for line in lines:
            self.notify(line)

    def sum_up(self) -> None:
        """Writes the summary to the ledger."""
        if (now := self.summary()) is not None:
            self._store.sum_up(now)

    def summary(self) -> Summary | None:
        """Returns the summary for `epsearch list`; None where the study is not stored."""
        if not self.row:
            return None
        status = self.state() + (f", {len(self.unused_records())} damaged" if self.unused_records() else "")
        best = self.best
        score = None if best is None else best.value
        return Summary(self.study.name, self.row, status, self.choice(), score, self.inert)

    def stage_members(self) -> tuple[int, int]:
        """Returns the numbers of stored and of all members of this stage; members with equal keys count once."""
        count, missing = self._members(len(self.records), self.stage)
        return count - len(missing), count

    def stage_tasks(self) -> tuple[str, int] | None:
        """Returns stream and tasks of each member of this stage; None without a plug-in trainer."""
        runs = self._stage_runs() if self.study.foreign else []
        return (runs[0].phase, len(self.study.stream_tasks(runs[0].phase))) if runs else None

    def missing(self) -> list[Run]:
        """Returns the missing members of the present stage."""
        return self._members(len(self.records), self.stage)[1]

    def unused_records(self) -> dict[str, str]:
        """Returns a map from the key of each damaged record that was not replaced to the reason."""
        return {key: why for key, why in self.damaged.items() if key not in self.records}

    def state(self) -> str:
        """Returns the state for `epsearch list`: finished, or the stage with its progress."""
        if self.done:
            return "finished"
        trained, members = self.stage_members()
        return f"{self.stage}: {trained} of {members} members trained"

    def records_of(self, runs: Iterable[Run]) -> tuple[RunRecord, ...]:
        """Returns the stored records of runs, in the order of the runs.

        Runs with the same result have the same record, once for each run.
        """
        return tuple(self.records[key] for key in map(self._key, runs) if key in self.records)

    def cost_of(self, run: Run, since: int | None = None) -> tuple[float, float]:
        """Returns FLOP and SGD steps of the tasks that a run trains, see `Work.cost`."""
        return self._counted.cost(run, since)

    def job_work(self, job: Job) -> float:
        """Returns the work of a job, in FLOP; for plug-in trainers its number of tasks."""
        return sum(map(self._work, job.runs))

    def _find_members(self, stored: int, stage: str) -> tuple[int, list[Run]]:
        """Returns the number of members of the stage, and the missing ones; members with equal keys count once."""
        runs = self._stage_runs()
        return len(set(map(self._key, runs))), self._unstored_runs(runs)

    @cached_property
    def _early_jobs(self) -> dict[int, Job]:
        """Open jobs of later stages."""
        # Opened once: they are not stored while they are trained, and would be opened again.
        return self._number_jobs(self._early())

    def _stage_cohorts(self, workers: int) -> list[CohortRuns]:
        """Returns the cohorts of the stage, for a number of workers."""
        return self._cohorts(self.missing(), workers)

    def _early(self) -> list[CohortRuns]:
        """Returns cohorts that may be trained before their stage begins."""
        return []

    def _close(self, number: int) -> Job:
        """Removes the open job of that number, and returns it."""
        return (self._jobs if number in self._jobs else self._early_jobs).pop(number)

    def _store_result(self, job: Job, result: JobResult) -> None:
        """Stores the records of a job, with the new summary of the study."""
        fresh = records(job, result, [content(self.study, self.images, run) for run in job.runs])
        # First, as the summary that is stored with these records counts them.
        self.records.update((record.key, record) for record in fresh)
        self._store.add(fresh, self.summary())
        self.evaluation_log.add(fresh)
        self.stored += fresh

    def _unstored_runs(self, runs: Iterable[Run]) -> list[Run]:
        """Returns runs without a record; of several with the same result, the first."""
        # Of equal keys a dict keeps the last value: from the end, that is the first run.
        by_key = {self._key(run): run for run in reversed(list(runs))}
        return [run for key, run in reversed(by_key.items()) if key not in self.records]

    def _read(self, runs: Iterable[Run]) -> None:
        """Reads records of runs; a damaged one counts as missing."""
        stored = self._store.get([self._key(run) for run in self._unstored_runs(runs)], self.damaged)
        self.records.update(stored)
        self.reused += len(stored)

    def _cohorts(self, runs: Sequence[Run], workers: int) -> list[CohortRuns]:
        """Cuts runs into cohorts for a number of workers."""
        return cut(runs, workers, self.study.device, self._work, self.fitting and self._fitting)

    def _fitting(self, runs: list[Run]) -> list[int]:
        assert self.fitting is not None
        return self.fitting(self._job(0, (runs, None), self.workers))

    def _number_jobs(self, cohorts: Iterable[CohortRuns]) -> dict[int, Job]:
        """Returns new jobs by number, unique in this loop."""
        # Cohorts come first in zip, so that no number is drawn after the last one.
        return {n: self._job(n, cohort, self.workers) for cohort, n in zip(cohorts, self._numbers, strict=False)}

    def _job(self, number: int, cohort: CohortRuns, workers: int) -> Job:
        """Returns a job, with everything that a worker on another machine needs."""
        runs, certify = cohort
        study, first = self.study, runs[0]
        further, last = further_tasks(study, first), len(study.stream_tasks(first.phase)) + first.more
        return Job(
            number=number,
            stage=self.stage,
            phase=first.phase,
            cohort=Cohort(tuple(run.learner for run in runs)),
            architecture=study.architecture,
            stream=self._request(first.phase, first.order, further),
            order=first.order,
            until=first.prefix[0] if first.prefix else last if further else None,
            more=first.more,
            prefix=first.prefix,
            path=str(study.numeric_path),
            transfer=measures_transfer(first.phase),
            measure=self._measure(first),
            weights=self._counted.weights(first),
            at_once=workers,
            checkpoints=study.checkpoints,
            plugins=of_workers(study.plugins(), self.images),
            limits=study.limits,
            logs=(study.folder / LOGS).absolute() if study.foreign else None,
            certify=certify,
        )

    def stream(self, phase: str, order: int) -> TaskStream:
        """Returns the stream of a phase in the order of a number."""
        return self._counted.stream(phase, order, 0)

    def _cut(self, run: Run, share: float) -> Prefix:
        """Returns where a share of the steps of a run ends."""
        return cut_of(run.learner, self.stream(run.phase, run.order), share)

    def _request(self, phase: str, order: int, more: int) -> StreamRequest:
        """Returns the request for the stream of a phase in the order of a number, with so many further tasks."""
        return self.study.request(phase, self.images.get(SOURCE), order, more)
