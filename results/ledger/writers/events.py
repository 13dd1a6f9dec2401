"""The events of a study's runs: what other programs than the one that trains can see of it.

Identifiers grow with every change of the ledger: whoever has seen all events up to one asks for those behind it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from results.ledger import schema
from results.ledger.writers.leases import now

KEPT = 10_000
"""Events of a study that are kept, the newest ones."""
PRUNED = 100
"""After so many events of a ledger, one study's old ones are deleted."""
WRITING = 0x65707365616576  # "epseaev"
"""Number of PostgreSQL's lock under which events get their identifiers: a later one is never seen before."""

events = schema.events


class Event(NamedTuple):
    """One event of a study."""

    id: int
    """Number of the change: grows over all studies of the ledger."""
    study: str
    """Its name."""
    token: int
    """Of the acquisition under which it was written."""
    kind: str
    """`begin`, `plan`, `progress`, `note`, `warning`, `records` or `state`."""
    data: dict[str, Any]
    """What there is to say, as JSON."""
    time: float
    """Seconds since 1970, by the database's clock."""


def append(connection: Connection, study: str, token: int, new: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Appends (kind, data) of a study; whoever calls it has checked that the study may be written to."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(WRITING)))
    clock = connection.execute(select(now(connection))).scalar_one()
    last = 0
    for kind, data in new:
        row = {"study": study, "token": token, "kind": kind, "data": schema.mapping_to_json(data), "time": clock}
        last = connection.execute(events.insert().values(row).returning(events.c.id)).scalar_one()
    if last % PRUNED < len(new):
        own = events.c.study == study
        oldest = select(events.c.id).where(own).order_by(events.c.id.desc()).offset(KEPT).limit(1).scalar_subquery()
        connection.execute(events.delete().where(own, events.c.id <= oldest))


def after(connection: Connection, study: str, last: int, most: int) -> list[Event]:
    """Returns the events of a study behind one, the oldest first, at most so many; unreadable ones are left out."""
    query = select(events).where(events.c.study == study, events.c.id > last).order_by(events.c.id).limit(most)
    found = []
    for row in connection.execute(query):
        try:
            data = schema.json_object("data", row.data)
        except schema.Damaged:
            continue
        found.append(Event(row.id, row.study, row.token, row.kind, data, row.time))
    return found


def newest(connection: Connection, study: str) -> int:
    """Returns the identifier of a study's newest event; 0 without one."""
    return connection.execute(select(func.max(events.c.id)).where(events.c.study == study)).scalar_one() or 0
