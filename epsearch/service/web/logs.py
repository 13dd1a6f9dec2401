"""The log of a study: what its training told, without its progress; only what is new is read from the ledger."""

import threading
from collections import deque
from typing import NamedTuple

from epsearch.events import kinds, read
from results.ledger.store import Store
from results.ledger.writers.events import Event

KINDS = tuple(kind for kind, event in kinds().items() if event.logged)
LAST = 200
"""Lines that are kept, the newest."""
AT_ONCE = 1000
KEPT = 50
"""Studies whose lines are kept."""


class Line(NamedTuple):
    """One line."""

    id: int
    time: float
    """Seconds since 1970."""
    kind: str
    text: str


class Logs:
    """The last lines of studies."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._kept: dict[str, tuple[int, deque[Line]]] = {}

    def of(self, name: str) -> list[Line]:
        """The lines of a study, the newest first."""
        newest = self._store.events.newest(name, *KINDS)
        with self._lock:
            last, lines = self._kept.pop(name, (0, deque(maxlen=LAST)))
            if newest is None or (lines and newest.id < lines[-1].id):  # deleted meanwhile
                last, lines = 0, deque(maxlen=LAST)
            while newest is not None and last < newest.id and (new := self._store.events.read(name, last, AT_ONCE)):
                last = new[-1].id
                lines.extend(_line(event) for event in new if event.kind in KINDS)
            self._kept[name] = (last, lines)
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return list(reversed(lines))


def _line(event: Event) -> Line:
    understood = read(event.kind, event.study, event.data)
    return Line(event.id, event.time, event.kind, "" if understood is None else str(understood))
