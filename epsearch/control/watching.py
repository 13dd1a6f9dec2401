"""A training is followed from another terminal, by what the ledger says of it alone."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from epsearch.control.named import known
from epsearch.events import Began, Listener, Progress, read, warner
from epsearch.failures.errors import UsageError, unknown
from epsearch.findings.listing import opened
from results.ledger.retry import Patience
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.events import Event
from results.ledger.writers.states import CANCELLING, QUEUED, RUNNING

POLL_SECONDS = 0.5
PATIENCE = 300.0  # seconds for which a database that has gone is waited for


@dataclass(frozen=True)
class Seen:
    """How a study stands."""

    state: str
    """In one word; a study is interrupted where nobody trains it although it was left running."""
    reason: str
    """Why it failed."""
    summary: str
    """How far it is, in words."""
    going_on: bool
    """Whether it is being trained, or is to be."""


class Watched(Protocol):
    """A study that is followed, here or elsewhere."""

    def look(self) -> Seen:
        """How it stands. Raises UsageError where there is nothing to watch."""

    def events(self, after: int) -> list[Event]:
        """What happened to it behind an event, the oldest first."""


class StoredStudy:
    """One of an open ledger."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        names = known(store)
        if name not in names:
            raise UsageError(unknown("study", name, names))

    def look(self) -> Seen:
        """How it stands."""
        there = self._store.standing(self._name)
        if there is None:
            raise UsageError(f"study {self._name!r} has never been trained: there is nothing to watch")
        going_on = (there.held and there.state in (RUNNING, CANCELLING)) or there.state == QUEUED
        summary = self._store.summaries().get(self._name)
        return Seen(there.now, there.reason, "" if summary is None else summary.status, going_on)

    def events(self, after: int) -> list[Event]:
        """What happened to it."""
        return self._store.events(self._name, after)


def watch(name: str, storage: LedgerUrl, listener: Listener) -> Seen:
    """Tells a listener what happens to a study, from the beginning of its last run to the end of that.

    Returns how it stands once nobody trains it. Raises UsageError where there is no such study, or it has never been
    trained by a version of epsearch that keeps events.
    """
    with opened(storage, Patience(PATIENCE, warner(listener))) as store:
        return follow(StoredStudy(store, name), listener)


def follow(study: Watched, listener: Listener, last: int = 0) -> Seen:
    """The same of a study that is found already; last: the event from which on to tell, else those of its last run."""
    told = last > 0
    while True:
        # Before the events are looked at: whatever is told before the end is told here, too.
        there = study.look()
        new = study.events(last)
        for event in new if told else _of_the_last_run(new):
            if (understood := read(event.kind, event.study, event.data)) is not None:
                listener(understood)
        last, told = (new[-1].id if new else last), True
        if not there.going_on:
            return there
        time.sleep(POLL_SECONDS)


def _of_the_last_run(events: list[Event]) -> Iterator[Event]:
    """Those of the last run, of its progress the newest alone."""
    begun = max((number for number, event in enumerate(events) if event.kind == Began.kind), default=0)
    newest = max((event.id for event in events if event.kind == Progress.kind), default=0)
    return (event for event in events[begun:] if event.kind != Progress.kind or event.id == newest)
