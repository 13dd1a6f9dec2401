"""Cache of the logs of studies: events of their training in words, without its progress."""

import threading
from collections import deque

from epsearch.events import kinds, read
from results.ledger.store import Store
from results.ledger.writers.events import Event

KINDS = tuple(kind for kind, event in kinds().items() if event.logged)
LINES = 200
"""Lines of a log, the newest."""
AT_ONCE = 1000
CACHED = 50
"""Studies whose logs are cached."""

Line = tuple[Event, str]
"""An event, and its text."""


class LogCache:
    """The last lines of studies; reads only new events from the ledger."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._logs: dict[str, tuple[int, deque[Line]]] = {}  # study -> (newest event, lines)

    def get(self, name: str) -> list[Line]:
        """Returns the lines of a study, the newest first."""
        newest = self._store.events.newest(name, *KINDS)
        with self._lock:
            last, lines = self._logs.pop(name, (0, deque(maxlen=LINES)))
            if newest is None or (last < newest.id and not self._has(name, last)):  # a new study of this name
                last, lines = 0, deque(maxlen=LINES)
            while newest is not None and last < newest.id and (new := self._store.events.read(name, last, AT_ONCE)):
                last = new[-1].id
                lines.extend((event, _text(event)) for event in new if event.kind in KINDS)
            self._logs[name] = (last, lines)
            if len(self._logs) > CACHED:
                del self._logs[next(iter(self._logs))]
            return list(reversed(lines))

    def _has(self, name: str, number: int) -> bool:
        """Returns whether an event is stored: those of a study that was deleted are not."""
        return any(event.id == number for event in self._store.events.read(name, number - 1, 1))


def _text(event: Event) -> str:
    decoded = read(event.kind, event.study, event.data)
    return "" if decoded is None else str(decoded)
