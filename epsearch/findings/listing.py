"""Lists, loads and upgrades the studies of a ledger; trains nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from epsearch.events import Progress, read
from epsearch.failures.errors import NoStudy, UsageError, brief
from epsearch.ledger.damage import Unreadable
from epsearch.ledger.evaluation_log import user_log
from epsearch.preparation import history
from epsearch.status import UNKNOWN, StudyStatus
from results.labels import on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.record import Summary
from results.ledger.retry import RetryPolicy
from results.ledger.schema import VERSION
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from results.ledger.writers.events import Event
from results.ledger.writers.queue import Labels, Submission, in_turn, waits
from results.ledger.writers.states import FINISHED, INTERRUPTED, LeaseState
from trainers.spelling import unknown

if TYPE_CHECKING:  # a list of studies needs neither loops nor arrays
    from epsearch.loop.base import Loop


def load(name: str | None, storage: LedgerUrl, out: Path) -> "Loop":
    """Loads a stored study; name: None for the newest study.

    out: the current report folder. Raises UsageError if there is no ledger, no study or no such name, or if the study
    cannot be read.
    """
    with open_ledger(storage) as store:
        rows = {row.name: row for row in store.studies()}  # oldest first
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

    Does not read the runs: the summary already has the progress.
    """
    with open_ledger(storage) as store:
        return statuses(store, storage, out)


def statuses(store: Store, storage: LedgerUrl, out: Path) -> list[StudyStatus]:
    """Returns the studies of an open ledger, oldest first: stored ones, and submitted ones that have not begun."""
    rows = {row.name: row for row in store.studies()}
    summaries, states, submissions = store.summaries(), store.leases.states(), store.queue.submissions()
    first, queue = store.queue.first_submitted(), _queue(submissions, states, store.queue.turns())
    labels = store.queue.labels()
    statuses = []
    for name in [*rows, *(name for name in submissions if name not in rows and name in states)]:
        row, submission = rows.get(name), submissions.get(name)
        status = _status(name, row, summaries.get(name), states.get(name), submission, first.get(name))
        status = replace(status, **labels.get(name, Labels())._asdict())
        # Without those ahead of each, whose number grows with the square of the queue.
        statuses.append(replace(_in_queue(_describe(status, row, submission, storage, out), queue), ahead=()))
    return sorted(statuses, key=lambda status: (status.created, status.name))


def status(store: Store, name: str, storage: LedgerUrl, out: Path) -> StudyStatus:
    """Returns the status of one study, with its progress and newest event. Raises NoStudy."""
    row, current, submission = store.study(name), store.leases.state_of(name), store.queue.submission(name)
    if row is None and (submission is None or current is None):
        raise NoStudy(unknown("study", brief(name).strip("'"), study_names(store)))
    first = store.queue.first_submitted(name).get(name)
    status = _status(name, row, store.summary(name), current, submission, first)
    status = replace(status, **store.queue.labels(name).get(name, Labels())._asdict())
    status = _describe(status, row, submission, storage, out)
    if submission is not None and submission.open and current is not None and waits(current.state, current.held):
        queue = _queue(store.queue.open_submissions(), store.leases.states(), store.queue.turns())
        status = _in_queue(status, queue)
    newest = store.events.newest(name)
    status = replace(status, event=0 if newest is None else newest.id)
    last = store.events.newest(name, Progress.kind) if current is not None and current.held else None
    if last is None or current is None or last.token != current.token:
        return status
    return with_progress(status, last)


def with_progress(status: StudyStatus, event: Event) -> StudyStatus:
    """Returns a status with the progress of an event; unchanged if that cannot be read."""
    progress = read(event.kind, event.study, event.data)
    return replace(status, progress=progress, progress_time=event.time) if isinstance(progress, Progress) else status


def study_names(store: Store) -> list[str]:
    """Returns the names of all studies, stored and submitted."""
    return list(dict.fromkeys([*(row.name for row in store.studies()), *store.queue.submissions()]))


def upgrade(storage: LedgerUrl, out: Path, notify: Callable[[str], None]) -> dict[str, Any]:
    """Brings a ledger up to the schema of this version, with a summary of every study. Raises UsageError.

    A missing summary takes seconds if a strategy fits Gaussian processes; changes of the tables are reported before by
    `notify`. Returns the JSON of `epsearch db upgrade`: `ledger`, its URL without a password; `version` of its schema;
    `told`, changes of its tables, empty for none; `summed_up`, number of summaries made.
    """
    from epsearch.session.confirmation import sum_up
    from epsearch.session.session import stored_loop

    lines: list[str] = []
    with open_ledger(storage, RetryPolicy(notify=lines.append), upgrade=True) as store:
        for line in lines:
            notify(line)
        summaries, summed_up = store.summaries(), 0
        for row in store.studies():
            if row.name not in summaries:
                with suppress(Unreadable):  # `epsearch list` reports it
                    sum_up(stored_loop(row, store, storage, out), row)
                    summed_up += 1
        return {"ledger": str(storage), "version": VERSION, "told": "; ".join(lines), "summed_up": summed_up}


@contextmanager
def open_ledger(storage: LedgerUrl, retries: RetryPolicy | None = None, upgrade: bool = False) -> Iterator[Store]:
    """Opens an existing ledger to read from, until the end of the block.

    retries: with a database that does not answer, while it is opened and within the block; by default none.
    upgrade: True to bring it up to the schema of this version first, and to write to it.

    Raises UsageError; StoreUnavailable if another try may succeed.
    """
    if storage.file is not None and not storage.file.exists():
        raise UsageError(
            f"no ledger {on_one_line(storage.file)} yet; `epsearch run` with the same --out or --storage makes one"
        )
    try:
        retries = retries or RetryPolicy()
        # The store itself tries to open once.
        with retries.again(partial(Store.upgrade if upgrade else Store.read, storage, retries)) as store:
            yield store
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def _status(
    name: str,
    row: StudyRow | None,
    summary: Summary | None,
    current: LeaseState | None,
    submission: Submission | None,
    first: float | None,
) -> StudyStatus:
    """Returns a status without the study's description; row: None for a study that has not begun."""
    if first is None and submission is not None and row is None:
        first = submission.submitted
    times = [] if row is None else [row.created]
    # The submission may be long before training began.
    times += [] if first is None else [datetime.fromtimestamp(first, UTC).isoformat()]
    status = StudyStatus(
        name=name,
        state=UNKNOWN if current is None else current.now,
        reason="" if current is None else current.reason,
        created=min(times),
        submitter=None if submission is None else submission.submitter,
        priority=None if submission is None else submission.priority,
    )
    if summary is None:
        return status
    # The study was imported, or its process ended while it wrote the report. No result is missing.
    over = summary.status.startswith(FINISHED) and status.state in (UNKNOWN, INTERRUPTED)
    return replace(
        status,
        summary=summary.status,
        state=FINISHED if over else status.state,
        chosen=summary.chosen,
        score=summary.score,
        inert=summary.inert,
    )


def _describe(
    status: StudyStatus, row: StudyRow | None, submission: Submission | None, storage: LedgerUrl, out: Path
) -> StudyStatus:
    """Returns a status with kind, dataset and objective; a row may be damaged or of an older version."""
    if row is None:
        request = {} if submission is None else submission.given
        options = request.get("options")
        dataset = options.get("dataset", UNKNOWN) if isinstance(options, dict) else UNKNOWN
        return replace(status, kind=str(request.get("kind", UNKNOWN)), dataset=str(dataset))
    try:
        study = history.read(row, storage, out).study
    except Unreadable as error:
        return replace(status, unreadable=error.why, chosen=None, score=None, inert=False)
    return replace(status, kind=study.kind, dataset=study.dataset, objective=study.maximised)


def _in_queue(status: StudyStatus, queue: tuple[list[str], dict[str, int]]) -> StudyStatus:
    """Returns a status with its place in the queue; queue: as returned by `_queue`."""
    running, waiting = queue
    number = waiting.get(status.name)
    if number is None:
        return status
    return replace(status, waits=True, place=number + 1, ahead=(*running, *islice(waiting, number)))


def _queue(
    submissions: Mapping[str, Submission], states: Mapping[str, LeaseState], turns: Mapping[str, float]
) -> tuple[list[str], dict[str, int]]:
    """Returns the running studies of the queue, and the waiting ones with their number from 0, the next first."""
    names = [name for name, submission in submissions.items() if submission.open and name in states]
    running = [name for name in names if states[name].held]
    waiting = [submissions[name] for name in names if waits(states[name].state, states[name].held)]
    return running, {submission.study: number for number, submission in enumerate(in_turn(waiting, turns))}


class Filters(NamedTuple):
    """Filters of a list of studies; None or "" for any."""

    state: str | None = None
    dataset: str | None = None
    kind: str | None = None
    search: str | None = None
    """Part of the name."""
    submitter: str | None = None
    """The owner."""
    tag: str | None = None
    """One of the study's."""

    def matching(self, statuses: Iterable[StudyStatus]) -> list[StudyStatus]:
        """Returns the studies that match."""
        fields = {name: value for name in ("state", "dataset", "kind", "submitter") if (value := getattr(self, name))}
        part = (self.search or "").strip().casefold()
        return [
            status
            for status in statuses
            if part in status.name.casefold()
            and (not self.tag or self.tag in status.tags)
            and all(getattr(status, name) == value for name, value in fields.items())
        ]
