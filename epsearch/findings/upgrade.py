"""A ledger of an older version is brought up to date."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from epsearch.findings.listing import opened
from epsearch.ledger.damage import Unreadable
from epsearch.session.session import stored_loop, sum_up, upgrade_store
from results.ledger.schema import VERSION
from results.ledger.url import LedgerUrl


class Upgraded(NamedTuple):
    """What `epsearch db upgrade` did."""

    ledger: str
    """Its URL, without a password."""
    version: int
    """Of its schema, now."""
    told: str
    """One line; empty where the ledger was up to date."""
    summed_up: int
    """Studies of which there was no summary."""


def upgrade(storage: LedgerUrl, out: Path, tell: Callable[[str], None]) -> Upgraded:
    """Brings a ledger up to the schema of this version, with a summary of every study. Raises UsageError.

    A study without a summary is gone through again, which takes seconds where a strategy fits processes; what has been
    done to the tables is told before.
    """
    with opened(storage, open_it=upgrade_store) as store:
        if store.told:
            tell(store.told)
        there, count = store.summaries(), 0
        for row in store.studies():
            if row.name not in there:
                with suppress(Unreadable):  # `epsearch list` says so; the others are summed up all the same
                    sum_up(stored_loop(row, store, storage, out), row)
                    count += 1
        return Upgraded(str(storage), VERSION, store.told, count)
