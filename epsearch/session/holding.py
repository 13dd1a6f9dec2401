"""One writer per study: whoever trains a study holds its lease in the ledger, and lets nobody else write to it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from epsearch.events import Events
from epsearch.failures.errors import Interrupted, UsageError
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseHeld
from results.ledger.writers.holder import here
from results.ledger.writers.leases import LEASE_SECONDS, RENEW, Lease

POLL_SECONDS = 1.0  # between two looks at a lease that another run has


@contextmanager
def holding(store: Store, name: str, events: Events, wait: bool = False) -> Iterator[None]:
    """Within it, nobody but this process writes to the study: every write of the store is fenced by its lease.

    A lease whose process has been killed on this machine is taken over at once, any other once it has not been renewed
    for LEASE_SECONDS. Raises UsageError while another run has it, or waits for that run's end; Interrupted where the
    listener wants to stop meanwhile.
    """
    lease = _waited_for(store, name, events) if wait else _acquired(store, name)
    over = threading.Event()
    # A daemon: it must not keep a process alive. A thread of its own, as training may take the others for minutes.
    renewing = threading.Thread(target=_renew, args=(store, lease, over), name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
        store.patience = Patience()  # it expires by itself where the database has gone
        with suppress(StoreError):
            store.release(lease)


def _acquired(store: Store, name: str) -> Lease:
    try:
        return store.acquire(name, here())
    except LeaseHeld as error:
        raise UsageError(f"{error}; --wait waits for its end") from error


def _waited_for(store: Store, name: str, events: Events) -> Lease:
    told = False
    while True:
        try:
            return store.acquire(name, here())
        except LeaseHeld as error:
            if not told:
                events.warning(f"{error}; waiting for its end")
                told = True
        if events.stop_wanted():
            raise Interrupted
        time.sleep(POLL_SECONDS)


def _renew(store: Store, lease: Lease, over: threading.Event) -> None:
    """Renews the lease until it is over. One that somebody else has taken fails with the next write."""
    while not over.wait(RENEW * LEASE_SECONDS):
        with suppress(StoreError):  # the next try, or the next write, finds the database again, or does not
            store.renew(lease)
