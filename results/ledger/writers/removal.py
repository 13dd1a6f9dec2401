"""Removal of members that no study uses, decided while no study can begin, grow or store results.

All functions work in the transaction of their connection.
"""

from collections.abc import Callable, Collection

from sqlalchemy import Connection, false

from results.ledger import schema
from results.ledger.database import in_groups
from results.ledger.writers import claims

DECIDING_SECONDS = 240
"""Longest time for which a transaction may compute what is unused before PostgreSQL ends it."""

Unused = Callable[[], Collection[str]]
"""Returns the keys of members that no study uses, by what other connections read."""


def drop_unused(connection: Connection, unused: Unused) -> frozenset[str]:
    """Deletes unused members with their certificates; returns their keys. Members that a study has claimed stay."""
    _lock_members(connection)
    keys = frozenset(unused())
    claims.lock(connection)
    keys -= claims.live_claims(connection, sorted(keys)).keys()
    for group in in_groups(sorted({*keys, *map(schema.perturbed_key, keys)})):
        for table in (schema.runs, schema.certificates, schema.reruns):
            connection.execute(table.delete().where(table.c.key.in_(group)))
    return keys


def _lock_members(connection: Connection) -> None:
    """Lets nobody else write studies or runs until the transaction ends; everybody can read them."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{DECIDING_SECONDS}s'")
        tables = f"{schema.studies.name}, {schema.runs.name}"
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")  # conflicts with all writing
    else:
        # SQLite has one writer at a time, from the first statement that could write.
        connection.execute(schema.studies.delete().where(false()))
