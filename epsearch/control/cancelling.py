"""A study that is being trained is asked to stop, from any terminal; whoever does not, is killed after a deadline."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from epsearch.control.named import changing
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.findings.listing import status
from epsearch.status import StudyStatus
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.states import CANCELLED, CANCELLING, Standing

POLL_SECONDS = 0.2
AFTER_A_KILL = 10.0  # seconds that a killed process may take to disappear


def cancel(name: str, storage: LedgerUrl, out: Path, deadline: float) -> StudyStatus:
    """Cancels a study; what is finished is kept. Returns its status then.

    deadline: seconds that its process has to stop by itself; then it is killed, with all that it has started, if it is
    on this machine. Raises UsageError where nobody trains it and it has ended; Unavailable where its process is on
    another machine and has not stopped by then: it will, as soon as it looks into the ledger.
    """
    with changing(name, storage) as store:
        there = store.leases.cancel(name)
        if there is None or there.state not in (CANCELLING, CANCELLED):
            state = "has never been trained" if there is None else f"is {there.state}"
            raise UsageError(f"study {name!r} {state}: there is nothing to cancel")
        there = _until(store, there, name, deadline)
        if there.state == CANCELLING:
            if not _near(there.holder):
                raise Unavailable(
                    f"study {name!r} is to be cancelled, but {there.holder} has not stopped by now and cannot be "
                    "killed from here; it stops as soon as it looks into the ledger"
                )
            kill(there.holder)
            _until(store, there, name, AFTER_A_KILL)
        return status(store, name, storage, out)


def kill(holder: Holder) -> None:
    """Kills a process of this machine with all that it has started, and its process group where it leads that."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(holder.pid)
        family = [*process.children(recursive=True), process]
        if holder.gone():  # its number may have gone to another process
            return
        leads = hasattr(os, "killpg") and os.getpgid(holder.pid) == holder.pid
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        if leads:
            with suppress(ProcessLookupError):
                os.killpg(holder.pid, signal.SIGKILL)


def _near(holder: Holder) -> bool:
    """Whether the holder's process can be seen from here."""
    own = here()
    return bool(own.boot) and (holder.boot, holder.namespace) == (own.boot, own.namespace) and holder.pid != own.pid


def _until(store: Store, there: Standing, name: str, seconds: float) -> Standing:
    """How the study stands once it is cancelled, or has ended in another way, or the seconds are over."""
    deadline = time.monotonic() + seconds
    while there.state == CANCELLING and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        there = store.leases.standing(name) or there
        if there.state == CANCELLING and not there.held:  # its process ended without a word
            there = store.leases.cancel(name) or there
    return there
