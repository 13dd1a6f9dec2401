"""A listener that keeps events for other programs, as rows of the ledger's table of events."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from epsearch.events import Decoded, Event, Listener, Planned, Progress, Tick
from epsearch.session.plan_text import in_words

MOST_WAITING = 1000  # events that are kept while the database does not answer; of more, the oldest are lost
PROGRESS_SECONDS = 1.0  # between two rows of progress

Row = tuple[str, Mapping[str, Any]]


class Recorder:
    """Passes events on to a listener, and keeps them until `take` is called.

    `stop` is set to end the training from outside.
    """

    def __init__(self, listener: Listener) -> None:
        self.stop = False
        self._listener, self._lock = listener, threading.Lock()
        self._waiting: deque[Row] = deque(maxlen=MOST_WAITING)
        self._progress: Progress | None = None
        self._taken = 0.0

    def __call__(self, event: Event) -> object:
        """Keeps the event, of progress the newest; answers `Tick` as the listener, or True after `stop`."""
        match event:
            case Tick():
                return self.stop or self._listener(event)
            case Decoded():  # before a study is held
                pass
            case Progress():
                with self._lock:
                    self._progress = event
            case Planned():
                self._listener(event)
                if event.made:  # it is not made for others
                    self._keep((event.kind, {"lines": in_words(event.plan)}))
                return None
            case _:
                self._keep((event.kind, event.as_json()))
        return self._listener(event)

    def take(self, all_of_it: bool = False) -> list[Row]:
        """Returns the rows since the last call; all_of_it: the newest progress, too, however recent the last one."""
        with self._lock:
            rows = list(self._waiting)
            self._waiting.clear()
            due = all_of_it or time.monotonic() - self._taken >= PROGRESS_SECONDS
            if self._progress is not None and due:
                rows.append((Progress.kind, self._progress.as_json()))
                self._progress, self._taken = None, time.monotonic()
            return rows

    def give_back(self, rows: Sequence[Row]) -> None:
        """Takes back rows that could not be written, except for progress, which is old by then."""
        with self._lock:
            # Another deque: one that is extended on the left would lose the newest.
            kept = (row for row in rows if row[0] != Progress.kind)
            self._waiting = deque([*kept, *self._waiting], MOST_WAITING)

    def _keep(self, row: Row) -> None:
        with self._lock:
            self._waiting.append(row)
