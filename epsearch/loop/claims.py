"""Members that several studies of a ledger want are trained by one of them: the others wait, and take its results."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from epsearch.loop.jobs import Job, Run
from trainers.cohort import Cohort

if TYPE_CHECKING:
    from results.ledger.store import Store

LOOK_SECONDS = 1.0  # between two looks at what others train


class Claims:
    """Which of the open jobs of a loop may be trained now, as this study has claimed their members.

    A job is claimed when a worker is there for it, not before, so that two studies that want the same members share the
    work. A member that another study has claimed, or stored meanwhile, is taken out of its job: sooner or later its
    record is in the ledger, or its claim is over. Where nobody holds a lease there are no claims: every job is ours.

    store, key: the ledger, and the content key of a run, as the loop has them.
    """

    def __init__(self, store: "Store", key: Callable[[Run], str]) -> None:
        self.closing = False  # whether no other job is to begin
        self._store, self._key = store, key
        self._ours: set[int] = set()
        self._token: int | None = None  # of the lease under which they were claimed
        self._without: set[str] = set()  # keys that were taken out of a job
        self._looked = 0.0

    def of(self, pools: Iterable[dict[int, Job]], most: int) -> list[Job]:
        """The jobs that may be trained, those that were before among them; at most so many where there are claims.

        pools: open jobs by number, in the order in which they are to begin; what is not ours is taken out of them.
        """
        if self._store.lease is None:
            return [job for pool in pools for job in pool.values()]
        self._claim_again([job for pool in pools for job in pool.values()])
        found: list[Job] = []
        for pool in pools:
            for number in list(pool):
                if number not in self._ours and (self.closing or len(found) >= most or not self._claim(pool, number)):
                    continue
                found.append(pool[number])
        return found

    def due(self) -> bool:
        """Whether it is time to look for what others have trained meanwhile, of what was taken out of jobs."""
        if not self._without or time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        self._without.clear()  # those that are still not there will be claimed again
        return True

    def elsewhere(self) -> dict[str, int]:
        """Study -> how many of our members it trains now, of those that were taken out of our jobs."""
        of = list(self._store.claimed(self._without).values())
        return {study: of.count(study) for study in dict.fromkeys(of)}

    def _claim(self, pool: dict[int, Job], number: int) -> bool:
        """Claims the members of a job, and leaves those that are ours in it, or takes it out of the pool."""
        job = pool[number]
        if job.certify is None:  # a certificate's member has been trained; that is its point
            keys = {self._key(run): run for run in job.runs}
            ours = self._store.claim(keys)
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
        """After the lease was lost and taken again: what is on its way to workers is claimed anew, where it can be."""
        lease = self._store.lease
        if lease is None or lease.token == self._token:
            return
        if self._token is not None:
            keys = [self._key(run) for job in jobs if job.number in self._ours for run in job.runs]
            self._store.claim(keys)
        self._token = lease.token
