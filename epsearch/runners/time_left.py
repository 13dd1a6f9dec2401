"""The time of a run: which cohorts begin in it, and when running ones end."""

import threading
import time

from epsearch.failures import stopping
from epsearch.failures.errors import TimeSpent
from epsearch.runners.eta import LEAST_SECONDS
from results.labels import duration_text

LEAVE_SECONDS = 5.0  # for the end of a run, before its machine is taken away
LATEST = 16  # cohorts whose speed counts


class TimeLeft:
    """The limits of a run's time, and the speed of a cohort, from which it follows what fits into them.

    budget: seconds from now after which no cohort begins; until: the end of the machine, by `time.monotonic`. None for
    no limit. Reports of cohorts come from any thread; the rest is for the thread that trains.

    >>> TimeLeft(until=time.monotonic() + 60).begins(1e15)  # as long as there is no speed
    True
    """

    def __init__(self, budget: float | None = None, until: float | None = None) -> None:
        self._begun = time.monotonic()
        self._budget, self._until = budget, until
        self._lock, self._cohorts = threading.Lock(), dict[int, tuple[float, float, float]]()
        self.refused = ""  # why a cohort was not begun, in words

    def add(self, number: int, work: float) -> None:
        """Adds work of a cohort since its last report; number: of its job. Time starts with its first report."""
        if self._until is None:
            return
        now = time.monotonic()
        with self._lock:
            first, _, done = self._cohorts.get(number, (now, now, -work))
            self._cohorts[number] = first, now, done + work
            if len(self._cohorts) > LATEST:
                del self._cohorts[next(iter(self._cohorts))]

    def begins(self, work: float) -> bool:
        """Returns whether there is time for a cohort with this work.

        One that would not fit into the whole time of the run begins in any case: its last task is kept, from which
        another run goes on.
        """
        refused, now = "", time.monotonic()
        if self._budget is not None and now - self._begun >= self._budget:
            refused = f"its time budget of {duration_text(self._budget)} is spent"
        elif self._until is not None and (seconds := self._seconds(work)) is not None:
            left, whole = (self._until - LEAVE_SECONDS - since for since in (now, self._begun))
            if left < seconds <= whole:
                refused = f"the next cohort takes {duration_text(seconds)}, and {duration_text(max(0, left))} is left"
        self.refused = refused or self.refused
        return not refused

    @property
    def over(self) -> bool:
        """True once the machine is about to be taken away."""
        return self._until is not None and time.monotonic() >= self._until - LEAVE_SECONDS

    def end(self) -> TimeSpent:
        """Returns the error with which the run ends; where the machine ends, its status asks for another run."""
        if self.over or self._budget is None or time.monotonic() - self._begun < self._budget:
            stopping.AGAIN.set()
        return TimeSpent(f"stopped: {self.refused or 'the time of this machine is over'}")

    def _seconds(self, work: float) -> float | None:
        """Returns the seconds of a cohort with this work, at the speed of the latest ones; None before there is any."""
        with self._lock:
            seconds = sum(last - first for first, last, _ in self._cohorts.values())
            done = sum(done for *_, done in self._cohorts.values())
        return work * seconds / done if seconds >= LEAST_SECONDS and done else None
