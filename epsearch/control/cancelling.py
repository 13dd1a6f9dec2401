"""Cancels a study from any terminal; kills its process if it has not stopped after a deadline."""

import time
from contextlib import suppress
from pathlib import Path

import psutil

from epsearch.control.writing import writable_ledger
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.findings.listing import status
from epsearch.operating_system import kill_group, leads_group
from epsearch.status import StudyStatus
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.states import CANCELLED, CANCELLING, LeaseState

POLL_SECONDS = 0.2
AFTER_A_KILL = 10.0  # seconds that a killed process may take to disappear


def cancel(name: str, storage: LedgerUrl, out: Path, deadline: float) -> StudyStatus:
    """Cancels a study, and returns its status then; finished members stay stored.

    deadline: seconds until its process is killed, with its children. Kills the process only on this machine. Elsewhere
    raises Unavailable after the deadline; that process stops the next time it reads the ledger. Raises UsageError if
    the study is not being trained.
    """
    with writable_ledger(name, storage) as store:
        current = store.leases.cancel(name)
        if current is None or current.state not in (CANCELLING, CANCELLED):
            state = "has never been trained" if current is None else f"is {current.state}"
            raise UsageError(f"study {name!r} {state}: there is nothing to cancel")
        current = _wait(store, current, name, deadline)
        if current.state == CANCELLING:
            if not _is_local(current.holder):
                elsewhere = ", on another machine," if here().boot else ""  # which only Linux tells
                raise Unavailable(
                    f"study {name!r} is being cancelled; {current.holder}{elsewhere} stops when it reads the ledger "
                    "next"
                )
            kill(current.holder)
            _wait(store, current, name, AFTER_A_KILL)
        return status(store, name, storage, out)


def kill(holder: Holder) -> None:
    """Kills a process of this machine with its children, and with its process group if it leads one."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(holder.pid)
        tree = [*process.children(recursive=True), process]
        if holder.gone():  # its id may belong to another process now
            return
        leads = leads_group(holder.pid)
        for member in tree:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        if leads:
            kill_group(holder.pid)


def _is_local(holder: Holder) -> bool:
    """Returns whether the holder is another process of this machine."""
    holder_here = here()
    return (
        bool(holder_here.boot)
        and (holder.boot, holder.namespace) == (holder_here.boot, holder_here.namespace)
        and holder.pid != holder_here.pid
    )


def _wait(store: Store, current: LeaseState, name: str, seconds: float) -> LeaseState:
    """Waits up to `seconds` until the state is no longer "cancelling"; returns the last state read."""
    deadline = time.monotonic() + seconds
    while current.state == CANCELLING and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        current = store.leases.state_of(name) or current
        if current.state == CANCELLING and not current.held:  # its process has ended
            current = store.leases.cancel(name) or current
    return current
