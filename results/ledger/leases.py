"""Leases: one writer per study. Claims: which of several studies trains a member that they have in common.

The row of a lease stays for ever, and whoever takes the lease gets the next token. Every write begins with `guard`,
which locks the row until the transaction ends: only the holder of the last token writes, however long another process
was stopped before it tried. The clock of the database alone says when a lease expires. A claim is live as long as the
lease under which it was made, so that claims need no time of their own.

All functions work in the transaction of their connection. A transaction locks its lease first and all claims last, so
that no two wait for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Double, and_, exists, func, literal_column, not_, select

from results.ledger import schema
from results.ledger.database import in_groups, insertion
from results.ledger.errors import LeaseHeld, LeaseLost
from results.ledger.holder import Holder

LEASE_SECONDS = 60.0
"""How long a lease lasts after it was acquired or renewed, by the database's clock."""
RENEW = 1 / 3
"""Share of these seconds after which the holder renews it."""
LONGEST = 2.0
"""Leases that expire after more than so many of LEASE_SECONDS are damaged, or the clock was set back: they are over."""
CLAIMING = 0x65707365616C63  # "epsealc"
"""Number of PostgreSQL's lock under which claims change."""
CLOCKS = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)",
}
"""Database -> its clock in SQL; PostgreSQL's `now()` is when the transaction began, which may have waited since."""

leases, claims = schema.leases, schema.claims


@dataclass(frozen=True)
class Lease:
    """The right to write to a study, until somebody else takes it."""

    name: str
    """The study."""
    token: int
    """Number of this acquisition among all of the study, from 1: no later one has the same."""


def now(connection: Connection) -> ColumnElement[float]:
    """Returns the database's clock in SQL: seconds since 1970, UTC."""
    return literal_column(CLOCKS[connection.dialect.name], Double)


def acquire(connection: Connection, name: str, holder: Holder) -> Lease:
    """Takes the lease of a study: a new one, one that is over or released, or one whose holder is gone.

    holder: as `Holder.acquiring` returns it; the same once more takes what it took before. Raises LeaseHeld.
    """
    row = leases.c.name == name
    there = connection.execute(select(leases.c.token, leases.c.holder).where(row)).one_or_none()
    free = not_(_lasts(connection)) | (leases.c.holder == holder.to_json())
    if there is not None and Holder.from_json(there.holder).gone():
        free |= leases.c.token == there.token  # unless somebody else has taken it from the dead one since
    values = {"holder": holder.to_json(), "expires": now(connection) + LEASE_SECONDS}
    # One statement, so that of many who try at once one wins; the others wait for it and see what it has written.
    statement = insertion(connection, leases).values(name=name, token=1, **values)
    taking = statement.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"token": leases.c.token + 1, **values}, where=free
    )
    token = connection.execute(taking.returning(leases.c.token)).scalar_one_or_none()
    if token is None:
        left = (leases.c.expires - now(connection)).label("left")
        held = connection.execute(select(leases.c.holder, left).where(row)).one()
        raise LeaseHeld(name, Holder.from_json(held.holder), max(0.0, held.left))
    lock_claims(connection)
    connection.execute(claims.delete().where(claims.c.study == name))  # of those who had it before
    return Lease(name, int(token))


def renew(connection: Connection, lease: Lease) -> bool:
    """Lets a lease last LEASE_SECONDS from now, also one that is over; returns False if it was taken or released."""
    values = {"expires": now(connection) + LEASE_SECONDS}
    return connection.execute(leases.update().where(_ours(lease)).values(values)).rowcount == 1


def release(connection: Connection, lease: Lease) -> None:
    """Gives a lease back, with its claims; nothing is done if somebody else has it."""
    connection.execute(leases.update().where(_ours(lease)).values(expires=0.0))
    lock_claims(connection)
    connection.execute(claims.delete().where(claims.c.study == lease.name, claims.c.token == lease.token))


def guard(connection: Connection, lease: Lease) -> None:
    """Raises LeaseLost unless the lease is ours, and keeps it ours until the transaction ends.

    It is ours as long as nobody else has taken it, also when it is over. This is to be the first statement of the
    transaction: it writes, although nothing changes, because SQLite locks its file, and PostgreSQL the row, to write.
    """
    if connection.execute(leases.update().where(_ours(lease)).values(token=leases.c.token)).rowcount != 1:
        token = connection.execute(select(leases.c.token).where(leases.c.name == lease.name)).scalar_one_or_none()
        raise LeaseLost(lease.name, released=token == lease.token)


def lock_claims(connection: Connection) -> None:
    """Keeps others from changing claims until the transaction ends; SQLite has one writer at a time in any case."""
    if connection.dialect.name == "postgresql":
        # Claims are few and made in milliseconds. Locks of single rows would be taken in another order by everyone.
        connection.execute(select(func.pg_advisory_xact_lock(CLAIMING)))


def claim(connection: Connection, lease: Lease, keys: Sequence[str]) -> set[str]:
    """Claims those of the keys on which there is no live claim, and returns the ones that are then claimed by us.

    After `guard`, `lock_claims`, and a look at which keys have a record: they are not to be among these.
    """
    ours: set[str] = set()
    for group in in_groups(sorted(keys)):
        among = claims.c.key.in_(group)
        connection.execute(claims.delete().where(among, not_(_live(connection))))
        rows = [{"key": key, "study": lease.name, "token": lease.token} for key in group]
        connection.execute(insertion(connection, claims).on_conflict_do_nothing(), rows)
        mine = (claims.c.study == lease.name) & (claims.c.token == lease.token)
        ours |= set(connection.execute(select(claims.c.key).where(among, mine)).scalars())
    return ours


def drop_claims(connection: Connection, keys: Sequence[str]) -> None:
    """Deletes all claims on keys, whosever they are: those keys have records."""
    lock_claims(connection)
    for group in in_groups(sorted(keys)):
        connection.execute(claims.delete().where(claims.c.key.in_(group)))


def claimed(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """Returns key -> study that has a live claim on it, for those keys on which there is one."""
    query, found = select(claims.c.key, claims.c.study).where(_live(connection)), dict[str, str]()
    for group in in_groups(keys):
        found |= {row.key: row.study for row in connection.execute(query.where(claims.c.key.in_(group)))}
    return found


def _ours(lease: Lease) -> ColumnElement[bool]:
    return and_(leases.c.name == lease.name, leases.c.token == lease.token, leases.c.expires > 0)


def _lasts(connection: Connection) -> ColumnElement[bool]:
    """Returns, in SQL, whether a lease has not expired."""
    clock = now(connection)
    return and_(leases.c.expires > clock, leases.c.expires <= clock + LONGEST * LEASE_SECONDS)


def _live(connection: Connection) -> ColumnElement[bool]:
    """Returns, in SQL, whether the lease under which a claim was made has neither expired nor been taken over."""
    of_it = (leases.c.name == claims.c.study) & (leases.c.token == claims.c.token)
    return exists().where(of_it, _lasts(connection)).correlate(claims)
