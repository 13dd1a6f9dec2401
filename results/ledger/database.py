"""Opening a database by its URL, with errors that say what to do."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from results.files import on_one_line
from results.ledger.errors import StoreError, StoreGone, StoreUnavailable
from results.ledger.url import LedgerUrl, without_passwords

ALLOWED = "allowed: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
BUSY_SECONDS = 60
"""How long SQLite waits for another process that writes."""
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


def connect(url: LedgerUrl | str) -> Engine:
    """Returns an engine to write with; nothing is opened yet. Raises StoreError for a wrong URL, driver or folder."""
    url = LedgerUrl.of(url)
    parsed = parse(url)
    if parsed.drivername != "sqlite":
        return server(parsed, url)
    file = check_file(parsed, url)
    place = parsed if file is None else parsed.set(database=str(file))
    return sqlite(place, _durable)


@contextmanager
def one_line_errors(url: LedgerUrl, action: str) -> Iterator[None]:
    """Turns everything that the database raises into a StoreError of one line, without the password."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, UnicodeError, OverflowError) as error:
        # UnicodeError and OverflowError: a damaged file may have names that are not text and numbers that are too
        # large.
        cause = getattr(error, "orig", None) or error
        lines = "".join(letter if letter.isprintable() else "\n" for letter in str(cause)).strip().splitlines()
        reason = without_passwords(lines[0], [url]) if lines else type(cause).__name__
        line = f"cannot {action} the ledger {url}: {reason}{_hint(reason)}"
        # A traceback shows the cause, too, and the cause may contain the password.
        raise _kind(cause)(line) from (None if url.secrets else error)


def _kind(cause: BaseException) -> type[StoreError]:
    """Returns the class of the error: whether the database failed, and whether it may answer again."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the other bits only say more about the same error
        return StoreUnavailable if code in SQLITE_UNAVAILABLE else StoreError
    if type(cause).__module__.split(".")[0] != "psycopg":
        return StoreError
    state = getattr(cause, "sqlstate", None)
    if state is None and any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(cause).__mro__):
        # No connection, or one that broke. What the server itself refuses is FATAL, and mostly permanent.
        refused = "FATAL" in str(cause) and not any(words in str(cause) for words in POSTGRES_PASSING)
        return StoreError if refused else StoreGone
    if state is not None and state.startswith(POSTGRES_GONE):
        return StoreGone
    return StoreUnavailable if state is not None and state.startswith(POSTGRES_UNAVAILABLE) else StoreError


def parse(url: LedgerUrl) -> URL:
    """Returns SQLAlchemy's URL. Raises StoreError for text that is no URL, or not one of a ledger."""
    try:
        parsed = make_url(url.revealed)
    except (ArgumentError, ValueError):
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from None
    if parsed.drivername not in DRIVERS:
        raise StoreError(f"no ledger of kind {parsed.drivername!r} ({url}); {ALLOWED}")
    return parsed.set(drivername=DRIVERS[parsed.drivername])


def server(parsed: URL, url: LedgerUrl) -> Engine:
    """Returns an engine for PostgreSQL. Raises StoreError where the driver is not installed."""
    try:
        return create_engine(parsed, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the ledger {url} needs the package {error.name}: pip install 'epsearch[postgres]'"
        ) from error
    except ArgumentError as error:
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from error


def check_file(parsed: URL, url: LedgerUrl) -> Path | None:
    """Returns the file of a URL; None for a URI of SQLite's own kind. Raises StoreError if it cannot be a ledger."""
    if parsed.database in (None, "", ":memory:"):
        raise StoreError(f"the ledger must be a file, got {str(url)!r}, which is lost at exit; allowed: sqlite:///FILE")
    file = url.file
    if file is None:
        return None
    if not file.parent.is_dir():
        raise StoreError(
            f"the ledger's folder does not exist: {on_one_line(file.parent)}; allowed: a file in an existing folder"
        )
    if file.is_dir():
        raise StoreError(f"the ledger must be a file, got the folder {on_one_line(file)}; allowed: sqlite:///FILE")
    return file


def sqlite(place: URL, prepare: Callable[[sqlite3.Connection, Any], None]) -> Engine:
    """Returns an engine for an SQLite file; `prepare` is called with every new connection."""
    try:
        engine = create_engine(place, connect_args={"timeout": BUSY_SECONDS})
    except (ArgumentError, ValueError, TypeError) as error:
        raise StoreError(f"the ledger's URL cannot be read: {str(place)!r}; {ALLOWED}") from error
    event.listen(engine, "connect", prepare)
    return engine


def _durable(connection: sqlite3.Connection, _record: Any) -> None:
    """Makes commits durable: no committed record is lost when the process or the machine dies.

    By a write-ahead log that is flushed to the disk at every commit.
    """
    tolerate(connection)
    cursor = connection.cursor()
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def tolerate(connection: sqlite3.Connection) -> None:
    """Lets a connection read text that is not UTF-8, so that one damaged row is refused and not all rows."""
    connection.text_factory = lambda text: text.decode(errors="replace")


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
    """Returns what is allowed instead, for the most common causes; "" for others."""
    hints = {
        "not a database": "; allowed: a ledger of this program, or a new file",
        "unable to open": "; allowed: a file in an existing writable folder",
        "readonly": "; allowed: a file and folder that can be written",
        "malformed": "; the file is damaged, what can be saved of it, `sqlite3 FILE .recover` prints",
        "locked": "; allowed: one writer at a time, on a local disk",
    }
    return next((hint for word, hint in hints.items() if word in reason), "")
