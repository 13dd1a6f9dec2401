"""Claims of a loop: the open jobs that this study may train, and the jobs that failed."""

import time
from collections.abc import Callable, Iterable, Sequence
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

    A job is claimed when a worker is free, so that two studies with the same members share the work. A member that
    another study has claimed or stored is removed from its job: its record will be in the ledger, or the claim
    will end. Without a lease there are no claims.

    A failed job stays open, so that its stage does not end. All other jobs are trained before it ends the study.

    store, key: the ledger, and the function of a run's key.
    """

    def __init__(self, store: "Store", key: Callable[[Run], str]) -> None:
        self.begins: Callable[[Job], bool] = lambda job: True  # whether a job may begin now
        self._store, self._key = store, key
        self._ours: set[int] = set()
        self._failed: dict[int, JobResult] = {}
        self._token: int | None = None  # of the lease under which they were claimed
        self._without: set[str] = set()  # keys that were taken out of a job
        self._last_read = 0.0

    def of(self, pools: Sequence[dict[int, Job]], most: int) -> list[Job]:
        """Returns the jobs that may be trained, including those returned before.

        most: the largest number of jobs if members are claimed. pools: open jobs by number, in order; members of other
        studies are removed from them. Raises TrainingFailed where only failed jobs are left.
        """
        leased, jobs = self._store.lease is not None, list[Job]()
        self._claim_again([job for pool in pools for job in pool.values()])
        for pool in pools:
            for number in [number for number in pool if number not in self._failed]:
                new = leased and number not in self._ours
                if new and (len(jobs) >= most or not self.begins(pool[number]) or not self._claim(pool, number)):
                    continue
                jobs.append(pool[number])
        if self._failed and all(number in self._failed for pool in pools for number in pool):
            raise self._failure()
        return jobs

    def give_up(self, result: JobResult) -> str:
        """Withdraws a failed job; returns a line for the user."""
        self._failed[result.number] = result
        self._ours.discard(result.number)
        return f"giving up on one cohort: {result.error}; the others continue"

    def due(self) -> bool:
        """Returns whether to read again the removed members, which other studies train."""
        if not self._without or time.monotonic() - self._last_read < LOOK_SECONDS:
            return False
        self._last_read = time.monotonic()
        self._without.clear()  # those still missing will be claimed again
        return True

    def held_by_others(self) -> dict[str, int]:
        """Returns the number of removed members by the study that trains them."""
        studies = list(self._store.claims.claimants(self._without).values())
        return {study: studies.count(study) for study in dict.fromkeys(studies)}

    def _failure(self) -> TrainingFailed:
        """Returns the error of all failed jobs: each reason once, and the first traceback of a bug."""
        failed = self._failed.values()
        count = "a cohort" if len(failed) == 1 else f"{len(failed)} cohorts"
        reasons = "; ".join(dict.fromkeys(result.error for result in failed))
        traceback = next((result.traceback for result in failed if result.traceback), "")
        return TrainingFailed(f"{count} could not be trained: {reasons}", traceback)

    def _claim(self, pool: dict[int, Job], number: int) -> bool:
        """Claims the members of a job, and removes the others; returns whether any was claimed."""
        job = pool[number]
        if job.certify is None:  # a certificate's member is stored already
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
        """Claims the members of open jobs again, after the lease was lost and regained."""
        lease = self._store.lease
        if lease is None or lease.token == self._token:
            return
        if self._token is not None:
            keys = [self._key(run) for job in jobs if job.number in self._ours for run in job.runs]
            self._store.claims.claim(keys)
        self._token = lease.token
