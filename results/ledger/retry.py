"""Waiting for a database that does not answer: a restart of PostgreSQL should not end a run of hours."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from results.ledger.errors import StoreGone, StoreLocked

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds between two tries; each pause is twice the one before."""


@dataclass(frozen=True)
class RetryPolicy:
    """The time for which calls are repeated while the database does not answer."""

    seconds: float = 0.0
    """Time from the first try to the last one."""
    notify: Callable[[str], None] = lambda line: None
    """Called with lines for the user: when the first try has failed, among others."""
    sleep: Callable[[float], None] = time.sleep
    """Waits for some seconds; replaced in tests."""
    clock: Callable[[], float] = time.monotonic
    """Returns seconds; replaced in tests."""

    def again(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns, which may be called several times and must allow that.

        Raises its StoreGone when the time is over, and anything else that it raises at once. A locked file is waited
        for as long as it takes, unless `seconds` is 0: its program may be stopped, and will go on.
        """
        deadline, pause = self.clock() + self.seconds, FIRST_PAUSE
        while True:
            try:
                return work()
            except StoreGone as error:
                if isinstance(error, StoreLocked) and self.seconds:
                    deadline = self.clock() + self.seconds
                if self.clock() + pause > deadline:
                    raise
                if pause == FIRST_PAUSE:  # once: the pauses after the first are longer
                    self.notify(f"{error}; trying again for up to {self.seconds:.0f} s")
            self.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
