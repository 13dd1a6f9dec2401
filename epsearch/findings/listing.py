"""What stands in a ledger: its studies, listed, loaded, or brought up to date. Nothing is trained."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from epsearch.failures.errors import UsageError, unknown
from epsearch.ledger.damage import Unreadable
from epsearch.ledger.evaluation_log import user_looks
from epsearch.preparation import growth
from results.labels import on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.record import Summary
from results.ledger.retry import Patience
from results.ledger.schema import VERSION
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from results.ledger.writers.queue import Submission
from results.ledger.writers.states import FINISHED, INTERRUPTED, RUNNING, Standing
from search_spaces.space import Value

if TYPE_CHECKING:  # a list of studies needs neither loops nor arrays
    from epsearch.loop.base import Loop

UNKNOWN = "–"
FINISHED_BEFORE = "it was finished before"
AGAIN = {RUNNING: "all members are there"}
FAR = 2.0**37  # seconds since 1970: after whatever was created


class Listed(NamedTuple):
    """One line of `epsearch list`."""

    name: str
    """Of the study."""
    command: str
    """That trains it; UNKNOWN where the study cannot be read."""
    dataset: str
    """UNKNOWN where the study cannot be read."""
    status: str
    """Finished, how far it is, or why it cannot be read."""
    chosen: Mapping[str, Value] | None
    """The best point so far of a search; else None."""
    score: float | None
    """Mean of what is maximised, A_T in [0, 1] where nothing else is said, that chose it; None without one."""
    created: str
    """ISO-8601 time, UTC."""
    inert: bool = False
    """Whether all values score the same bit for bit, so that the chosen one is no better than any other."""
    state: str = UNKNOWN
    """`queued`, `running`, …: one word of `results.ledger.writers.states`; UNKNOWN where nobody has kept it."""
    objective: str = "A_T"
    """What the score is of, as tables call it."""


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
        loop.looks = user_looks()
        return loop


def list_studies(storage: LedgerUrl, out: Path) -> list[Listed]:
    """The studies of a ledger, oldest first; those that cannot be read, too. Raises UsageError.

    No member is looked at: how far a study is stands in its summary.
    """
    with opened(storage) as store:
        return listed(store, storage, out)


def listed(store: Store, storage: LedgerUrl, out: Path) -> list[Listed]:
    """The same of an open ledger: studies that were trained, and those that were submitted and have not begun."""
    summaries, standings, rows = store.summaries(), store.standings(), store.studies()
    first = store.first_submitted()  # which may be long before it began, or was submitted last
    lines = [_listed(row, summaries.get(row.name), standings.get(row.name), storage, out) for row in rows]
    lines = [one._replace(created=min(one.created, _moment(first.get(one.name, FAR)))) for one in lines]
    there = {row.name for row in rows}
    lines += [
        _waiting(one, standings[one.study], first.get(one.study, one.submitted))
        for one in store.submissions().values()
        if one.study not in there and one.study in standings
    ]
    return sorted(lines, key=lambda line: (line.created, line.name))


def upgrade(storage: LedgerUrl, out: Path, tell: Callable[[str], None]) -> Upgraded:
    """Brings a ledger up to the schema of this version, with a summary of every study. Raises UsageError.

    A study without a summary is gone through again, which takes seconds where a strategy fits processes; what has been
    done to the tables is told before.
    """
    from epsearch.session.confirmation import sum_up
    from epsearch.session.session import stored_loop

    with opened(storage, upgrade=True) as store:
        if store.told:
            tell(store.told)
        summaries, summed_up = store.summaries(), 0
        for row in store.studies():
            if row.name not in summaries:
                with suppress(Unreadable):  # `epsearch list` says so; the others are summed up all the same
                    sum_up(stored_loop(row, store, storage, out), row)
                    summed_up += 1
        return Upgraded(str(storage), VERSION, store.told, summed_up)


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
        # The ledger itself is told of the patience only once it is open, and opening it may take some, too.
        with patience.again(partial(Store.upgrade if upgrade else Store.read, storage)) as store:
            store.patience = patience
            yield store
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def _listed(row: StudyRow, summary: Summary | None, there: Standing | None, storage: LedgerUrl, out: Path) -> Listed:
    """A line from a study's row and its summary alone, each of which may be damaged or of an older version."""
    state = UNKNOWN if there is None else there.now
    try:
        study = growth.read(row, storage, out).study
    except Unreadable as error:
        return Listed(row.name, UNKNOWN, UNKNOWN, error.why, None, None, row.created, state=state)
    known = summary or Summary(row.name, row.checksum, UNKNOWN, None, None, False)
    status = in_words(there, known.status)
    # Moved here from another ledger; or it ended while it wrote the report, and has lost nothing.
    if known.status.startswith(FINISHED) and (there is None or there.now == INTERRUPTED):
        state = FINISHED
    found = (known.chosen, known.score, row.created, known.inert, state, study.maximised)
    return Listed(study.name, study.kind, study.dataset, status, *found)


def _waiting(one: Submission, there: Standing, since: float) -> Listed:
    """A line of a study of which there is only what was submitted; since: when first, in seconds since 1970."""
    found = one.given.get("options")
    options = found if isinstance(found, dict) else {}
    what = (str(one.given.get("kind", UNKNOWN)), str(options.get("dataset", UNKNOWN)))
    return Listed(one.study, *what, in_words(there, UNKNOWN), None, None, _moment(since), state=there.now)


def _moment(seconds: float) -> str:
    """Seconds since 1970 as ISO-8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def in_words(there: Standing | None, status: str) -> str:
    """How a study stands, in words that begin with its state; status: how far it is, as its loop says it.

    What is finished is told as it is: a run that ended while it wrote the report has lost nothing.
    """
    finished = status.startswith(FINISHED)
    if there is None or there.now == FINISHED or (finished and there.now == INTERRUPTED):
        return status
    how_far = there.reason or (AGAIN.get(there.now, FINISHED_BEFORE) if finished else status)
    return there.now if how_far == UNKNOWN else f"{there.now}: {how_far}"


def fitting(
    lines: Iterable[Listed], state: str | None, dataset: str | None, kind: str | None, search: str | None
) -> list[Listed]:
    """Those that fit what is given, the newest first."""
    return [
        one
        for one in reversed([*lines])
        if state in (None, "", one.state)
        and dataset in (None, "", one.dataset)
        and kind in (None, "", one.command)
        and (not search or search.casefold() in one.name.casefold())
    ]


def detail(one: Listed) -> str:
    """What the status of a listed study says beside its state."""
    return "" if one.status == one.state else one.status.removeprefix(f"{one.state}: ")
