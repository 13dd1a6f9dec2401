"""What is lost and does not say so: a Ray without its head, a worker that hangs.

Ray ends this whole process a minute after its head has gone, in words of its own, and waits for a worker for ever.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from epsearch.failures import stopping
from epsearch.failures.lines import SURROUNDINGS
from epsearch.runners.on_ray import ray_start

EVERY = 1.0  # seconds between two looks
SILENT = 30.0  # seconds: a head that comes back sooner has not been lost; Ray itself waits for 60

LEAST = 600.0  # seconds of silence that any worker may have; its start is among them
TIMES = 20  # the longest pause between two reports, so many times, is no pause any more
STOPPED = 30.0  # seconds between two looks: we ourselves have been stopped, or the machine has

Look = Callable[[], str]
"""What has been lost, in words; empty while all is well."""


@contextmanager
def watching(look: Look, every: float = EVERY, end: Callable[[str], None] | None = None) -> Iterator[None]:
    """Within it, this process ends in one line when Ray is lost. What is stored stays, and the same command goes on.

    Nothing gentler would do: whoever waits for Ray then does so inside its compiled code, where no signal reaches him.

    look: tells what has been lost. end: called with that.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            # The block may have ended while this looked: what ends on purpose has not been lost.
            if (what := look()) and not over.is_set():
                (end or _end)(what)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # so that nobody looks at processes that are being ended


def silence(address: str, clock: Callable[[], float] = time.monotonic) -> Look:
    """Looks whether somebody listens at HOST:PORT, and since when nobody does.

    Of a cluster no process can be looked at. The look tells of a loss after SILENT seconds without an answer.

    clock: returns seconds; replaced in tests.
    """
    host, _, port = address.rpartition(":")
    heard = clock()

    def look() -> str:
        nonlocal heard
        try:
            socket.create_connection((host, int(port)), timeout=SILENT / 2).close()
        except OSError:
            return f"nobody answers at {address}" if clock() - heard >= SILENT else ""
        heard = clock()
        return ""

    return look


def _end(what: str) -> None:
    """Ends this process at once, with its line and status; a private Ray ends with it."""
    stopping.end(ray_start.trouble("was lost", what), SURROUNDINGS)


class Silence:
    """Which workers have not told anything for too long.

    limit: seconds; None for what the pauses that were seen make likely. clock: returns seconds; replaced in tests.

    >>> seconds = iter([0, 0, 10, 10, 605, 620])
    >>> silence = Silence(600, clock=lambda: next(seconds))
    >>> silence.begun("a"), silence.begun("b"), silence.heard("b")
    (None, None, None)
    """

    def __init__(self, limit: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._given, self._clock, self._longest = limit, clock, 0.0
        self._heard: dict[str, float] = {}
        self._looked = clock()

    @property
    def limit(self) -> float:
        """Seconds without a word after which a worker is taken to hang."""
        return self._given or max(LEAST, TIMES * self._longest)

    def begun(self, worker: str) -> None:
        """Starts a worker's silence, unless it is known already."""
        self._heard.setdefault(worker, self._now())

    def heard(self, worker: str) -> None:
        """A worker has told something."""
        now = self._now()
        self._longest = max(self._longest, now - self._heard.get(worker, now))
        self._heard[worker] = now

    def ended(self, worker: str) -> None:
        """Nothing is expected of the worker any more."""
        self._heard.pop(worker, None)

    def silent(self) -> list[str]:
        """Those that hang."""
        now = self._now()
        return [worker for worker, then in self._heard.items() if now - then > self.limit]

    def _now(self) -> float:
        """The time; where nobody has looked for long, what workers told meanwhile has still to be read."""
        now = self._clock()
        if (missed := now - self._looked) > STOPPED:
            self._heard = {worker: then + missed for worker, then in self._heard.items()}
        self._looked = now
        return now
