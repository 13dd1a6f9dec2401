"""What stands in a ledger: its studies, listed, loaded, or brought up to date. Nothing is trained."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from epsearch.events import Progress, read
from epsearch.failures.errors import NoStudy, UsageError, brief, unknown
from epsearch.ledger.damage import Unreadable
from epsearch.ledger.evaluation_log import user_log
from epsearch.preparation import growth
from epsearch.status import UNKNOWN, StudyStatus
from results.labels import on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.record import Summary
from results.ledger.retry import Patience
from results.ledger.schema import VERSION
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from results.ledger.writers.events import Event
from results.ledger.writers.queue import Submission, waits
from results.ledger.writers.states import FINISHED, INTERRUPTED, Standing

if TYPE_CHECKING:  # a list of studies needs neither loops nor arrays
    from epsearch.loop.base import Loop


class Upgraded(NamedTuple):
    """What `epsearch db upgrade` did."""

    ledger: str
    """Its URL, without a password."""
    version: int
    """Of its schema, now."""
    told: str
    """One line; empty where the ledger was up to date."""
    summed_up: int
    """Studies of which there was no summary."""


def load(name: str | None, storage: LedgerUrl, out: Path) -> "Loop":
    """A stored study as far as the ledger knows it; the newest without a name.

    out: the folder of reports today. Raises UsageError: no ledger, no study, no such name, a study that cannot be read.
    """
    with opened(storage) as store:
        rows = {row.name: row for row in store.studies()}  # oldest first, so that the last one is the newest
        if not rows:
            raise UsageError(f"no study in {storage} yet; `epsearch run` makes one")
        if name is not None and name not in rows:
            raise UsageError(unknown("study", name, rows))
        from epsearch.session.session import stored_loop  # late, here and below: a list of studies needs no loop

        row = rows[name] if name is not None else list(rows.values())[-1]
        try:
            loop = stored_loop(row, store, storage, out)
        except Unreadable as error:
            if name is not None:
                raise
            raise UsageError(f"{error}; it is the newest, name another one of `epsearch list`") from error
        loop.evaluation_log = user_log()
        return loop


def list_studies(storage: LedgerUrl, out: Path) -> list[StudyStatus]:
    """Returns the studies of a ledger, oldest first, also those that cannot be read. Raises UsageError.

    Reads no member: the progress of a study is in its summary.
    """
    with opened(storage) as store:
        return statuses(store, storage, out)


def statuses(store: Store, storage: LedgerUrl, out: Path) -> list[StudyStatus]:
    """Returns the studies of an open ledger, oldest first: trained ones, and submitted ones that have not begun."""
    rows = {row.name: row for row in store.studies()}
    summaries, standings, submissions = store.summaries(), store.leases.standings(), store.queue.submissions()
    first, queue = store.queue.first_submitted(), _queue(submissions, standings)
    made = []
    for name in [*rows, *(name for name in submissions if name not in rows and name in standings)]:
        row, submission = rows.get(name), submissions.get(name)
        one = _status(name, row, summaries.get(name), standings.get(name), submission, first.get(name))
        made.append(_in_queue(_described(one, row, submission, storage, out), queue))
    return sorted(made, key=lambda one: (one.created, one.name))


def status(store: Store, name: str, storage: LedgerUrl, out: Path) -> StudyStatus:
    """Returns the status of one study, with its progress and newest event. Raises NoStudy."""
    row, standings, submissions = store.study(name), store.leases.standings(), store.queue.submissions()
    there, submission = standings.get(name), submissions.get(name)
    if row is None and (submission is None or there is None):
        raise NoStudy(unknown("study", brief(name).strip("'"), known(store)))
    first = store.queue.first_submitted().get(name)
    made = _status(name, row, store.summaries().get(name), there, submission, first)
    made = _described(made, row, submission, storage, out)
    newest = store.events.newest(name)
    made = replace(_in_queue(made, _queue(submissions, standings)), event=0 if newest is None else newest.id)
    last = store.events.newest(name, Progress.kind) if there is not None and there.held else None
    if last is None or there is None or last.token != there.token:
        return made
    return reported(made, last)


def reported(status: StudyStatus, event: Event) -> StudyStatus:
    """Returns a status with the progress of an event; as it is where that cannot be read."""
    progress = read(event.kind, event.study, event.data)
    return replace(status, progress=progress, progress_time=event.time) if isinstance(progress, Progress) else status


def known(store: Store) -> list[str]:
    """Names of all studies: those that were trained, and those that were submitted."""
    return list(dict.fromkeys([*(row.name for row in store.studies()), *store.queue.submissions()]))


def upgrade(storage: LedgerUrl, out: Path, tell: Callable[[str], None]) -> Upgraded:
    """Brings a ledger up to the schema of this version, with a summary of every study. Raises UsageError.

    A study without a summary is gone through again, which takes seconds where a strategy fits processes; what has been
    done to the tables is told before.
    """
    from epsearch.session.confirmation import sum_up
    from epsearch.session.session import stored_loop

    lines: list[str] = []
    with opened(storage, Patience(notify=lines.append), upgrade=True) as store:
        for line in lines:
            tell(line)
        summaries, summed_up = store.summaries(), 0
        for row in store.studies():
            if row.name not in summaries:
                with suppress(Unreadable):  # `epsearch list` says so; the others are summed up all the same
                    sum_up(stored_loop(row, store, storage, out), row)
                    summed_up += 1
        return Upgraded(str(storage), VERSION, "; ".join(lines), summed_up)


@contextmanager
def opened(storage: LedgerUrl, patience: Patience | None = None, upgrade: bool = False) -> Iterator[Store]:
    """A ledger to read from, where there is one; closed at the end of the block.

    patience: with a database that does not answer, while it is opened and within the block; by default none.
    upgrade: brought up to the schema of this version first, and to write to.

    Raises UsageError; StoreUnavailable where it may be there another time.
    """
    if storage.file is not None and not storage.file.exists():
        raise UsageError(
            f"no ledger {on_one_line(storage.file)} yet; `epsearch run` with the same --out or --storage makes one"
        )
    try:
        patience = patience or Patience()
        # Opening is tried once by the store itself.
        with patience.again(partial(Store.upgrade if upgrade else Store.read, storage, patience)) as store:
            yield store
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def _status(
    name: str,
    row: StudyRow | None,
    summary: Summary | None,
    there: Standing | None,
    submission: Submission | None,
    first: float | None,
) -> StudyStatus:
    """Returns a status without the study's description; row: None for a study of which there is only a submission."""
    if first is None and submission is not None and row is None:
        first = submission.submitted
    times = [] if row is None else [row.created]
    times += [] if first is None else [_moment(first)]  # which may be long before it began
    made = StudyStatus(
        name=name,
        state=UNKNOWN if there is None else there.now,
        reason="" if there is None else there.reason,
        created=min(times),
        submitter=None if submission is None else submission.submitter,
        priority=None if submission is None else submission.priority,
    )
    if summary is None:
        return made
    # Moved here from another ledger; or it ended while it wrote the report, and has lost nothing.
    over = summary.status.startswith(FINISHED) and made.state in (UNKNOWN, INTERRUPTED)
    return replace(
        made,
        summary=summary.status,
        state=FINISHED if over else made.state,
        chosen=summary.chosen,
        score=summary.score,
        inert=summary.inert,
    )


def _described(
    made: StudyStatus, row: StudyRow | None, submission: Submission | None, storage: LedgerUrl, out: Path
) -> StudyStatus:
    """Returns a status with kind, dataset and objective; a row may be damaged or of an older version."""
    if row is None:
        request = {} if submission is None else submission.given
        options = request.get("options")
        dataset = options.get("dataset", UNKNOWN) if isinstance(options, dict) else UNKNOWN
        return replace(made, kind=str(request.get("kind", UNKNOWN)), dataset=str(dataset))
    try:
        study = growth.read(row, storage, out).study
    except Unreadable as error:
        return replace(made, unreadable=error.why, chosen=None, score=None, inert=False)
    return replace(made, kind=study.kind, dataset=study.dataset, objective=study.maximised)


def _in_queue(one: StudyStatus, queue: tuple[list[str], list[str]]) -> StudyStatus:
    """Returns a status with its place in the queue: studies that are trained, and those that wait."""
    trained, waiting = queue
    if one.name not in waiting:
        return one
    number = waiting.index(one.name)
    return replace(one, waits=True, place=number + 1, ahead=(*trained, *waiting[:number]))


def _queue(submissions: Mapping[str, Submission], standings: Mapping[str, Standing]) -> tuple[list[str], list[str]]:
    """Returns the studies of the queue that are trained, and those that wait, the next first."""
    known = [one.study for one in submissions.values() if one.open and one.study in standings]
    trained = [one for one in known if standings[one].held]
    return trained, [one for one in known if waits(standings[one].state, standings[one].held)]


def _moment(seconds: float) -> str:
    """Returns seconds since 1970 as ISO-8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def fitting(
    lines: Iterable[StudyStatus], state: str | None, dataset: str | None, kind: str | None, search: str | None
) -> list[StudyStatus]:
    """Returns those that have all that is given, the newest first."""
    return [
        one
        for one in reversed([*lines])
        if state in (None, "", one.state)
        and dataset in (None, "", one.dataset)
        and kind in (None, "", one.kind)
        and (not search or search.casefold() in one.name.casefold())
    ]
