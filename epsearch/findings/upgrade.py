"""A ledger of an older version is brought up to date."""

from typing import NamedTuple

from epsearch.findings.listing import opened
from epsearch.session.session import upgrade_store
from results.ledger.schema import VERSION
from results.ledger.url import LedgerUrl


class Upgraded(NamedTuple):
    """What `epsearch db upgrade` did. told: one line; empty where the ledger was up to date."""

    ledger: str
    version: int
    told: str


def upgrade(storage: LedgerUrl) -> Upgraded:
    """Brings a ledger up to the schema of this version. Raises UsageError."""
    with opened(storage, open_it=upgrade_store) as store:
        return Upgraded(str(storage), VERSION, store.told)
