"""Notices silent losses: a Ray without its head, a worker that hangs.

Ray itself ends this process a minute after the loss of its head, with a stack trace, and waits for a worker for ever.
"""

import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from epsearch.failures import stopping
from epsearch.failures.lines import SURROUNDINGS
from epsearch.runners.on_ray import ray_start

POLL_SECONDS = 1.0
LOST_SECONDS = 30.0  # without an answer of a head; Ray itself waits for 60

SIGNAL_SECONDS = 1.0  # a signal to many processes reaches one after another; Ray may be gone before ours comes
LEAVE_SECONDS = 5.0  # for this process to end in good order after a signal that has ended its Ray, too

SILENCE_SECONDS = 600.0  # least limit of a worker's silence, which covers its start
SILENCE_PAUSES = 20  # the limit in longest pauses between two reports of the worker
STOPPED_SECONDS = 30.0  # a longer pause between two checks means that this process or the machine was stopped

Loss = Callable[[], str]
"""Returns the loss in words; empty if there is none."""
Signalled = Callable[[], bool]
"""Waits a moment; returns whether a signal has asked this process to end."""


@contextmanager
def signals() -> Iterator[Signalled]:
    """Notices signals within the block as they arrive, also while no handler of Python can run.

    The handlers stay as they are. Outside of the main thread, or where another part of this process is told of signals
    already, nothing is noticed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    arrived = threading.Event()
    reading, writing = socket.socketpair()
    with reading, writing:
        for end in (reading, writing):
            end.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)

        def signalled() -> bool:
            until = time.monotonic() + SIGNAL_SECONDS
            while not arrived.is_set() and (left := until - time.monotonic()) > 0:
                if not select.select([reading], [], [], left)[0]:
                    continue
                numbers = {*reading.recv(1024)}
                if stopping.TIME_SIGNAL in numbers:  # its handler is Tune's while that runs
                    stopping.AGAIN.set()
                if numbers & {*stopping.SIGNALS, stopping.TIME_SIGNAL}:
                    arrived.set()
            return arrived.is_set()

        try:
            if before != -1:
                signal.set_wakeup_fd(before)
            yield signalled
        finally:
            signal.set_wakeup_fd(before)


@contextmanager
def watch_ray(
    loss: Loss,
    every: float = POLL_SECONDS,
    end: Callable[[str], None] | None = None,
    signalled: Signalled = lambda: False,
) -> Iterator[None]:
    """Ends this process with one line if Ray is lost within the block; the same command resumes it.

    An exception would not do: a thread that waits for Ray is in its compiled code, where no signal is handled.

    end: called with the loss, to end the process; with "" for a signal, which may have ended Ray, too.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            # The block may have ended during the check: an end on purpose is no loss.
            if not (reason := loss()) or over.is_set():
                continue
            if signalled():
                reason = ""
                over.wait(LEAVE_SECONDS)
            if not over.is_set():
                (end or _end)(reason)
            return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # no check of processes that are being ended


def head_loss(address: str, clock: Callable[[], float] = time.monotonic) -> Loss:
    """Returns the check of a cluster's head, at HOST:PORT: it is lost after LOST_SECONDS without an answer.

    clock: returns seconds; replaced in tests.
    """
    host, _, port = address.rpartition(":")
    answered = clock()

    def loss() -> str:
        nonlocal answered
        try:
            socket.create_connection((host, int(port)), timeout=LOST_SECONDS / 2).close()
        except OSError:
            return f"nobody answers at {address}" if clock() - answered >= LOST_SECONDS else ""
        answered = clock()
        return ""

    return loss


def _end(reason: str) -> None:
    """Ends this process at once, with a line and a status; a private Ray ends with it. reason: "" for a signal."""
    if not reason:
        stopping.end()
    stopping.end(ray_start.trouble("was lost", reason), SURROUNDINGS)


class Heartbeats:
    """Times of the last reports of workers, to find those that hang.

    limit: seconds without a report; None for a limit from the pauses so far. clock: returns seconds; replaced in tests.

    >>> seconds = iter([0, 0, 10, 10, 605, 620])
    >>> heartbeats = Heartbeats(600, clock=lambda: next(seconds))
    >>> heartbeats.start("a"), heartbeats.start("b"), heartbeats.report("b")
    (None, None, None)
    """

    def __init__(self, limit: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock, self._longest = limit, clock, 0.0
        self._reports: dict[str, float] = {}
        self._checked = clock()

    @property
    def limit(self) -> float:
        """Seconds without a report after which a worker is assumed to hang."""
        return self._limit or max(SILENCE_SECONDS, SILENCE_PAUSES * self._longest)

    def start(self, worker: str) -> None:
        """Starts the clock of a new worker."""
        self._reports.setdefault(worker, self._now())

    def report(self, worker: str) -> None:
        """Notes a report of a worker."""
        now = self._now()
        self._longest = max(self._longest, now - self._reports.get(worker, now))
        self._reports[worker] = now

    def stop(self, worker: str) -> None:
        """Forgets a worker, of which no report is expected."""
        self._reports.pop(worker, None)

    def hanging(self) -> list[str]:
        """Returns the workers that hang."""
        now = self._now()
        return [worker for worker, time in self._reports.items() if now - time > self.limit]

    def _now(self) -> float:
        """Returns the time; after a stop of this process, workers get the time that it missed."""
        now = self._clock()
        if (missed := now - self._checked) > STOPPED_SECONDS:
            self._reports = {worker: time + missed for worker, time in self._reports.items()}
        self._checked = now
        return now
