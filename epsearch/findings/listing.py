"""What stands in a ledger: its studies, listed or loaded. Nothing is trained or written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.errors import UsageError, unknown
from epsearch.ledger.damage import Unreadable
from epsearch.loop.base import Loop
from epsearch.preparation import growth
from epsearch.session.session import read_store, stored_loop
from results.labels import on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.record import Summary
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from search_spaces.space import Value

UNKNOWN = "–"


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
    chosen: dict[str, Value] | None
    """The best point so far of a search; else None."""
    score: float | None
    """Mean A_T in [0, 1] that chose it; None without one."""
    created: str
    """ISO-8601 time, UTC."""
    inert: bool = False
    """Whether all values score the same bit for bit, so that the chosen one is no better than any other."""


def load(name: str | None, storage: LedgerUrl, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Raises UsageError."""
    with opened(storage) as store:
        rows = {row.name: row for row in store.studies()}
        if not rows:
            raise UsageError(f"no study in {storage} yet; `epsearch run` makes one")
        if name is not None and name not in rows:
            raise UsageError(unknown("study", name, rows))
        row = rows[name] if name is not None else list(rows.values())[-1]
        try:
            return stored_loop(row, store, storage, out)
        except Unreadable as error:
            if name is not None:
                raise
            raise UsageError(f"{error}; it is the newest, name another one of `epsearch list`") from error


def list_studies(storage: LedgerUrl, out: Path) -> list[Listed]:
    """The studies of a ledger, oldest first; those that cannot be read, too. Raises UsageError.

    No member is looked at: how far a study is stands in its summary.
    """
    with opened(storage) as store:
        summaries = store.summaries()
        return [_listed(row, summaries.get(row.name), storage, out) for row in store.studies()]


@contextmanager
def opened(
    storage: LedgerUrl, patience: Patience | None = None, open_it: Callable[[LedgerUrl], Store] = read_store
) -> Iterator[Store]:
    """A ledger, by default to read from, where there is one.

    Raises UsageError; StoreUnavailable where it may be there another time.
    """
    if storage.file is not None and not storage.file.exists():
        raise UsageError(f"no ledger {on_one_line(storage.file)} yet; `epsearch run` makes one")
    try:
        patience = patience or Patience()
        with patience.again(partial(open_it, storage)) as store:
            store.patience = patience
            yield store
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def _listed(row: StudyRow, summary: Summary | None, storage: LedgerUrl, out: Path) -> Listed:
    try:
        study = growth.read(row, storage, out).study
    except Unreadable as error:
        return Listed(row.name, UNKNOWN, UNKNOWN, error.why, None, None, row.created)
    known = Summary(row.name, row.checksum, UNKNOWN, None, None, False) if summary is None else summary
    chosen = None if known.chosen is None else dict(known.chosen)
    return Listed(study.name, study.kind, study.dataset, known.status, chosen, known.score, row.created, known.inert)
