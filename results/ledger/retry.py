"""Waiting for a database that does not answer: a restart of PostgreSQL should not end a run of hours."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from results.ledger.errors import StoreGone, StoreLocked
from results.ledger.writers.errors import LeaseLost

T = TypeVar("T")
P = ParamSpec("P")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds between two tries; each pause is twice the one before."""


@dataclass(frozen=True)
class Patience:
    """For how long calls are repeated while the database does not answer."""

    seconds: float = 0.0
    """Time from the first try to the last one."""
    tell: Callable[[str], None] = lambda line: None
    """Is called with one line when the first try has failed."""
    sleep: Callable[[float], None] = time.sleep
    """Waits for some seconds; replaced in tests."""
    clock: Callable[[], float] = time.monotonic
    """Returns seconds; replaced in tests."""

    def again(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns, which may be called several times and must allow that.

        Raises its StoreGone when the time is over, and anything else that it raises at once. A locked file is waited
        for as long as it takes, unless there is no patience at all: its program may be stopped, and will go on.
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
                if pause == FIRST_PAUSE:  # told once: the pauses after the first are longer
                    self.tell(f"{error}; trying again for up to {self.seconds:.0f} s")
            self.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class Patient(Protocol):
    """Who has patience."""

    patience: Patience
    """For how long its methods are repeated."""

    def regain(self, lost: LeaseLost) -> None:
        """Takes a lost lease again, or raises the error."""


Whose = TypeVar("Whose", bound=Patient)


def tried_again(method: Callable[Concatenate[Whose, P], T]) -> Callable[Concatenate[Whose, P], T]:
    """Returns a method that is repeated with the patience of its object, and once more after a lease was regained.

    The method may be called several times, so it must allow that and must not use up its arguments, as iterators are.
    """

    @wraps(method)
    def patiently(self: Whose, /, *args: P.args, **options: P.kwargs) -> T:
        def again() -> T:
            return self.patience.again(lambda: method(self, *args, **options))

        try:
            return again()
        except LeaseLost as lost:
            self.regain(lost)
            return again()

    return patiently
