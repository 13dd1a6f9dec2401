"""The lease of a study, its row and its fence.

The row of a lease is never deleted, and each acquisition gets the next token. Every write begins with `guard`, which
locks the row until the transaction ends: only the holder of the last token writes, however long another process was
stopped before it tried. The clock of the database alone decides when a lease expires.

All functions work in the transaction of their connection.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Row, and_, literal_column, select

from results.ledger import schema
from results.ledger.writers.errors import LeaseLost
from results.ledger.writers.holder import Holder
from results.ledger.writers.states import FOLLOWS, RUNNING, LeaseState

LEASE_SECONDS = 60.0
"""How long a lease lasts after it was acquired or renewed, by the database's clock."""
RENEW = 1 / 3
"""Share of these seconds after which the holder renews it."""
LONGEST = 2.0
"""A lease that expires after more than LONGEST × LEASE_SECONDS is damaged, or the clock was set back: it is over."""
CLOCKS = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)",
}
"""Database -> its clock in SQL; PostgreSQL's `now()` is when the transaction began, which may have waited since."""

leases = schema.leases


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


def expiry(connection: Connection) -> ColumnElement[float]:
    """Returns, in SQL, when a lease expires that is acquired or renewed now."""
    return now(connection) + LEASE_SECONDS


def renew(connection: Connection, lease: Lease) -> bool:
    """Lets a lease last LEASE_SECONDS from now, also one that is over; returns False if it was taken or released."""
    values = {"expires": expiry(connection)}
    return connection.execute(leases.update().where(is_current(lease)).values(values)).rowcount == 1


def guard(connection: Connection, lease: Lease) -> None:
    """Raises LeaseLost unless the lease is ours; renews it, and keeps it ours until the transaction ends.

    It is ours as long as nobody else has taken it, also when it is over: then this takes it again, so that nobody
    writes under a lease that has not been renewed. This is to be the first statement of the transaction: it writes,
    whereby SQLite locks its file, and PostgreSQL the row.
    """
    if not renew(connection, lease):
        token = connection.execute(select(leases.c.token).where(leases.c.name == lease.name)).scalar_one_or_none()
        raise LeaseLost(lease.name, released=token == lease.token)


def state_of(connection: Connection, name: str) -> LeaseState | None:
    """Returns how a study stands; None for one whose lease nobody has ever taken."""
    return states(connection, leases.c.name == name).get(name)


def states(connection: Connection, where: ColumnElement[bool] | None = None) -> dict[str, LeaseState]:
    """Returns study -> how it stands, for all studies whose lease has ever been taken.

    What is damaged of a lease, which has no checksum, says nothing: as if the study had been left running.
    """
    left = (leases.c.expires - now(connection)).label("left")
    query = select(leases, left, lasts(connection).label("lasts"))
    rows = connection.execute(query if where is None else query.where(where)).all()
    return {row.name: _state(row) for row in rows if isinstance(row.name, str)}


def _state(row: Row[Any]) -> LeaseState:
    state = row.state if row.state in FOLLOWS else RUNNING
    reason, token = (row.reason if isinstance(row.reason, str) else ""), (row.token if type(row.token) is int else 0)
    changed = row.changed if schema.is_moment(row.changed) else 0.0
    return LeaseState(state, reason, changed, token, Holder.from_json(row.holder), row.left if row.lasts else 0.0)


def lasts(connection: Connection) -> ColumnElement[bool]:
    """Returns, in SQL, whether a lease has not expired."""
    clock = now(connection)
    return and_(leases.c.expires > clock, leases.c.expires <= clock + LONGEST * LEASE_SECONDS)


def is_current(lease: Lease) -> ColumnElement[bool]:
    """Returns, in SQL, whether a row has this token, and was not released."""
    # By a clock before 1970 a lease expires below 0; 0 is one that was released.
    return and_(leases.c.name == lease.name, leases.c.token == lease.token, leases.c.expires != 0)
