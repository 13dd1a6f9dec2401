"""Stored studies by their names, to be changed."""

from collections.abc import Iterator
from contextlib import contextmanager

from epsearch.failures.errors import UsageError, unknown
from epsearch.findings.listing import known, opened
from epsearch.session.session import open_store
from results.ledger.store import Store
from results.ledger.url import LedgerUrl


@contextmanager
def changing(name: str | None, storage: LedgerUrl) -> Iterator[Store]:
    """A ledger to write to, which has a study of that name. Raises UsageError."""
    with opened(storage) as store:  # reading: a ledger that is not there must not be made
        names = known(store)
    if name is not None and name not in names:
        raise UsageError(unknown("study", name, names))
    with open_store(storage) as store:
        yield store
