"""Opening a database by its URL, to write or to read, with errors that say what to do; and INSERT in its dialect."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Column, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from results.files import writable
from results.labels import on_one_line
from results.ledger.errors import RECOVER, StoreError, StoreGone, StoreUnavailable
from results.ledger.url import LedgerUrl, without_passwords

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

ALLOWED = "allowed: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
KEYS_PER_QUERY = 500
"""Keys in one query: databases limit the number of values in it."""
BUSY_SECONDS = 60
"""How long SQLite waits for another process that writes."""
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
ENCODING = "UTF8"
"""Of a PostgreSQL database: others lack letters, or do not know which bytes are which."""

# No committed record is lost when the process or the machine dies: a write-ahead log, flushed at every commit.
DURABLE = ("journal_mode=WAL", "synchronous=FULL")
READ_ONLY = ("query_only=ON",)  # SQLite itself refuses to write
LEFT_BEHIND = ("-wal", "-journal")
"""Endings of the files beside an SQLite file of a program that has it open, or died while it had."""

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
POSTGRES_PASSING = (
    *("starting up", "shutting down", "in recovery mode", "accepting connections"),
    *("terminating connection", "too many c", "connection slots"),
)

HINTS = {
    "not a database": "; allowed: a ledger of this program, or a new file",
    "unable to open": "; allowed: a file in an existing writable folder",
    "readonly": "; allowed: a file and folder that can be written",
    "malformed": f"; the file is damaged; {RECOVER}",
    "locked": "; allowed: one writer at a time, on a local disk",
}
"""Words of SQLite's most common errors -> what to do."""


def connect(url: LedgerUrl | str, read_only: bool = False) -> Engine:
    """Returns an engine; nothing is opened yet. Raises StoreError for a wrong URL, driver or folder.

    So does the first connection, for a PostgreSQL database that has another encoding than UTF8.

    To read, nothing is made and nothing needs to be writable: an SQLite file that does not exist is an empty ledger.
    """
    url = LedgerUrl.of(url)
    parsed = _parse(url)
    if parsed.drivername != "sqlite":
        return _postgresql(parsed, url)
    if read_only and url.file is not None and not url.file.exists():
        return create_engine("sqlite://")
    file = _check_file(parsed, url)
    if file is None or not read_only:
        place = parsed if file is None else parsed.set(database=str(file))
        return _sqlite(place, url, READ_ONLY if read_only else DURABLE)
    options = _options_to_read(file)
    if options is None:
        # One connection for all, because each would have a memory of its own.
        return _sqlite(make_url("sqlite://"), url, READ_ONLY, creator=partial(_copy, file), poolclass=StaticPool)
    # SQLite takes these options only in a URI, which needs a name that is absolute and quoted.
    name = f"file:{quote(os.fsencode(file.absolute()))}"
    return _sqlite(URL.create("sqlite", database=name, query={**options, "uri": "true"}), url, READ_ONLY)


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
        hint = next((hint for words, hint in HINTS.items() if words in reason), "")
        # A traceback shows the cause, too, and the cause may contain the password.
        raise _kind(cause)(f"cannot {action} the ledger {url}: {reason}{hint}") from (None if url.secrets else error)


def in_groups(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields the keys in their order, no more at a time than a query may have."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]], key: Column[Any]) -> int:
    """Inserts the rows whose key does not exist yet, and returns their number."""
    statement = insertion(connection, table).on_conflict_do_nothing().returning(key)
    return len(connection.execute(statement, rows).all())


def insertion(connection: Connection, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """Returns an INSERT of the database's own dialect, which has a clause for existing keys."""
    from sqlalchemy.dialects import postgresql, sqlite  # late: commands that only read need neither

    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def _kind(cause: BaseException) -> type[StoreError]:
    """Returns the class of the error: whether the database failed, and whether it may answer again."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the other bits only say more about the same error
        return StoreUnavailable if code in SQLITE_UNAVAILABLE else StoreError
    # By name, because psycopg need not be installed.
    if type(cause).__module__.split(".")[0] != "psycopg":
        return StoreError
    state = getattr(cause, "sqlstate", None) or ""
    if not state and any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(cause).__mro__):
        # No connection, or one that broke. What the server itself refuses is FATAL, and mostly permanent.
        refused = "FATAL" in str(cause) and not any(words in str(cause) for words in POSTGRES_PASSING)
        return StoreError if refused else StoreGone
    if state.startswith(POSTGRES_GONE):
        return StoreGone
    return StoreUnavailable if state.startswith(POSTGRES_UNAVAILABLE) else StoreError


def _parse(url: LedgerUrl) -> URL:
    """Returns SQLAlchemy's URL. Raises StoreError for text that is no URL, or not one of a ledger."""
    try:
        parsed = make_url(url.revealed)
    except (ArgumentError, ValueError):
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from None
    if parsed.drivername not in DRIVERS:
        raise StoreError(f"no ledger of kind {parsed.drivername!r} ({url}); {ALLOWED}")
    return parsed.set(drivername=DRIVERS[parsed.drivername])


def _engine(place: URL, url: LedgerUrl, **options: Any) -> Engine:
    """Returns an engine. Raises StoreError for options in the URL that do not exist, and without the driver."""
    try:
        return create_engine(place, **options)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the ledger {url} needs the package {error.name}: pip install 'epsearch[postgres]'"
        ) from error
    except (ArgumentError, ValueError, TypeError):
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from None


def _check_file(parsed: URL, url: LedgerUrl) -> Path | None:
    """Returns the file of a URL; None for a URI of SQLite's own kind. Raises StoreError if it cannot be a ledger."""
    if parsed.database in (None, "", ":memory:"):
        raise StoreError(f"the ledger must be a file, got {str(url)!r}, which is lost at exit; allowed: sqlite:///FILE")
    file = url.file
    if file is not None and not file.parent.is_dir():
        raise StoreError(
            f"the ledger's folder does not exist: {on_one_line(file.parent)}; allowed: a file in an existing folder"
        )
    if file is not None and file.is_dir():
        raise StoreError(f"the ledger must be a file, got the folder {on_one_line(file)}; allowed: sqlite:///FILE")
    return file


def _postgresql(place: URL, url: LedgerUrl) -> Engine:
    """Returns an engine for a PostgreSQL database that refuses one which does not store every text."""
    options = {"client_encoding": ENCODING}  # whatever PGCLIENTENCODING says
    # A connection of the pool may be older than the server's last restart, so each is tried before it is used.
    engine = _engine(place, url, pool_pre_ping=True, hide_parameters=True, connect_args=options)

    # Before SQLAlchemy's own first look at the server, which fails where text has no encoding.
    @event.listens_for(engine, "connect", insert=True)
    def check(connection: Any, _record: Any) -> None:
        there = connection.info.parameter_status("server_encoding")  # as the server says when it is connected to
        if there not in (None, ENCODING):
            connection.close()
            raise StoreError(
                f"the database of the ledger {url} has the encoding {there}; allowed: {ENCODING}, as of "
                f"CREATE DATABASE … ENCODING '{ENCODING}' TEMPLATE template0"
            )

    return engine


def _sqlite(place: URL, url: LedgerUrl, pragmas: tuple[str, ...], **options: Any) -> Engine:
    """Returns an engine for an SQLite file that sets up every new connection with the pragmas."""
    engine = _engine(place, url, connect_args={"timeout": BUSY_SECONDS}, **options)

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
    at the end. Any other file is opened as one that nobody changes, or together with the program that has it open.
    """
    if writable(file) and writable(file.parent):
        return {"mode": "rw"}
    if not any(_beside(file, end).exists() and _beside(file, end).stat().st_size for end in LEFT_BEHIND):
        return {"mode": "ro", "immutable": "1"}
    # The index of the log, which SQLite would have to make: it is there while a program has the file open.
    return {"mode": "ro"} if _beside(file, "-shm").exists() else None


def _copy(file: Path) -> sqlite3.Connection:
    """Returns a copy of the ledger in memory, including what a program that died has left in its log."""
    with TemporaryDirectory() as folder:
        for one in (file, *(_beside(file, end) for end in LEFT_BEHIND if _beside(file, end).exists())):
            shutil.copyfile(one, Path(folder, one.name))
        # Threads share it: the pool has this one connection.
        memory = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(Path(folder, file.name))) as copy:
            copy.backup(memory)
    return memory


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)
