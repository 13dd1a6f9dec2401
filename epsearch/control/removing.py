"""Deletes studies, and cleans members, events and files that no study uses."""

import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from epsearch.cache import learner_cache
from epsearch.control.writing import writable_ledger
from epsearch.events import ignore
from epsearch.failures.errors import Interrupted
from epsearch.ledger.damage import Unreadable
from epsearch.session.lease import acquire
from epsearch.session.session import stored_loop
from results.ledger.store import Store, StudyRow
from results.ledger.url import LedgerUrl


@dataclass(frozen=True)
class Removal:
    """Rows and files to remove."""

    studies: tuple[str, ...]
    """Names of studies."""
    runs: frozenset[str]
    """Keys of stored members."""
    shared: int
    """Members of the study that stay, as other studies use them."""
    unreadable: tuple[str, ...]
    """Studies that cannot be read: no member is removed, as they may use it."""
    events: int = 0
    """Number of events."""
    files: tuple[Path, ...] = ()
    """Tasks of members in the cache."""


def delete(name: str, storage: LedgerUrl, out: Path, sure: Callable[[Removal], bool]) -> Removal:
    """Deletes a study from the ledger, with its members that no other study uses; its folder of reports stays.

    sure: asks the user, True to delete. Members that another study has begun to use meanwhile are kept. Raises
    UsageError for an unknown study, and one that is being trained; Interrupted if the answer is no.
    """
    with writable_ledger(name, storage) as store:
        acquire(store, name, ignore, resume=True)
        try:
            removal = _of_study(name, store, storage, out)
            if not sure(removal):
                raise Interrupted
            deleted = store.delete_study(name, lambda: removal.runs & _of_study(name, store, storage, out).runs)
        finally:
            store.leases.release()
        return replace(removal, runs=deleted, shared=removal.shared + len(removal.runs) - len(deleted))


def clean(storage: LedgerUrl, out: Path, older_than: float, sure: Callable[[Removal], bool]) -> Removal:
    """Removes members that no study uses, events and cached tasks, if they are older than `older_than` seconds.

    Studies are never removed. Members being trained now are too new to be removed. sure: see `delete`.
    """
    with writable_ledger(None, storage) as store:
        before = (datetime.now(UTC) - timedelta(seconds=older_than)).isoformat()
        runs, unreadable = _unused_keys(before, store, storage, out)
        limit = time.time() - older_than
        files = tuple(file for file, changed in _cached_tasks() if changed < limit)
        removal = Removal((), runs, 0, unreadable, store.count_events(older_than), files)
        if not (removal.runs or removal.events or removal.files):
            return removal
        if not sure(removal):
            raise Interrupted
        deleted = store.delete_old(lambda: runs & _unused_keys(before, store, storage, out)[0], older_than)
        for file in files:
            file.unlink(missing_ok=True)
        return replace(removal, runs=deleted)


def _of_study(name: str, store: Store, storage: LedgerUrl, out: Path) -> Removal:
    """Returns the rows that deleting a study would remove now."""
    rows = store.studies()
    used, unreadable = _stored_keys(store, [row for row in rows if row.name != name], storage, out)
    keys, _ = _stored_keys(store, [row for row in rows if row.name == name], storage, out)
    return Removal((name,), frozenset() if unreadable else keys - used, len(keys & used), unreadable)


def _unused_keys(before: str, store: Store, storage: LedgerUrl, out: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns keys of members from before a time that no study uses, and names of unreadable studies."""
    used, unreadable = _stored_keys(store, store.studies(), storage, out)
    return frozenset() if unreadable else frozenset(store.runs_before(before) - used), unreadable


def _cached_tasks() -> Iterator[tuple[Path, float]]:
    """Yields the files of cached tasks, and when they were changed; studies remove some meanwhile."""
    for file in learner_cache().rglob("*"):
        with suppress(FileNotFoundError):
            if stat.S_ISREG((facts := file.stat()).st_mode):
                yield file, facts.st_mtime


def _stored_keys(
    store: Store, rows: list[StudyRow], storage: LedgerUrl, out: Path
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns keys of the stored members of studies, and names of unreadable studies."""
    keys: set[str] = set()
    unreadable = []
    for row in rows:
        try:
            loop = stored_loop(row, store, storage, out)
        except Unreadable:
            unreadable.append(row.name)
            continue
        keys |= {*loop.records, *(key for key in loop.damaged if " " not in key)}
    return frozenset(keys), tuple(unreadable)
