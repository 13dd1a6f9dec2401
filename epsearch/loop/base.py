"""Base of all loops: members -> cohorts -> jobs -> records. The ledger is read first, and written before all else.

A loop is an ask/tell source: `ask()` returns the open jobs of the stage, `tell()` takes results in any order. All it
knows is derived from the ledger, so opening it anew resumes the work. Making one reads nothing: see `open_search`.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

from epsearch.failures.errors import TrainingFailed, UsageError
from epsearch.ledger.evaluation_log import EvaluationLog
from epsearch.loop.ahead import Outlook
from epsearch.loop.claims import Claims
from epsearch.loop.cohorts import Order, cut
from epsearch.loop.content import content, measures_transfer, records, run_key
from epsearch.loop.jobs import Job, JobResult, Run, forget
from epsearch.loop.work import Work
from epsearch.plugins.loading import of_workers
from epsearch.study.description import Disjointness, Study
from results.ledger.record import Certificate, RunRecord, Summary
from search_spaces.space import Value
from search_spaces.strategy import Best
from trainers.cohort import Cohort
from trainers.notes import redirect_notes
from trainers.plugins.source import SOURCE
from trainers.streams import StreamRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


class Loop(ABC):
    """Base of loops, for all kinds of study. Subclasses choose the members of a stage.

    study      the study to train
    images     the stream's description, which is part of every key
    store      the ledger; only this process writes to it
    """

    def __init__(self, study: Study, images: Mapping[str, Any], store: "Store") -> None:
        self.study = study
        self.workers = 1  # jobs that are trained at a time, as the runner sets it
        self.records: dict[str, RunRecord] = {}
        self.reused = 0  # members that were stored before
        self.stored: list[RunRecord] = []  # members trained since
        self.certificates: dict[str, Certificate] = {}
        self.saved = 0  # member-steps not taken since, as members share their first task
        self.notify: Callable[[str], object] = str  # called with lines for the user, once what they are about is stored
        self.damaged: dict[str, str] = {}  # records that could not be used; some trained again since
        self.proof = Disjointness()  # that the search has seen nothing of the evaluation, as the ledger keeps it
        self.evaluation_log = EvaluationLog()  # of all ledgers of this user
        self.row = ""  # checksum of the study's row in the ledger; with one, its summary there is kept up to date
        self.images, self._store = dict(images), store
        self._jobs, self._numbers = dict[int, Job](), itertools.count()
        self._members = lru_cache(1)(self._find_members)  # computed several times for each cohort
        self._key = cache(partial(run_key, study, self.images))  # used at every report, and a hash of much JSON
        self.claims = Claims(store, self._key)
        self._counted = Work(study, self._request)
        self._work = self._counted.of

    @property
    def trained(self) -> int:
        """Members trained since the loop was made."""
        return len(self.stored)

    @property
    def best(self) -> Best | None:
        """The best point so far, where anything is searched."""
        return None

    @property
    def inert(self) -> bool:
        """Whether all values that were tried score the same bit for bit, so that none is the best."""
        return False

    def chosen(self) -> dict[str, Value] | None:
        """The best point so far, by the names of what is searched."""
        return None

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing is left to train."""

    @property
    @abstractmethod
    def stage(self) -> str:
        """What is being trained, in words."""

    @abstractmethod
    def headline(self) -> str:
        """The best so far, in words."""

    @abstractmethod
    def heading(self) -> str:
        """What the whole study will do, in words."""

    @abstractmethod
    def outlook(self) -> Outlook:
        """Members to come."""

    @abstractmethod
    def ahead(self) -> list[tuple[int, list[Run]]]:
        """How many members are ahead, at most, of each stream, and some members such as they are."""

    @abstractmethod
    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """The fewest and the most of what is ahead, in FLOP."""

    @abstractmethod
    def scores(self) -> "NDArray[np.float64]":
        """A_T [K, R] in [0, 1] of what is compared with the seeds it has, NaN where that is not known."""

    @abstractmethod
    def _wanted(self) -> list[Run]:
        """All members of the current stage."""

    @abstractmethod
    def _advance(self) -> None:
        """Goes through the stages as far as the ledger has their records.

        Called after every `tell`, so it must do nothing while jobs of the stage are out.
        """

    def catch_up(self) -> Self:
        """Goes through the stages as far as the ledger has their records; returns itself."""
        self._advance()
        return self

    def ask(self) -> list[Job]:
        """Returns the open jobs that may be trained now: the same until their results are told, then others.

        Where other studies train the same members there may be none, although the loop is not done: a later call has
        their results, or jobs. With claims there are at most so many jobs as workers. Raises TrainingFailed
        where nothing is left but what could not be trained.
        """
        if not self._jobs and self.claims.due():
            self._advance()
        if self.done:
            return []
        if not self._jobs:
            self._jobs = self._opened(self._orders(self.workers))
        return self.claims.of((self._jobs, self._early_jobs), self.workers)

    def upcoming(self, workers: int) -> list[Job]:
        """Returns the first jobs for so many workers, without opening them; their numbers count from 0."""
        orders = [] if self.done else [*self._orders(workers), *self._early()]
        return [self._job(number, order, workers) for number, order in enumerate(orders)]

    def tell(self, results: Sequence[JobResult]) -> None:
        """Stores results, before anything else, and goes on when the stage is complete.

        Results may come in any order, one or several at a time. A job without a value is given up, see `ask`. Raises
        UsageError where code from outside is to blame for that, TrainingFailed where the machine is for all jobs alike.
        """
        lines: list[str] = []
        try:
            for result in results:
                self._process(result, lines)
        finally:  # also those of results before one that ends the study
            for line in lines:
                self.notify(line)
        if not self._jobs:  # else the stage goes on, and what was stored has brought its summary
            # Only now: a crash in between loses nothing, as a loop that is opened anew finds the stage from the ledger.
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
        lines += result.value.note.splitlines()
        job = self._close(result.number)
        self._store_result(job, result)
        if job.certify is None:
            with redirect_notes(lines.append):
                forget(job, self._counted.stream(job.phase))

    def sum_up(self) -> None:
        """Writes the summary to the ledger, unless it is there."""
        if (now := self.summary()) is not None:
            self._store.sum_up(now)

    def summary(self) -> Summary | None:
        """Returns the line of `epsearch list`; None where the study is not stored."""
        if not self.row:
            return None
        status = self.state() + (f", {len(self.unused())} damaged" if self.unused() else "")
        best = self.best
        score = None if best is None else best.value
        return Summary(self.study.name, self.row, status, self.chosen(), score, self.inert)

    def stage_members(self) -> tuple[int, int]:
        """Returns (stored members of this stage, all of its members); those with the same result count once."""
        different, missing = self._members(len(self.records), self.stage)
        return different - len(missing), different

    def missing(self) -> list[Run]:
        """Returns the members of the present stage that are not stored."""
        return self._members(len(self.records), self.stage)[1]

    def unused(self) -> dict[str, str]:
        """Returns key -> why its record cannot be used."""
        return {key: why for key, why in self.damaged.items() if key not in self.records}

    def state(self) -> str:
        """Returns the state for `epsearch list`: finished, or the stage with its progress."""
        if self.done:
            return "finished"
        known, wanted = self.stage_members()
        return f"{self.stage}: {known} of {wanted} members trained"

    def records_of(self, runs: Iterable[Run]) -> tuple[RunRecord, ...]:
        """Returns the records of those runs that are stored, in the order of the runs.

        Runs with the same result have the same record, which then comes once for each of them.
        """
        return tuple(self.records[key] for key in map(self._key, runs) if key in self.records)

    def _find_members(self, known: int, stage: str) -> tuple[int, list[Run]]:
        """Returns (number of members of the stage, missing ones); those of the same result count once."""
        wanted = self._wanted()
        return len(set(map(self._key, wanted))), self._unstored(wanted)

    @cached_property
    def _early_jobs(self) -> dict[int, Job]:
        """Jobs that are open beside those of any stage."""
        # Opened once: while they are being trained they are not stored, and would be opened again.
        return self._opened(self._early())

    def _orders(self, workers: int) -> list[Order]:
        """Returns the cohorts of the stage, for so many workers."""
        return self._cohorts(self.missing(), workers)

    def _early(self) -> list[Order]:
        """Returns cohorts that may be trained before their stage begins."""
        return []

    def _close(self, number: int) -> Job:
        """Removes the open job of that number, and returns it."""
        return (self._jobs if number in self._jobs else self._early_jobs).pop(number)

    def _store_result(self, job: Job, result: JobResult) -> None:
        """Stores the records of a job, with the new summary of the study."""
        fresh = records(job, result, [content(self.study, self.images, run) for run in job.runs])
        # Before the ledger, as the summary that goes into it with these records counts them.
        self.records.update((record.key, record) for record in fresh)
        self._store.add(fresh, self.summary())
        self.evaluation_log.add(fresh)
        self.stored += fresh

    def _unstored(self, runs: Iterable[Run]) -> list[Run]:
        """Returns those without a record; of several that have the same result, the first."""
        # Of equal keys a dict keeps the last value: from the end, that is the first run.
        by_key = {self._key(run): run for run in reversed(list(runs))}
        return [run for key, run in reversed(by_key.items()) if key not in self.records]

    def _read(self, runs: Iterable[Run]) -> None:
        """Reads the records of these members; a damaged one counts as missing."""
        stored = self._store.get([self._key(run) for run in self._unstored(runs)], self.damaged)
        self.records.update(stored)
        self.reused += len(stored)

    def _cohorts(self, runs: Sequence[Run], workers: int) -> list[Order]:
        """Cuts the runs into cohorts for so many workers."""
        return cut(runs, workers, self.study.device, self._work)

    def _opened(self, orders: Iterable[Order]) -> dict[int, Job]:
        """Returns new jobs by their numbers, which are unique in this loop."""
        # The orders come first: where they end, no number has been drawn for nothing.
        return {n: self._job(n, order, self.workers) for order, n in zip(orders, self._numbers, strict=False)}

    def _job(self, number: int, order: Order, workers: int) -> Job:
        """Returns a job, with everything that a worker on another machine needs."""
        runs, certify = order
        study, first = self.study, runs[0]
        return Job(
            number=number,
            stage=self.stage,
            phase=first.phase,
            cohort=Cohort(tuple(run.learner for run in runs)),
            architecture=study.architecture,
            stream=self._request(first.phase),
            path=str(study.numeric_path),
            transfer=measures_transfer(first.phase),
            weights=self._counted.weights(first),
            at_once=workers,
            checkpoints=study.checkpoints,
            plugins=of_workers(study.plugged(), self.images),
            limits=study.limits,
            certify=certify,
        )

    def _request(self, phase: str) -> StreamRequest:
        """Returns the request for the stream of a phase, for any process."""
        return self.study.request(phase, self.images.get(SOURCE))
