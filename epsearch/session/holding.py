"""One writer per study: whoever trains a study holds its lease in the ledger, and lets nobody else write to it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from epsearch.events import Listener, Warned, stops
from epsearch.failures.errors import Cancelled, Interrupted, TimeSpent, UsageError
from epsearch.failures.lines import failure
from epsearch.failures.stopping import KEPT, RESUMES
from epsearch.session.recording import Recorder
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseHeld, StudyCancelled
from results.ledger.writers.holder import here
from results.ledger.writers.lease import LEASE_SECONDS, RENEW
from results.ledger.writers.states import CANCELLED, FAILED, FINISHED

POLL_SECONDS = 1.0  # between two looks at a lease that another run has
TICK_SECONDS = 1.0  # between two looks at what is to be told, and at whether the study is being cancelled


class Held:
    """A study that is ours: what it is told is kept in the ledger, and it can be cancelled from there."""

    def __init__(self, store: Store, listener: Listener) -> None:
        self.listener = Recorder(listener)
        """The listener to train with."""
        self._store = store
        self._entered = False
        self._over = threading.Event()
        # A daemon: it must not keep a process alive. A thread of its own, as training may take the others for minutes.
        self._keeping = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._keeping.start()

    def runs(self) -> None:
        """From now on the study is running, whatever it was before; what ends it says what it is then."""
        self._store.leases.begin()
        self._entered = True

    def end(self, error: BaseException | None) -> None:
        """Keeps how the training ended, and gives the lease back."""
        self._over.set()
        self._keeping.join()
        self._store.patience = Patience()  # it expires by itself where the database has gone
        with suppress(StoreError):
            if rows := self.listener.take(all_of_it=True):
                self._store.events.append(rows)
            if self._entered and (state := self._state(error)) is not None:
                self._store.leases.enter(state, _reason(error) if error is not None and state == FAILED else "")
        with suppress(StoreError):
            self._store.leases.release()

    def _state(self, error: BaseException | None) -> str | None:
        """The state after an end; None where it was interrupted, which is no state."""
        if error is None:
            return FINISHED
        if isinstance(error, TimeSpent | KeyboardInterrupt | SystemExit):
            return None
        if isinstance(error, Interrupted):
            return CANCELLED if self.listener.stop else None
        return FAILED

    def _keep(self) -> None:
        """Until the end: renews the lease, writes events, and hears whether the study is to be cancelled."""
        renewed = time.monotonic()
        while not self._over.wait(min(TICK_SECONDS, RENEW * LEASE_SECONDS)):
            rows = self.listener.take()
            # The next try, or the next write, finds the database again, or does not.
            try:
                if rows:
                    self._store.events.append(rows)
                    renewed = time.monotonic()
                elif time.monotonic() - renewed > RENEW * LEASE_SECONDS:
                    # One that somebody else has taken is told by the next write.
                    self._store.leases.renew()
                    renewed = time.monotonic()
                if self._store.leases.cancelling():
                    self.listener.stop = True
            except StoreError:
                self.listener.give_back(rows)


def _reason(error: BaseException) -> str:
    """Why a study failed, in one line; how to go on is said by whoever shows it."""
    return " ".join(failure(error).message.removesuffix(f"; {KEPT}").removesuffix(f"; {RESUMES}").split())


@contextmanager
def holding(store: Store, name: str, listener: Listener, wait: bool = False, resume: bool = False) -> Iterator[Held]:
    """Within it, nobody but this process writes to the study: every write of the store is fenced by its lease.

    A lease whose process has been killed on this machine is taken over at once, any other once it has not been renewed
    for LEASE_SECONDS. resume: also a study that was cancelled. Raises UsageError while another run has it, or waits for
    that run's end; Cancelled; Interrupted where the listener wants to stop meanwhile.
    """
    acquire(store, name, listener, wait, resume)
    held = Held(store, listener)
    try:
        yield held
    except BaseException as error:
        held.end(error)
        raise
    held.end(None)


def acquire(store: Store, name: str, listener: Listener, wait: bool = False, resume: bool = False) -> None:
    """Takes the lease of a study for the store; arguments and errors as of `holding`."""
    told = False
    while True:
        try:
            store.leases.acquire(name, here(), resume, begin=False)
            return
        except StudyCancelled as error:
            raise Cancelled(str(error), error.study) from error
        except LeaseHeld as error:
            if not wait:
                raise UsageError(f"{error}; --wait waits for its end") from error
            if not told:
                listener(Warned(f"{error}; waiting for its end"))
                told = True
        if stops(listener):
            raise Interrupted
        time.sleep(POLL_SECONDS)
