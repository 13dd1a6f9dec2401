"""A listener that keeps what a training tells for other programs: rows of the ledger's table of events."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epsearch.events import Events, Progress
from epsearch.loop.ahead import Plan
from epsearch.session.plan_text import in_words
from epsearch.study.description import Study
from results.ledger.record import RunRecord

MOST_WAITING = 1000  # events that are kept while the database does not answer; of more, the oldest are lost
PROGRESS_SECONDS = 1.0  # between two rows of progress

Row = tuple[str, Mapping[str, Any]]


class Recorder:
    """Hands everything on to another listener, and keeps it until `take` is called.

    Whoever wants the training to stop from outside sets `stop`.
    """

    def __init__(self, events: Events) -> None:
        self.stop = False
        self._events, self._lock = events, threading.Lock()
        self._waiting: deque[Row] = deque(maxlen=MOST_WAITING)
        self._progress: Progress | None = None
        self._taken = 0.0

    def take(self, all_of_it: bool = False) -> list[Row]:
        """What has been told since it was called last, of progress the newest and only now and then; all_of_it: now."""
        with self._lock:
            rows = list(self._waiting)
            self._waiting.clear()
            due = all_of_it or time.monotonic() - self._taken >= PROGRESS_SECONDS
            if self._progress is not None and due:
                rows.append(("progress", self._progress._asdict()))
                self._progress, self._taken = None, time.monotonic()
            return rows

    def give_back(self, rows: Sequence[Row]) -> None:
        """Takes rows that could not be written, but for progress, which is old by then."""
        with self._lock:
            # Another deque: one that is extended on the left would lose the newest.
            self._waiting = deque([*(row for row in rows if row[0] != "progress"), *self._waiting], MOST_WAITING)

    def note(self, line: str) -> None:
        """Keeps the line."""
        self._keep("note", line=line)
        self._events.note(line)

    def warning(self, line: str) -> None:
        """Keeps the line."""
        self._keep("warning", line=line)
        self._events.warning(line)

    def decoded(self, done: int, total: int) -> None:
        """Hands it on: images are decoded before a study is held."""
        self._events.decoded(done, total)

    def plan(self, make: Callable[[], Plan]) -> None:
        """Keeps the plan, where somebody else wants it: it is not made for others."""

        def kept() -> Plan:
            plan = make()
            self._keep("plan", lines=in_words(plan))
            return plan

        self._events.plan(kept)

    def begin(self, study: Study, heading: str) -> None:
        """Keeps the heading."""
        self._keep("begin", heading=heading, device=study.device, runner=study.runner)
        self._events.begin(study, heading)

    def progress(self, now: Progress) -> None:
        """Keeps the newest."""
        with self._lock:
            self._progress = now
        self._events.progress(now)

    def records(self, stored: Sequence[RunRecord]) -> None:
        """Keeps how many there are."""
        self._keep("records", stored=len(stored))
        self._events.records(stored)

    def stop_wanted(self) -> bool:
        """Whether somebody outside wants the training to stop, or the other listener does."""
        return self.stop or self._events.stop_wanted()

    def _keep(self, kind: str, **data: Any) -> None:
        with self._lock:
            self._waiting.append((kind, data))
