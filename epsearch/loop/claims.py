"""Claims of a loop: the open jobs that this study may train, and the jobs that failed."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from epsearch.failures.errors import TrainingFailed
from epsearch.loop.jobs import Job, JobResult, Run
from trainers.cohort import Cohort

if TYPE_CHECKING:
    from results.ledger.store import Store

LOOK_SECONDS = 1.0  # between two reads of the members that others train


class Claims:
    """Chooses the open jobs of a loop that may be trained now, and claims their members.

    A job is claimed when a worker is there for it, not before, so that two studies that want the same members share the
    work. A member that another study has claimed, or stored meanwhile, is taken out of its job: sooner or later its
    record is in the ledger, or its claim is over. Without a lease there are no claims: every job is ours.

    A job that could not be trained stays open, so that its stage does not end, and is handed out no more. Whatever else
    is open is trained before it ends the study.

    store, key: the ledger, and the content key of a run, as the loop has them.
    """

    def __init__(self, store: "Store", key: Callable[[Run], str]) -> None:
        self.closing = False  # whether no other job is to begin
        self._store, self._key = store, key
        self._ours: set[int] = set()
        self._failed: dict[int, JobResult] = {}
        self._token: int | None = None  # of the lease under which they were claimed
        self._without: set[str] = set()  # keys that were taken out of a job
        self._last_read = 0.0

    def of(self, pools: Iterable[dict[int, Job]], most: int) -> list[Job]:
        """Returns the jobs that may be trained, also earlier ones; at most so many where there are claims.

        pools: open jobs by number, in the order in which they are to begin; what is not ours is taken out of them.
        Raises TrainingFailed where there are none, and some that were given up.
        """
        leased, jobs = self._store.lease is not None, list[Job]()
        self._claim_again([job for pool in pools for job in pool.values()])
        for pool in pools:
            for number in [one for one in pool if one not in self._failed]:
                new = leased and number not in self._ours
                if new and (self.closing or len(jobs) >= most or not self._claim(pool, number)):
                    continue
                jobs.append(pool[number])
        if self._failed and not jobs:
            raise self._failure()
        return jobs

    def give_up(self, result: JobResult) -> str:
        """Withdraws a job that could not be trained; returns the line for the user."""
        self._failed[result.number] = result
        self._ours.discard(result.number)
        return f"giving up on one cohort: {result.error}; the others continue"

    def due(self) -> bool:
        """Returns whether to read again which members others have trained, of those taken out of jobs."""
        if not self._without or time.monotonic() - self._last_read < LOOK_SECONDS:
            return False
        self._last_read = time.monotonic()
        self._without.clear()  # those that are still not there will be claimed again
        return True

    def elsewhere(self) -> dict[str, int]:
        """Returns study -> number of members that it trains now, of those taken out of our jobs."""
        studies = list(self._store.claims.claimed(self._without).values())
        return {study: studies.count(study) for study in dict.fromkeys(studies)}

    def _failure(self) -> TrainingFailed:
        """Returns the error of all failed jobs: each reason once, and the first traceback of a fault of ours."""
        failed = self._failed.values()
        count = "a cohort" if len(failed) == 1 else f"{len(failed)} cohorts"
        reasons = "; ".join(dict.fromkeys(one.error for one in failed))
        traceback = next((one.traceback for one in failed if one.traceback), "")
        return TrainingFailed(f"{count} could not be trained: {reasons}", traceback)

    def _claim(self, pool: dict[int, Job], number: int) -> bool:
        """Claims the members of a job and removes the others from it, or the whole job; returns whether any is ours."""
        job = pool[number]
        if job.certify is None:  # a certificate's member has been trained; that is its point
            keys = {self._key(run): run for run in job.runs}
            ours = self._store.claims.claim(keys)
            self._without |= keys.keys() - ours
            if not ours:
                del pool[number]
                return False
            if len(ours) < len(keys):
                left = tuple(run.learner for key, run in keys.items() if key in ours)
                pool[number] = replace(job, cohort=Cohort(left))
        self._ours.add(number)
        return True

    def _claim_again(self, jobs: Iterable[Job]) -> None:
        """After the lease was lost and regained, claims the members that workers train again, where possible."""
        lease = self._store.lease
        if lease is None or lease.token == self._token:
            return
        if self._token is not None:
            keys = [self._key(run) for job in jobs if job.number in self._ours for run in job.runs]
            self._store.claims.claim(keys)
        self._token = lease.token
