"""Claims: the study that trains a member which several studies need.

A claim is live as long as the lease under which it was made, so that claims need no time of their own.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, exists, func, not_, select

from results.ledger import schema
from results.ledger.database import in_groups, insertion
from results.ledger.writers.lease import Lease, guard, lasts
from results.ledger.writers.repository import Repository, reads, writes

CLAIMING = 0x65707365616C63  # "epsealc"
"""Number of PostgreSQL's lock under which claims change."""

leases, claims = schema.leases, schema.claims


class Claims(Repository):
    """The claims of a store."""

    @writes
    def claim(self, connection: Connection, keys: Collection[str]) -> set[str]:
        """Claims keys for our study, and returns those that are claimed by it now: it is to train their members.

        The others have a record or a live claim of another study. Raises LeaseLost.
        """
        lease = self._lease()
        guard(connection, lease)
        # Before records are read: a transaction that adds one drops the claim on it, too.
        lock(connection)
        stored = self._access.load(connection, schema.runs, schema.from_row, sorted(set(keys)))
        ours: set[str] = set()
        for group in in_groups(sorted(set(keys) - stored.keys())):
            among = claims.c.key.in_(group)
            connection.execute(claims.delete().where(among, not_(_live(connection))))
            rows = [{"key": key, "study": lease.name, "token": lease.token} for key in group]
            connection.execute(insertion(connection, claims).on_conflict_do_nothing(), rows)
            mine = (claims.c.study == lease.name) & (claims.c.token == lease.token)
            ours |= set(connection.execute(select(claims.c.key).where(among, mine)).scalars())
        return ours

    @reads(claims, dict)
    def claimants(self, connection: Connection, keys: Collection[str]) -> dict[str, str]:
        """Returns key -> study that has claimed it, for those keys that a study is training now."""
        return live_claims(connection, sorted(set(keys)))


def lock(connection: Connection) -> None:
    """Keeps others from changing claims until the transaction ends; SQLite has one writer at a time in any case.

    A transaction locks its lease first, then all claims, then all events, so that no two wait for each other.
    """
    if connection.dialect.name == "postgresql":
        # Claims are few and made in milliseconds. Locks of single rows would be taken in another order by everyone.
        connection.execute(select(func.pg_advisory_xact_lock(CLAIMING)))


def drop(connection: Connection, keys: Sequence[str]) -> None:
    """Deletes the claims of all studies on keys that have records."""
    lock(connection)
    for group in in_groups(sorted(keys)):
        connection.execute(claims.delete().where(claims.c.key.in_(group)))


def drop_all(connection: Connection, study: str) -> None:
    """Deletes all claims of a study."""
    lock(connection)
    connection.execute(claims.delete().where(claims.c.study == study))


def drop_of(connection: Connection, lease: Lease) -> None:
    """Deletes the claims that were made under a lease."""
    lock(connection)
    connection.execute(claims.delete().where(claims.c.study == lease.name, claims.c.token == lease.token))


def live_claims(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """Returns key -> study that has a live claim on it, for those keys on which there is one."""
    query, studies = select(claims.c.key, claims.c.study).where(_live(connection)), dict[str, str]()
    for group in in_groups(keys):
        studies |= {row.key: row.study for row in connection.execute(query.where(claims.c.key.in_(group)))}
    return studies


def _live(connection: Connection) -> ColumnElement[bool]:
    """Returns, in SQL, whether the lease under which a claim was made has neither expired nor been taken over."""
    of_it = (leases.c.name == claims.c.study) & (leases.c.token == claims.c.token)
    return exists().where(of_it, lasts(connection)).correlate(claims)
