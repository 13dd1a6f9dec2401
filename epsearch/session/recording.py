"""A listener that collects events as rows of the ledger, for other programs."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from epsearch.events import Decoded, Event, Listener, Planned, Progress, Tick
from epsearch.session.plan_text import in_words

MOST_WAITING = 1000  # events that wait for the database; of more, the oldest are lost
PROGRESS_SECONDS = 1.0  # between two rows of progress

Row = tuple[str, Mapping[str, Any]]


class Recorder:
    """Passes events on to a listener, and collects them until `take` is called.

    Set `stop` to end the training from outside.
    """

    def __init__(self, listener: Listener) -> None:
        self.stop = False
        self._listener, self._lock = listener, threading.Lock()
        self._waiting: deque[Row] = deque(maxlen=MOST_WAITING)
        self._progress: Progress | None = None
        self._taken = 0.0

    def __call__(self, event: Event) -> object:
        """Collects the event, of progress the newest; answers `Tick` as the listener, or True after `stop`."""
        match event:
            case Tick():
                return self.stop or self._listener(event)
            case Decoded():  # not stored
                pass
            case Progress():
                with self._lock:
                    self._progress = event
            case Planned():
                self._listener(event)
                if event.made:  # only if the listener made the plan
                    self._collect((event.kind, {"lines": in_words(event.plan)}))
                return None
            case _:
                self._collect((event.kind, event.as_json()))
        return self._listener(event)

    def take(self, all_rows: bool = False) -> list[Row]:
        """Returns the rows since the last call; all_rows: also the newest progress, however recent the last one."""
        with self._lock:
            rows = list(self._waiting)
            self._waiting.clear()
            due = all_rows or time.monotonic() - self._taken >= PROGRESS_SECONDS
            if self._progress is not None and due:
                rows.append((Progress.kind, self._progress.as_json()))
                self._progress, self._taken = None, time.monotonic()
            return rows

    def give_back(self, rows: Sequence[Row]) -> None:
        """Takes back rows that could not be written, without progress, which is outdated."""
        with self._lock:
            # A new deque: extended on the left, it would lose the newest.
            unwritten = (row for row in rows if row[0] != Progress.kind)
            self._waiting = deque([*unwritten, *self._waiting], MOST_WAITING)

    def _collect(self, row: Row) -> None:
        with self._lock:
            self._waiting.append(row)
