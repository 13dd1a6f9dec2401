"""Doors to studies: the same verbs on a ledger of this machine and on a service over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epsearch.doors.door import Door
from epsearch.failures.errors import UsageError


@contextmanager
def door(server: str | None, out: Path, storage: str | None) -> Iterator[Door]:
    """Opens the door to a service, or to a ledger without one; storage: the ledger's URL. Raises UsageError."""
    if server is None:
        from epsearch.doors.ledger import LedgerDoor  # late: the other side need not be installed

        yield LedgerDoor(out, storage)
        return
    if storage:
        raise UsageError("--storage cannot be combined with --server: the service chooses it")
    from epsearch.doors.client import Client
    from epsearch.doors.service import ServiceDoor

    with Client(server) as client:
        yield ServiceDoor(client, out)
