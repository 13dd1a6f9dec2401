"""Waiting for a database that has gone: a restart of PostgreSQL should not end a run of hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from results.ledger.errors import StoreGone

T = TypeVar("T")
P = ParamSpec("P")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0  # seconds


@dataclass(frozen=True)
class Patience:
    """For how many seconds a call is tried again, told to whom.

    tell: takes one line, when the first try has failed. sleep, clock: seconds; other ones than the machine's for tests.
    """

    seconds: float = 0.0
    tell: Callable[[str], None] = lambda line: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def again(self, work: Callable[[], T]) -> T:
        """What `work` returns, which must do no harm when done twice. Raises its StoreGone when the time is over, and
        whatever else it raises at once.
        """
        deadline, pause = self.clock() + self.seconds, FIRST_PAUSE
        while True:
            try:
                return work()
            except StoreGone as error:
                if self.clock() + pause > deadline:
                    raise
                if pause == FIRST_PAUSE:
                    self.tell(f"{error}; tried again for up to {self.seconds:.0f} s")
            self.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class Patient(Protocol):
    """Whatever has a patience."""

    patience: Patience


S = TypeVar("S", bound=Patient)


def tried_again(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method with its object's patience; it must do no harm when called twice, nor use up its arguments."""

    @wraps(method)
    def patiently(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        return self.patience.again(lambda: method(self, *args, **options))

    return patiently
