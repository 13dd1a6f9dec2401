"""The lease of a study: only the process that holds it may write to the study."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from epsearch.events import Listener, Warned, stops
from epsearch.failures.errors import Cancelled, Interrupted, TimeSpent, UsageError
from epsearch.failures.lines import failure
from epsearch.failures.stopping import KEPT, RESUMES
from epsearch.session.recording import Recorder
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseHeld, StudyCancelled
from results.ledger.writers.holder import here
from results.ledger.writers.lease import LEASE_SECONDS, RENEW
from results.ledger.writers.states import CANCELLED, FAILED, FINISHED

POLL_SECONDS = 1.0  # between two tries for a lease that another run has
TICK_SECONDS = 1.0  # between two writes of events, and two checks for a cancellation


class StudyLease:
    """A lease held by this process: renews it, stores events, and checks for a cancellation, in a thread."""

    def __init__(self, store: Store, listener: Listener, waited: bool = False) -> None:
        self.listener = Recorder(listener)
        """The listener to train with."""
        self.waited = waited
        """True if another run had the lease first, and this one waited for its end."""
        self._store = store
        self._entered = False
        self._over = threading.Event()
        # A daemon, which does not keep a process alive; a thread, as training may block others for minutes.
        self._thread = threading.Thread(target=self._work, name="lease", daemon=True)
        self._thread.start()

    def runs(self) -> None:
        """Sets the state of the study to running; `end` sets its final state."""
        self._store.leases.begin()
        self._entered = True

    def end(self, error: BaseException | None) -> None:
        """Stores the final state of the training, and releases the lease."""
        self._over.set()
        self._thread.join()
        self._store.retries = RetryPolicy()  # the lease expires by itself if the database is gone
        with suppress(StoreError):
            if rows := self.listener.take(all_rows=True):
                self._store.events.append(rows)
            if self._entered and (state := self._state(error)) is not None:
                self._store.leases.enter(state, _reason(error) if error is not None and state == FAILED else "")
        with suppress(StoreError):
            self._store.leases.release()

    def _state(self, error: BaseException | None) -> str | None:
        """Returns the state after the end; None after an interruption, which is no state."""
        if error is None:
            return FINISHED
        if isinstance(error, TimeSpent | KeyboardInterrupt | SystemExit):
            return None
        if isinstance(error, Interrupted):
            return CANCELLED if self.listener.stop else None
        return FAILED

    def _work(self) -> None:
        """Renews the lease, writes events, and checks for a cancellation, until the end."""
        renewed = time.monotonic()
        while not self._over.wait(min(TICK_SECONDS, RENEW * LEASE_SECONDS)):
            rows = self.listener.take()
            # If the database is gone, the next round tries again.
            try:
                if rows:
                    self._store.events.append(rows)
                    renewed = time.monotonic()
                elif time.monotonic() - renewed > RENEW * LEASE_SECONDS:
                    # If another process has taken the lease, the next write fails.
                    self._store.leases.renew()
                    renewed = time.monotonic()
                if self._store.leases.cancelling():
                    self.listener.stop = True
            except StoreError:
                self.listener.give_back(rows)


def _reason(error: BaseException) -> str:
    """Returns the reason of a failure in one line, without a hint how to resume."""
    return " ".join(failure(error)[0].removesuffix(f"; {KEPT}").removesuffix(f"; {RESUMES}").split())


@contextmanager
def hold(store: Store, name: str, listener: Listener, wait: bool = False, resume: bool = False) -> Iterator[StudyLease]:
    """Holds the lease of a study, which fences every write of the store, as a context manager.

    A lease whose process was killed on this machine is taken over at once, any other after LEASE_SECONDS without a
    renewal. wait: for the end of another run, which is a UsageError otherwise; resume: also a cancelled study. Raises
    Cancelled; Interrupted where the listener asks to stop.
    """
    lease = StudyLease(store, listener, acquire(store, name, listener, wait, resume))
    try:
        yield lease
    except BaseException as error:
        lease.end(error)
        raise
    lease.end(None)


def acquire(store: Store, name: str, listener: Listener, wait: bool = False, resume: bool = False) -> bool:
    """Takes the lease of a study for the store; returns whether it waited. For arguments and errors see `hold`."""
    notified = False
    while True:
        try:
            store.leases.acquire(name, here(), resume, begin=False)
            return notified
        except StudyCancelled as error:
            raise Cancelled(str(error), error.study) from error
        except LeaseHeld as error:
            if not wait:
                raise UsageError(f"{error}; --wait waits for its end") from error
            if not notified:
                listener(Warned(f"{error}; waiting for its end"))
                notified = True
        if stops(listener):
            raise Interrupted
        time.sleep(POLL_SECONDS)
