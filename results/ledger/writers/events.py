"""Events of a study, by which other programs follow its training.

Identifiers grow with every change of the ledger: a reader asks for the events behind the last that it has read.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from results.ledger import schema
from results.ledger.writers.lease import guard, now
from results.ledger.writers.repository import Repository, reads

KEPT = 10_000
"""Number of the newest events of a study that are stored."""
WRITING = 0x65707365616576  # "epseaev"
"""Number of PostgreSQL's lock under which events get their identifiers, in the order of their commits."""

events = schema.events


class Event(NamedTuple):
    """One event of a study."""

    id: int
    """Number of the change: grows over all studies of the ledger."""
    study: str
    """Its name."""
    token: int
    """Token of the acquisition under which it was written."""
    kind: str
    """`begin`, `plan`, `progress`, `note`, `warning`, `records` or `state`."""
    data: dict[str, Any]
    """Its fields, as JSON."""
    time: float
    """Seconds since 1970, by the database's clock."""


class Events(Repository):
    """The events of a store."""

    def append(self, new: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Appends (kind, data) to the events of our study. Raises LeaseLost; tried once, as events are not results."""
        lease = self._lease()
        with self._access.transaction("write to") as connection:
            guard(connection, lease)
            append(connection, lease.name, lease.token, new)

    @reads(events, list)
    def read(self, connection: Connection, study: str | None, after: int = 0, most: int = KEPT) -> list[Event]:
        """Returns up to `most` events of a study after a given id, oldest first; unreadable ones are left out.

        study: None for the events of all studies.
        """
        query, readable = select(events).order_by(events.c.id), list[Event]()
        query = query if study is None else query.where(events.c.study == study)
        while rows := connection.execute(query.where(events.c.id > after).limit(most - len(readable))).all():
            after = rows[-1].id
            for row in rows:
                with suppress(schema.Damaged):
                    readable.append(_event(row))
        return readable

    @reads(events, int)
    def last(self, connection: Connection) -> int:
        """Returns the number of the newest event, 0 without one."""
        return int(connection.execute(select(func.coalesce(func.max(events.c.id), 0))).scalar_one())

    @reads(events, lambda: None)
    def newest(self, connection: Connection, study: str, *kinds: str) -> Event | None:
        """Returns the newest event of a study, of one of these kinds if some are named; None where it is unreadable."""
        query = select(events).where(events.c.study == study).order_by(events.c.id.desc())
        query = query.where(events.c.kind.in_(kinds)) if kinds else query
        row = connection.execute(query.limit(1)).one_or_none()
        with suppress(schema.Damaged):
            return None if row is None else _event(row)
        return None


def append(connection: Connection, study: str, token: int, new: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Appends (kind, data) of a study; the caller has checked that the study may be written to.

    Raises ValueError or TypeError for what JSON lacks.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(WRITING)))
    clock = connection.execute(select(now(connection))).scalar_one()
    shared = {"study": study, "token": token, "time": clock}
    # In ASCII, which any database stores, also names of files that are no text.
    rows = [{**shared, "kind": kind, "data": json.dumps(dict(data), allow_nan=False)} for kind, data in new]
    for row in rows:
        connection.execute(events.insert().values(row))
    ids = select(events.c.id).where(events.c.study == study).order_by(events.c.id.desc())
    oldest = ids.offset(KEPT).limit(1).scalar_subquery()
    connection.execute(events.delete().where(events.c.study == study, events.c.id <= oldest))


def enter(connection: Connection, study: str, token: int, state: str, reason: str = "") -> None:
    """Appends the event of a study that enters a state."""
    append(connection, study, token, [("state", {"state": state, "reason": reason})])


def one_line(reason: str) -> str:
    """Returns a reason with spaces for what cannot be printed."""
    return "".join(letter if letter.isprintable() else " " for letter in reason)


def _event(row: Row[Any]) -> Event:
    """Returns the event of a row. Raises schema.Damaged."""
    values = schema.check_types(events, row)
    if not schema.is_moment(row.time):
        raise schema.Damaged(f"time is {row.time}")
    return Event(**values | {"data": schema.json_object("data", row.data)})
