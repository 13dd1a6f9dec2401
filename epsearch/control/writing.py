"""Opens a ledger to change one of its studies."""

from collections.abc import Iterator
from contextlib import contextmanager

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import open_ledger, study_names
from epsearch.session.session import open_store
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from trainers.spelling import unknown


@contextmanager
def writable_ledger(name: str | None, storage: LedgerUrl) -> Iterator[Store]:
    """Opens an existing ledger to write to. Raises UsageError if it has no study of that name."""
    with open_ledger(storage) as store:  # opened for reading first, so that a missing ledger is not created
        names = study_names(store)
    if name is not None and name not in names:
        raise UsageError(unknown("study", name, names))
    with open_store(storage) as store:
        yield store
