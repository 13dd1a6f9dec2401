"""The queue: submitted studies, and the log of requested changes.

A submission stays when its study has ended, as it has the owner's name; it is *open* until then. A study in the queue
has no holder until its process acquires the lease, so that several services may work on one queue. Within a priority
owners take turns, so that nobody waits for all the studies of somebody else.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection, Row, func, literal, select

from results.ledger import schema
from results.ledger.database import insertion
from results.ledger.writers import events
from results.ledger.writers.errors import LeaseHeld, QueueFull
from results.ledger.writers.holder import UNKNOWN
from results.ledger.writers.lease import now, state_of
from results.ledger.writers.repository import Repository, reads, writes
from results.ledger.writers.states import CANCELLING, FAILED, QUEUED, RUNNING, LeaseState

queue, leases, audit, turns = schema.queue, schema.leases, schema.audit, schema.turns
COUNTING = 0x65707365617264
"""Number of PostgreSQL's lock under which open submissions are counted."""


class Submission(NamedTuple):
    """What was submitted last under a study's name."""

    study: str
    """The study's name."""
    open: bool
    """Whether the study has not ended since."""
    priority: int
    """Of two waiting studies, the one with the higher priority is trained first; see `in_turn` for equal ones."""
    submitted: float
    """Seconds since 1970, by the database's clock."""
    submitter: str
    """Name of its owner, who submitted it first; empty where the service has no tokens."""
    given: dict[str, Any]
    """What is to be trained, as JSON; empty where it cannot be read."""
    tries: int
    """How often a process was started for it that ended without a word."""

    @property
    def readable(self) -> bool:
        """True if it says what is to be trained."""
        return isinstance(self.given.get("options"), dict)


@dataclass(frozen=True)
class Change:
    """One requested change."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}  # the descriptions of the API are those below

    id: int
    """Grows with every change."""
    time: float
    """Seconds since 1970, by the database's clock."""
    who: str
    """Name of the token; empty if there is none."""
    action: str
    """`submit`, `cancel`, `resume`, `extend`, `label` or `delete`."""
    study: str
    """The study's name."""
    detail: str
    """More about it, as JSON."""


class Labels(NamedTuple):
    """Labels that people give a study."""

    tags: tuple[str, ...] = ()
    """Words by which lists are filtered."""
    notes: str = ""
    """Text, of several lines."""


class Limits(NamedTuple):
    """Most open submissions, waiting or running; None for any number."""

    each: int | None = None
    """Of one owner."""
    all: int | None = None
    """Of all owners together."""


NO_LIMITS = Limits()


class Queue(Repository):
    """The queue of a store, and the log of changes that were requested of a service."""

    @writes
    def submit(
        self,
        connection: Connection,
        name: str,
        request: Mapping[str, Any],
        priority: int = 0,
        submitter: str = "",
        limits: Limits = NO_LIMITS,
    ) -> Submission | None:
        """Puts a study into the queue, unless one of its name is there; returns that, which stays as it is, else None.

        request: JSON; submitter: its owner, unless a study of its name has one already. A study that has ended, and one
        whose submission cannot be read, enters again. Raises LeaseHeld while a study that is not in the queue is being
        trained, and QueueFull.
        """
        if connection.dialect.name == "postgresql" and limits != NO_LIMITS:
            connection.execute(select(func.pg_advisory_xact_lock(COUNTING)))  # SQLite has one writer at a time
        clock = now(connection)
        values = {
            **{"open": 1, "priority": priority, "submitted": clock, "submitter": submitter, "tries": 0},
            "given": json.dumps(dict(request), allow_nan=False),
        }
        put = insertion(connection, queue).values(study=name, **values)  # first, as it locks an SQLite file
        put = put.on_conflict_do_nothing(index_elements=[queue.c.study])
        new = connection.execute(put.returning(queue.c.study)).scalar_one_or_none() is not None
        present = _lock(connection, name)
        before = None if new else _submission(connection.execute(select(queue).where(queue.c.study == name)).one())
        waiting = present is not None and present.state in (QUEUED, RUNNING)
        if before is not None and before.open and before.readable and waiting:
            return before
        if present is not None and present.held and present.state != QUEUED:
            raise LeaseHeld(name, present.holder, max(0.0, present.seconds))
        owner = submitter if before is None else before.submitter
        _check_limits(connection, name, owner, limits)
        connection.execute(queue.update().where(queue.c.study == name).values(values | {"submitter": owner}))
        entered = {"token": leases.c.token + 1, "state": QUEUED, "reason": "", "changed": clock, "expires": 0.0}
        fresh = insertion(connection, leases).values(name=name, holder=UNKNOWN.to_json(), **entered | {"token": 0})
        connection.execute(fresh.on_conflict_do_update(index_elements=[leases.c.name], set_=entered))
        _enter(connection, name, QUEUED)
        return None

    @reads(queue, dict)
    def submissions(self, connection: Connection) -> dict[str, Submission]:
        """Returns study -> its last submission, by priority and age.

        Damaged values of one, which has no checksum, are replaced by neutral ones.
        """
        return _by_priority(connection.execute(select(queue)).all())

    @reads(queue, dict)
    def open_submissions(self, connection: Connection) -> dict[str, Submission]:
        """Returns the open ones of `submissions` without what is to be trained, which is long."""
        columns = [column for column in queue.c if column is not queue.c.given]
        return _by_priority(
            connection.execute(select(*columns, literal("{}").label("given")).where(queue.c.open == 1)).all()
        )

    @writes
    def close(self, connection: Connection, name: str) -> bool:
        """Closes a submission, as its study has ended; returns whether this has closed it, and not another service."""
        return _close(connection, name)

    @reads(queue, lambda: None)
    def submission(self, connection: Connection, name: str) -> Submission | None:
        """Returns the last submission of a study; None for one that was never submitted."""
        row = connection.execute(select(queue).where(queue.c.study == name)).one_or_none()
        return None if row is None else _submission(row)

    @reads(turns, dict)
    def turns(self, connection: Connection) -> dict[str, float]:
        """Returns owner -> when the last of their studies was begun, in seconds since 1970."""
        rows = connection.execute(select(turns.c.owner, turns.c.begun)).all()
        return {owner: begun for owner, begun in rows if isinstance(owner, str) and schema.is_moment(begun)}

    @writes
    def begin(self, connection: Connection, submission: Submission) -> None:
        """Stores that a process was started for a study: one more try, and its owner's turn."""
        row = queue.c.study == submission.study
        connection.execute(queue.update().where(row).values(tries=submission.tries + 1))
        turn = insertion(connection, turns).values(owner=submission.submitter, begun=now(connection))
        connection.execute(
            turn.on_conflict_do_update(index_elements=[turns.c.owner], set_={"begun": turn.excluded.begun})
        )

    @writes
    def set_tries(self, connection: Connection, name: str, tries: int) -> None:
        """Stores how often a process was started for a study."""
        connection.execute(queue.update().where(queue.c.study == name).values(tries=tries))

    @writes
    def put_back(self, connection: Connection, name: str) -> bool:
        """Queues a study again that was left running, unless it is being trained; returns whether it is queued now."""
        return _leave(connection, name, QUEUED)

    @writes
    def fail(self, connection: Connection, name: str, reason: str) -> bool:
        """Lets a study of the queue fail that nobody trains, and closes its submission; whether it has failed now.

        reason: why, of any form; what cannot be printed becomes spaces.
        """
        left = _leave(connection, name, FAILED, events.one_line(reason))
        if left:
            _close(connection, name)
        return left

    @writes
    def audit(self, connection: Connection, who: str, action: str, study: str, detail: Mapping[str, Any]) -> None:
        """Stores that a change was requested; detail: JSON, without secrets."""
        values = {"time": now(connection), "who": who, "action": action, "study": study}
        connection.execute(audit.insert().values(**values, detail=json.dumps(dict(detail), allow_nan=False)))

    @reads(schema.audit, list)
    def changes(self, connection: Connection, most: int, name: str | None = None) -> list[Change]:
        """Returns up to `most` of the newest requested changes, newest first; name: of this study only."""
        query = select(audit).order_by(audit.c.id.desc()).limit(most)
        rows = connection.execute(query if name is None else query.where(audit.c.study == name)).all()
        return [Change(*row) for row in rows]

    @reads(schema.audit, dict)
    def labels(self, connection: Connection, name: str | None = None) -> dict[str, Labels]:
        """Returns study -> its labels: those of the newest change `label` since one of its name was deleted.

        name: of this study only.
        """
        changes = select(audit.c.study, audit.c.action, audit.c.detail).where(audit.c.action.in_(("label", "delete")))
        changes = changes if name is None else changes.where(audit.c.study == name)
        known: dict[str, Labels] = {}
        for study, action, detail in connection.execute(changes.order_by(audit.c.id)).all():
            known.pop(study, None)
            if action == "label":
                known[study] = _labels(detail)
        return known

    @reads(schema.audit, dict)
    def first_submitted(self, connection: Connection, name: str | None = None) -> dict[str, float]:
        """Returns study -> when it was submitted first since one of its name was deleted, in seconds since 1970.

        name: of this study only.
        """
        deleted = select(audit.c.study, func.max(audit.c.id).label("last")).where(audit.c.action == "delete")
        before = deleted.group_by(audit.c.study).subquery()
        first = select(audit.c.study, func.min(audit.c.time)).outerjoin(before, before.c.study == audit.c.study)
        first = first.where(audit.c.action == "submit", audit.c.id > func.coalesce(before.c.last, 0))
        first = first if name is None else first.where(audit.c.study == name)
        rows = connection.execute(first.group_by(audit.c.study)).all()
        return {study: time for study, time in rows if isinstance(study, str) and schema.is_moment(time)}


def _labels(detail: str) -> Labels:
    """Returns the labels of a row, which has no checksum; none where they cannot be read."""
    try:
        values = schema.json_object("detail", detail)
    except schema.Damaged:
        return Labels()
    tags, notes = values.get("tags"), values.get("notes")
    words = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    # Half a surrogate pair, which earlier versions stored, can be sent to nobody.
    readable = notes.encode("utf-8", "backslashreplace").decode() if isinstance(notes, str) else ""
    return Labels(tuple(words), readable)


def waits(state: str, held: bool) -> bool:
    """Returns whether a study of an open submission waits for its training; held: whether a process trains it."""
    return not held and state in (QUEUED, RUNNING)


def in_turn(waiting: Iterable[Submission], turns: Mapping[str, float]) -> list[Submission]:
    """Returns waiting submissions in the order in which they are to be begun.

    The higher priority first. Within one, owners take turns: next is the oldest submission of the owner whose last
    study was begun the longest ago. turns: as of `Queue.turns`.
    """
    order: list[Submission] = []
    levels: defaultdict[int, list[Submission]] = defaultdict(list)
    for submission in waiting:
        levels[submission.priority].append(submission)
    last, begun = {owner: (0, moment) for owner, moment in turns.items()}, 0
    for priority in sorted(levels, reverse=True):
        of_owner: defaultdict[str, deque[Submission]] = defaultdict(deque)
        for submission in sorted(levels[priority], key=lambda submission: (submission.submitted, submission.study)):
            of_owner[submission.submitter].append(submission)
        while of_owner:
            turn = {
                owner: (*last.get(owner, (0, 0.0)), waiting_of[0].submitted, owner)
                for owner, waiting_of in of_owner.items()
            }
            owner, begun = min(of_owner, key=turn.__getitem__), begun + 1
            order.append(of_owner[owner].popleft())
            last[owner] = begun, 0.0
            if not of_owner[owner]:
                del of_owner[owner]
    return order


def has_ended(state: str, held: bool) -> bool:
    """Returns whether a study has ended, so that its submission is to be closed."""
    return not held and state not in (QUEUED, RUNNING, CANCELLING)


def _check_limits(connection: Connection, name: str, owner: str, limits: Limits) -> None:
    """Raises QueueFull where one more open submission than those of other studies is one too many."""
    others = select(func.count()).where(queue.c.open == 1, queue.c.study != name)
    for most, whose, query in (
        (limits.each, owner, others.where(queue.c.submitter == owner)),
        (limits.all, None, others),
    ):
        if most is not None and connection.execute(query).scalar_one() >= most:
            raise QueueFull(most, whose)


def _lock(connection: Connection, name: str) -> LeaseState | None:
    """Locks the rows of a study, always in this order, and returns how it stands."""
    connection.execute(queue.update().where(queue.c.study == name).values(open=queue.c.open))
    connection.execute(leases.update().where(leases.c.name == name).values(token=leases.c.token))
    return state_of(connection, name)


def _leave(connection: Connection, name: str, state: str, reason: str = "") -> bool:
    """Changes the state of a study that nobody trains, and that is queued or was left running; whether it did."""
    present = _lock(connection, name)
    if present is None or present.held or present.state not in (QUEUED, RUNNING):
        return False
    values: dict[str, object] = {"state": state, "reason": reason, "changed": now(connection)}
    connection.execute(leases.update().where(leases.c.name == name).values(values))
    _enter(connection, name, state, reason)
    return True


def _close(connection: Connection, name: str) -> bool:
    still_open = (queue.c.study == name) & (queue.c.open != 0)
    return connection.execute(queue.update().where(still_open).values(open=0)).rowcount == 1


def _enter(connection: Connection, name: str, state: str, reason: str = "") -> None:
    present = state_of(connection, name)
    events.enter(connection, name, 0 if present is None else present.token, state, reason)


def _by_priority(rows: Iterable[Any]) -> dict[str, Submission]:
    """Returns study -> submission, the highest priority first, then the oldest."""
    read = [_submission(row) for row in rows if isinstance(row.study, str)]
    return {
        submission.study: submission
        for submission in sorted(
            read, key=lambda submission: (-submission.priority, submission.submitted, submission.study)
        )
    }


def _submission(row: Row[Any]) -> Submission:
    values = row._asdict()
    try:
        request = schema.json_object("given", row.given)
    except schema.Damaged:
        request = {}
    whole = {name: values[name] if type(values[name]) is int else 0 for name in ("open", "priority", "tries")}
    submitted = row.submitted if schema.is_moment(row.submitted) else 0.0
    submitter = row.submitter if isinstance(row.submitter, str) else ""
    return Submission(
        row.study, bool(whole["open"]), whole["priority"], submitted, submitter, request, tries=whole["tries"]
    )
