"""Follows a training from another terminal, by its events in the ledger."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from epsearch.events import Began, Listener, Progress, read, warner
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import open_ledger, status
from epsearch.status import UNKNOWN, StudyStatus
from results.ledger.retry import RetryPolicy
from results.ledger.url import LedgerUrl
from results.ledger.writers.events import Event

POLL_SECONDS = 0.5
WAIT_SECONDS = 300.0  # seconds to wait for a database that does not answer


def watch(name: str, storage: LedgerUrl, out: Path, listener: Listener) -> StudyStatus:
    """Calls a listener with the events of a study, from the beginning of its last run to its end.

    Returns its status then. Raises UsageError for an unknown study, and one without events.
    """
    with open_ledger(storage, RetryPolicy(WAIT_SECONDS, warner(listener))) as store:
        read_status = partial(status, store, name, storage, out)
        if read_status().state == UNKNOWN:
            raise UsageError(f"study {name!r} has never been trained: there is nothing to watch")
        return follow(read_status, partial(store.events.read, name), listener)


def follow(
    status: Callable[[], StudyStatus], events: Callable[[int], Sequence[Event]], listener: Listener, last: int = 0
) -> StudyStatus:
    """Calls a listener with new events until a study is not active any more; returns its status.

    events: returns the events after a given id; last: id after which to start, 0 for the start of the last run.
    """
    begun = last > 0
    while True:
        # Read before the events, so that those before the end of the study are among them.
        now = status()
        new = events(last)
        for event in new if begun else _of_the_last_run(new):
            if (decoded := read(event.kind, event.study, event.data)) is not None:
                listener(decoded)
        last, begun = (new[-1].id if new else last), True
        if not now.active:
            return now
        time.sleep(POLL_SECONDS)


def _of_the_last_run(events: Sequence[Event]) -> Iterator[Event]:
    """Returns the events of the last run, but only the newest progress."""
    begun = max((number for number, event in enumerate(events) if event.kind == Began.kind), default=0)
    newest = max((event.id for event in events if event.kind == Progress.kind), default=0)
    return (event for event in events[begun:] if event.kind != Progress.kind or event.id == newest)
