"""SQLite: durable writing, and reading of files in any state of them and their disk."""

import os
import shutil
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.pool import StaticPool

from results.files import writable
from results.ledger.dialects.engine import make_engine
from results.ledger.errors import StoreError, StoreGone, StoreLocked
from results.ledger.url import LedgerUrl

BUSY_SECONDS = 60
"""Seconds of one try that SQLite waits for another process that writes; `retry.RetryPolicy` has the number of tries."""
# No committed record is lost when the process or the machine dies: a write-ahead log, flushed at every commit.
DURABLE = ("journal_mode=WAL", "synchronous=FULL")
READ_ONLY = ("query_only=ON",)  # SQLite itself refuses to write
MEMORY = Path("/dev/shm")
"""A file system in memory, of Linux."""
LEFT_BEHIND = ("-wal", "-journal")
"""Endings of the files beside an SQLite file of a program that has it open, or died while it had."""

LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
GONE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL}
GONE_ONCE_OPEN = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""Errors of a file that was open before: its disk is full, has gone, or was mounted read-only."""


def to_write(place: URL, url: LedgerUrl) -> Engine:
    """Returns an engine for a file that is written; one that does not exist is made."""
    return _engine(place, url, DURABLE)


def to_read(place: URL, url: LedgerUrl, file: Path | None) -> Engine:
    """Returns an engine for a file that is only read; None for a URI of SQLite's own kind."""
    if file is None:
        return _engine(place, url, READ_ONLY)
    options = _options_to_read(file)
    if options is None:
        # One connection for all, because each would have a memory of its own.
        return _engine(make_url("sqlite://"), url, READ_ONLY, creator=partial(_copy, file), poolclass=StaticPool)
    # SQLite takes these options only in a URI.
    return _engine(place.set(database=_name(file), query={**options, "uri": "true"}), url, READ_ONLY)


def kind(cause: sqlite3.Error, opened: bool) -> type[StoreError]:
    """Returns the class of an error; opened: whether the file was open before."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the other bits only say more about the same error
    if code in LOCKED:
        return StoreLocked if opened else StoreGone  # one that cannot be opened may be damaged, and locked by nobody
    return StoreGone if code in GONE or (opened and code in GONE_ONCE_OPEN) else StoreError


def identity_of_log(url: LedgerUrl) -> tuple[int, int] | None:
    """Returns device and inode of the log that SQLite keeps beside its file; None where there is none."""
    return None if url.file is None else LedgerUrl.of_file(_beside(url.file, "-wal")).identity


def remove_log(url: LedgerUrl) -> None:
    """Removes the log of an SQLite file, and its index."""
    for end in ("-wal", "-shm"):
        if url.file is not None:
            with suppress(OSError):
                _beside(url.file, end).unlink()


def _engine(place: URL, url: LedgerUrl, pragmas: tuple[str, ...], **options: Any) -> Engine:
    """Returns an engine for an SQLite file that sets up every new connection with the pragmas."""
    engine = make_engine(place, url, connect_args={"timeout": BUSY_SECONDS}, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        # Also text that is not UTF-8, so that one damaged row is refused and not all rows.
        connection.text_factory = lambda text: text.decode(errors="replace")
        for pragma in pragmas:
            _set(connection, pragma)

    return engine


def _set(connection: sqlite3.Connection, pragma: str) -> None:
    # SQLite does not wait for the lock that the switch to a write-ahead log needs, whatever the busy timeout; two
    # processes may make a new file at once.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}").close()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _options_to_read(file: Path) -> Mapping[str, str] | None:
    """Returns the options with which SQLite opens the file; None where it cannot be opened without writing.

    A writable file is opened for writing, although nothing is written, because SQLite then removes its helper files
    at the end; not on a full disk, where it could not make them. Any other file is opened as one that nobody changes,
    or together with the program that has it open.
    """
    if writable(file) and writable(file.parent) and _opens(file, {"mode": "rw"}):
        return {"mode": "rw"}
    if not any(_beside(file, end).exists() and _beside(file, end).stat().st_size for end in LEFT_BEHIND):
        return {"mode": "ro", "immutable": "1"}
    # The index of the log, which SQLite would have to make: it is there while a program has the file open.
    return {"mode": "ro"} if _beside(file, "-shm").exists() and _opens(file, {"mode": "ro"}) else None


def _opens(file: Path, options: Mapping[str, str]) -> bool:
    """Returns False where SQLite cannot open the file for want of space or of a helper file."""
    try:
        with closing(sqlite3.connect(f"{_name(file)}?{urlencode(options)}", uri=True)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").close()
    except sqlite3.Error as error:
        return (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in GONE | GONE_ONCE_OPEN
    return True


def _name(file: Path) -> str:
    """Returns the name of a file as a URI of SQLite has it: absolute and quoted."""
    return f"file:{quote(os.fsencode(file.absolute()))}"


def _space(needed: int) -> TemporaryDirectory[str]:
    """Returns a temporary folder for `needed` bytes; in memory where the disk has no room for them."""
    full = shutil.disk_usage(gettempdir()).free < needed and MEMORY.is_dir()
    return TemporaryDirectory(prefix="epsearch-", dir=MEMORY if full else None)


def _copy(file: Path) -> sqlite3.Connection:
    """Returns a copy of the ledger in memory, including what a program that died has left in its log."""
    files = [file, *(_beside(file, end) for end in LEFT_BEHIND if _beside(file, end).exists())]
    with _space(2 * sum(part.stat().st_size for part in files)) as folder:  # SQLite writes the log into the copy
        for part in files:
            shutil.copyfile(part, Path(folder, part.name))
        # Threads share it: the pool has this one connection.
        memory = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(Path(folder, file.name))) as copy:
            copy.backup(memory)
    return memory


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)
