"""A training is followed from another terminal, by what the ledger says of it alone."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from epsearch.control.named import known
from epsearch.events import Events, Progress
from epsearch.failures.errors import UsageError, unknown
from epsearch.findings.listing import opened
from results.ledger.retry import Patience
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.events import Event
from results.ledger.writers.states import CANCELLING, QUEUED, RUNNING, Standing

POLL_SECONDS = 0.5
PATIENCE = 300.0  # seconds for which a database that has gone is waited for


@dataclass(frozen=True)
class Seen:
    """How a study stands at the end of watching, or of what has been told by now."""

    standing: Standing
    """In the ledger."""
    summary: str
    """How far it is, in words."""


def watch(name: str, storage: LedgerUrl, events: Events) -> Seen:
    """Tells a listener what happens to a study, from the beginning of its last run to the end of that.

    Returns how it stands once nobody trains it. Raises UsageError where there is no such study, or it has never been
    trained by a version of epsearch that keeps events.
    """
    with opened(storage, Patience(PATIENCE, events.warning)) as store:
        names = known(store)
        if name not in names:
            raise UsageError(unknown("study", name, names))
        last = 0
        while True:
            there = store.standing(name)
            if there is None:
                raise UsageError(f"study {name!r} has never been trained: there is nothing to watch")
            # Looked at before the events: whatever is told before the end is told here, too.
            going_on = (there.held and there.state in (RUNNING, CANCELLING)) or there.state == QUEUED
            new = store.events(name, last)
            for event in new if last else _of_the_last_run(new):
                _tell(event, events)
            last = new[-1].id if new else last
            if not going_on:
                return Seen(there, _summary(store, name))
            time.sleep(POLL_SECONDS)


def _summary(store: Store, name: str) -> str:
    known = store.summaries().get(name)
    return "" if known is None else known.status


def _of_the_last_run(events: list[Event]) -> Iterator[Event]:
    """Those of the last run, of its progress the newest alone."""
    begun = max((number for number, event in enumerate(events) if event.kind == "begin"), default=0)
    newest = max((event.id for event in events if event.kind == "progress"), default=0)
    return (event for event in events[begun:] if event.kind != "progress" or event.id == newest)


def _tell(event: Event, events: Events) -> None:
    """Tells a listener of an event; what another version has written, and is not understood, is left out."""
    data = event.data
    try:
        if event.kind == "progress":
            events.progress(Progress(**data))
        elif event.kind == "begin":
            events.note(f"{event.study} · {data['heading']}; {data['device']}, {data['runner']} runner")
        elif event.kind == "plan":
            events.note("; ".join(f"{subject}: {text}" for subject, text in data["lines"].items()))
        elif event.kind in ("note", "warning"):
            getattr(events, event.kind)(str(data["line"]))
        elif event.kind == "state":
            reason = f": {data['reason']}" if data.get("reason") else ""
            events.note(f"{event.study} is {data['state']}{reason}")
    except (KeyError, TypeError, AttributeError):
        return
