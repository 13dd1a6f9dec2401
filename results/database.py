"""Opening a database by URL, with errors a person can act on."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from results.errors import StoreError, StoreGone, StoreUnavailable

ALLOWED = "allowed: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
BUSY_SECONDS = 60
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}

SQLITE_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
}
# Classes of SQLSTATE: connection lost, rolled back for another's sake, too many connections, shut down or starting up.
POSTGRES_GONE = ("08", "40", "53300", "57P0")
POSTGRES_UNAVAILABLE = ("53", "57", "58")  # no disk or memory left, ended by an operator, an error of its system
POSTGRES_PASSING = ("starting up", "shutting down", "in recovery mode", "terminating connection", "too many c")


def mask(url: str) -> str:
    """The URL without its password.

    >>> mask("postgresql://me:secret@host/db?password=also")
    'postgresql://me:***@host/db?password=***'
    """
    hidden = re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", hidden)


def connect(url: str) -> Engine:
    """An engine for the URL; nothing is opened yet. StoreError where the URL, its driver or its folder is
    wrong.
    """
    parsed = _parse(url)
    if parsed.drivername == "sqlite":
        _check_file(parsed, url)
        engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _durable)
        return engine
    try:
        return create_engine(parsed, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the ledger {mask(url)} needs the package {error.name}: pip install 'epsearch[postgres]'"
        ) from error


@contextmanager
def one_line_errors(url: str, action: str) -> Iterator[None]:
    """Turn whatever the database raises into a StoreError of one line, without the password."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        lines = str(cause).strip().splitlines()
        reason = lines[0] if lines else type(cause).__name__
        secret = make_url(url).password
        if secret:
            reason = reason.replace(str(secret), "***")
        raise _kind(cause)(f"cannot {action} the ledger {mask(url)}: {reason}{_hint(reason)}") from error


def _kind(cause: BaseException) -> type[StoreError]:
    """Whether the database is to blame, and may answer again."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest says more than we want to know
        return StoreUnavailable if code in SQLITE_UNAVAILABLE else StoreError
    if type(cause).__module__.split(".")[0] != "psycopg":
        return StoreError
    state = getattr(cause, "sqlstate", None)
    if state is None and any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(cause).__mro__):
        # No connection, or one that broke. What the server itself refuses is FATAL, and mostly for good.
        refused = "FATAL" in str(cause) and not any(words in str(cause) for words in POSTGRES_PASSING)
        return StoreError if refused else StoreGone
    if state is not None and state.startswith(POSTGRES_GONE):
        return StoreGone
    return StoreUnavailable if state is not None and state.startswith(POSTGRES_UNAVAILABLE) else StoreError


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"the ledger's URL cannot be read: {mask(url)!r}; {ALLOWED}") from error
    if parsed.drivername not in DRIVERS:
        raise StoreError(f"no ledger of kind {parsed.drivername!r} ({mask(url)}); {ALLOWED}")
    return parsed.set(drivername=DRIVERS[parsed.drivername])


def _check_file(parsed: URL, url: str) -> None:
    if parsed.database in (None, "", ":memory:"):
        raise StoreError(f"the ledger must be a file, got {url!r}, which is lost at exit; allowed: sqlite:///FILE")
    path = Path(str(parsed.database))
    if str(path).startswith("file:"):
        return
    if not path.parent.is_dir():
        raise StoreError(f"the ledger's folder does not exist: {path.parent}; allowed: a file in an existing folder")
    if path.is_dir():
        raise StoreError(f"the ledger must be a file, got the folder {path}; allowed: sqlite:///FILE")


def _durable(connection: Any, _record: Any) -> None:
    """No committed record is lost when the process or the machine dies: write-ahead log, flushed at every
    commit.
    """
    cursor = connection.cursor()
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _use_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    # SQLite does not wait for the lock that this switch needs, whatever the busy timeout; two processes may
    # make a new file at once.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _hint(reason: str) -> str:
    """What is allowed instead, for the causes that a person meets."""
    hints = {
        "not a database": "; allowed: a ledger of this program, or a new file",
        "unable to open": "; allowed: a file in an existing writable folder",
        "readonly": "; allowed: a file and folder that can be written",
        "locked": "; allowed: one writer at a time, on a local disk",
    }
    return next((hint for word, hint in hints.items() if word in reason), "")
