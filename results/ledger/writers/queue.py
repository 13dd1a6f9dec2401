"""The queue: studies that were submitted, what is to be done with each, and who has asked for what.

A submission stays when its study has ended, as it says who submitted it; it is *open* until then. A study in the queue
is nobody's until its process acquires the lease, so that several services may work on one queue.

All functions work in the transaction of their connection.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from results.ledger import schema
from results.ledger.database import insertion
from results.ledger.writers.errors import LeaseHeld
from results.ledger.writers.holder import UNKNOWN
from results.ledger.writers.leases import now, standing
from results.ledger.writers.states import FAILED, QUEUED, RUNNING, STOPPED

queue, leases, audit = schema.queue, schema.leases, schema.audit


class Submission(NamedTuple):
    """What was submitted last under a study's name."""

    study: str
    """The study's name."""
    open: bool
    """Whether the study has not ended since."""
    priority: int
    """Of two that wait, the one of the higher priority is trained first; of equal ones, the older."""
    submitted: float
    """Seconds since 1970, by the database's clock."""
    submitter: str
    """The name of who submitted it; empty where nobody had to say it."""
    given: dict[str, Any]
    """What is to be trained, as JSON; empty where it cannot be read."""
    tries: int
    """How often a process was started for it that ended without a word."""

    @property
    def readable(self) -> bool:
        """Whether it says what is to be trained."""
        return isinstance(self.given.get("options"), dict)


class Audited(NamedTuple):
    """One change that somebody has asked for."""

    id: int
    """Grows with every change."""
    time: float
    """Seconds since 1970, by the database's clock."""
    who: str
    """Name of who asked; empty where nobody had to say it."""
    action: str
    """`submit`, `cancel`, `resume`, `extend` or `delete`."""
    study: str
    """The study's name."""
    detail: str
    """More about it, as JSON."""


def submit(
    connection: Connection, name: str, given: Mapping[str, Any], priority: int, submitter: str
) -> Submission | None:
    """Puts a study into the queue, unless one of its name is there; returns that, which stays as it is, else None.

    A study that has ended, and one whose submission cannot be read, enters again. Raises LeaseHeld while somebody
    trains a study that is not in the queue.
    """
    clock = now(connection)
    values = {
        **{"open": 1, "priority": priority, "submitted": clock, "submitter": submitter, "tries": 0},
        "given": json.dumps(dict(given), allow_nan=False),
    }
    put = insertion(connection, queue).values(study=name, **values)  # first, as it locks an SQLite file
    put = put.on_conflict_do_nothing(index_elements=[queue.c.study])
    new = connection.execute(put.returning(queue.c.study)).scalar_one_or_none() is not None
    # The rows are locked: of two who submit at once the second sees what the first has done.
    connection.execute(queue.update().where(queue.c.study == name).values(open=queue.c.open))
    connection.execute(leases.update().where(leases.c.name == name).values(token=leases.c.token))
    there = standing(connection, name)
    before = None if new else _submission(connection.execute(select(queue).where(queue.c.study == name)).one())
    if (
        before is not None
        and before.open
        and before.readable
        and there is not None
        and there.state in (QUEUED, RUNNING)
    ):
        return before
    if there is not None and there.held and there.state != QUEUED:
        raise LeaseHeld(name, there.holder, max(0.0, there.seconds))
    connection.execute(queue.update().where(queue.c.study == name).values(values))
    entered = {"token": leases.c.token + 1, "state": QUEUED, "reason": "", "changed": clock, "expires": 0.0}
    fresh = insertion(connection, leases).values(name=name, holder=UNKNOWN.to_json(), **entered | {"token": 0})
    connection.execute(fresh.on_conflict_do_update(index_elements=[leases.c.name], set_=entered))
    return None


def submissions(connection: Connection) -> dict[str, Submission]:
    """Returns study -> its last submission, in the order in which they are to be trained.

    What is damaged of one, which has no checksum, says nothing.
    """
    found = [_submission(row) for row in connection.execute(select(queue)).all() if isinstance(row.study, str)]
    return {one.study: one for one in sorted(found, key=lambda one: (-one.priority, one.submitted, one.study))}


def close(connection: Connection, name: str) -> None:
    """Closes a submission: its study has ended."""
    connection.execute(queue.update().where(queue.c.study == name).values(open=0))


def started(connection: Connection, name: str, tries: int) -> None:
    """Keeps how often a process was started for a study."""
    connection.execute(queue.update().where(queue.c.study == name).values(tries=tries))


def leave(connection: Connection, name: str, state: str, reason: str = "") -> bool:
    """Lets a study that nobody trains, and that is queued or was left running, be QUEUED or FAILED; whether it is now.

    FAILED also closes its submission; reason: why, in one line.
    """
    # In the order of `submit`, as two that wait for each other would both fail.
    connection.execute(queue.update().where(queue.c.study == name).values(open=queue.c.open))
    connection.execute(leases.update().where(leases.c.name == name).values(token=leases.c.token))
    there = standing(connection, name)
    if there is None or there.held or there.state not in (QUEUED, RUNNING):
        return False
    values: dict[str, object] = {"state": state, "reason": reason, "changed": now(connection)}
    connection.execute(leases.update().where(leases.c.name == name).values(values))
    if state == FAILED:
        close(connection, name)
    return True


def waits(there: str, held: bool) -> bool:
    """Whether a study of an open submission is to be trained, by its stored state, and whether somebody trains it."""
    return not held and there in (QUEUED, RUNNING)


def ended(there: str, held: bool) -> bool:
    """Whether it has ended, so that its submission is to be closed."""
    return not held and there not in (QUEUED, RUNNING, STOPPED[1])


def keep(connection: Connection, who: str, action: str, study: str, detail: Mapping[str, Any]) -> None:
    """Keeps that somebody has asked for a change."""
    values = {"time": now(connection), "who": who, "action": action, "study": study}
    connection.execute(audit.insert().values(**values, detail=json.dumps(dict(detail), allow_nan=False)))


def audited(connection: Connection, most: int, name: str | None = None) -> list[Audited]:
    """Returns the newest changes that were asked for, at most so many, the newest first; name: of one study alone."""
    query = select(audit).order_by(audit.c.id.desc()).limit(most)
    rows = connection.execute(query if name is None else query.where(audit.c.study == name)).all()
    return [Audited(*row) for row in rows]


def first_submitted(connection: Connection) -> dict[str, float]:
    """Returns study -> when it was submitted for the first time since one of its name was deleted."""
    gone = select(audit.c.study, func.max(audit.c.id).label("last")).where(audit.c.action == "delete")
    before = gone.group_by(audit.c.study).subquery()
    asked = select(audit.c.study, func.min(audit.c.time)).outerjoin(before, before.c.study == audit.c.study)
    asked = asked.where(audit.c.action == "submit", audit.c.id > func.coalesce(before.c.last, 0))
    rows = connection.execute(asked.group_by(audit.c.study)).all()
    return {study: time for study, time in rows if isinstance(study, str) and schema.is_moment(time)}


def _submission(row: Row[Any]) -> Submission:
    values = row._asdict()
    try:
        given = schema.json_object("given", row.given)
    except schema.Damaged:
        given = {}
    whole = {name: values[name] if type(values[name]) is int else 0 for name in ("open", "priority", "tries")}
    submitted = row.submitted if schema.is_moment(row.submitted) else 0.0
    submitter = row.submitter if isinstance(row.submitter, str) else ""
    return Submission(
        row.study, bool(whole["open"]), whole["priority"], submitted, submitter, given, tries=whole["tries"]
    )
