"""Leases: one writer per study, and the study's state, which only that writer changes.

The row of a lease stays for ever, and whoever takes the lease gets the next token. Every write begins with `guard`,
which locks the row until the transaction ends: only the holder of the last token writes, however long another process
was stopped before it tried. The clock of the database alone says when a lease expires.

All functions work in the transaction of their connection.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Row, and_, literal_column, not_, select

from results.ledger import schema
from results.ledger.database import insertion
from results.ledger.writers.errors import LeaseHeld, LeaseLost, NotAllowed, StudyCancelled
from results.ledger.writers.holder import Holder
from results.ledger.writers.states import CANCELLED, CANCELLING, FOLLOWS, QUEUED, RUNNING, STOPPED, Standing

LEASE_SECONDS = 60.0
"""How long a lease lasts after it was acquired or renewed, by the database's clock."""
RENEW = 1 / 3
"""Share of these seconds after which the holder renews it."""
LONGEST = 2.0
"""Leases that expire after more than so many of LEASE_SECONDS are damaged, or the clock was set back: they are over."""
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


def acquire(connection: Connection, name: str, holder: Holder, resume: bool = True) -> Lease:
    """Takes the lease of a study: a new one, one that is over or released, or one whose holder is gone.

    The study's state stays as it is until `begin`; that of a new one is `running`.

    holder: as `Holder.acquiring` returns it; the same once more takes what it took before. resume: also one that was
    cancelled. Raises LeaseHeld and StudyCancelled.
    """
    there = standing(connection, name)
    free = not_(lasts(connection)) | (leases.c.holder == holder.to_json())
    if there is not None and there.holder.gone():
        free |= leases.c.token == there.token  # unless somebody else has taken it from the dead one since
    if not resume:
        free &= leases.c.state.not_in(STOPPED)
    clock = now(connection)
    values = {"holder": holder.to_json(), "expires": clock + LEASE_SECONDS}
    # One statement, so that of many who try at once one wins; the others wait for it and see what it has written.
    begun = {"token": 1, "state": RUNNING, "reason": "", "changed": clock}
    statement = insertion(connection, leases).values(name=name, **begun, **values)
    taking = statement.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"token": leases.c.token + 1, **values}, where=free
    )
    token = connection.execute(taking.returning(leases.c.token)).scalar_one_or_none()
    if token is None:
        there = standings(connection, leases.c.name == name)[name]
        if not (resume or there.held) and there.state in STOPPED:
            raise StudyCancelled(name)
        raise LeaseHeld(name, there.holder, max(0.0, there.seconds))
    return Lease(name, int(token))


def begin(connection: Connection, lease: Lease) -> None:
    """Lets our study run, whatever it was when we acquired it. Raises LeaseLost."""
    guard(connection, lease)
    values = {"state": RUNNING, "reason": "", "changed": now(connection)}
    connection.execute(leases.update().where(_ours(lease)).values(values))


def renew(connection: Connection, lease: Lease) -> bool:
    """Lets a lease last LEASE_SECONDS from now, also one that is over; returns False if it was taken or released."""
    values = {"expires": now(connection) + LEASE_SECONDS}
    return connection.execute(leases.update().where(_ours(lease)).values(values)).rowcount == 1


def release(connection: Connection, lease: Lease) -> None:
    """Gives a lease back; nothing is done if somebody else has it."""
    connection.execute(leases.update().where(_ours(lease)).values(expires=0.0))


def guard(connection: Connection, lease: Lease) -> None:
    """Raises LeaseLost unless the lease is ours; renews it, and keeps it ours until the transaction ends.

    It is ours as long as nobody else has taken it, also when it is over: then this takes it again, so that nobody
    writes under a lease that has not been renewed. This is to be the first statement of the transaction: it writes,
    whereby SQLite locks its file, and PostgreSQL the row.
    """
    if not renew(connection, lease):
        token = connection.execute(select(leases.c.token).where(leases.c.name == lease.name)).scalar_one_or_none()
        raise LeaseLost(lease.name, released=token == lease.token)


def enter(connection: Connection, lease: Lease, state: str, reason: str = "") -> bool:
    """Lets our study enter a state, and returns whether it was in another one.

    Raises LeaseLost, and NotAllowed where it may not follow the present one.
    """
    guard(connection, lease)
    there = standings(connection, leases.c.name == lease.name)[lease.name].state
    if there != state:
        if there not in FOLLOWS[state]:
            raise NotAllowed(lease.name, there, state)
        values = {"state": state, "reason": reason, "changed": now(connection)}
        connection.execute(leases.update().where(_ours(lease)).values(values))
    return there != state


def cancel(connection: Connection, name: str) -> tuple[Standing, Standing] | None:
    """Lets a study that is being trained begin to be cancelled, and one that is queued or left over be cancelled.

    Returns how it stood and how it stands; None for a study that nobody has trained yet. One that has ended stays as it
    is.
    """
    row = leases.c.name == name
    connection.execute(leases.update().where(row).values(token=leases.c.token))  # nobody changes it meanwhile
    there = standing(connection, name)
    if there is None:
        return None
    wanted = CANCELLING if there.held and there.state != QUEUED else CANCELLED
    if there.state in FOLLOWS[wanted]:
        values: dict[str, object] = {"state": wanted, "reason": "", "changed": now(connection)}
        if wanted == CANCELLED:  # whoever was stopped, and goes on, must not write to it any more
            values |= {"token": leases.c.token + 1, "expires": 0.0}
        connection.execute(leases.update().where(row).values(values))
    return there, standings(connection, row)[name]


def standing(connection: Connection, name: str) -> Standing | None:
    """Returns how a study stands; None for one whose lease nobody has ever taken."""
    return standings(connection, leases.c.name == name).get(name)


def standings(connection: Connection, where: ColumnElement[bool] | None = None) -> dict[str, Standing]:
    """Returns study -> how it stands, for all studies whose lease has ever been taken.

    What is damaged of a lease, which has no checksum, says nothing: as if the study had been left running.
    """
    left = (leases.c.expires - now(connection)).label("left")
    query = select(leases, left, lasts(connection).label("lasts"))
    rows = connection.execute(query if where is None else query.where(where)).all()
    return {row.name: _standing(row) for row in rows if isinstance(row.name, str)}


def _standing(row: Row[Any]) -> Standing:
    state = row.state if row.state in FOLLOWS else RUNNING
    reason, token = (row.reason if isinstance(row.reason, str) else ""), (row.token if type(row.token) is int else 0)
    changed = row.changed if schema.is_moment(row.changed) else 0.0
    return Standing(state, reason, changed, token, Holder.from_json(row.holder), row.left if row.lasts else 0.0)


def lasts(connection: Connection) -> ColumnElement[bool]:
    """Returns, in SQL, whether a lease has not expired."""
    clock = now(connection)
    return and_(leases.c.expires > clock, leases.c.expires <= clock + LONGEST * LEASE_SECONDS)


def _ours(lease: Lease) -> ColumnElement[bool]:
    # By a clock before 1970 a lease expires below 0; 0 is one that was released.
    return and_(leases.c.name == lease.name, leases.c.token == lease.token, leases.c.expires != 0)
