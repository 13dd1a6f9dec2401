"""Opening a database by its URL, to write or to read, with errors that say what to do; and INSERT in its dialect."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Column, Connection, Engine, Table, create_engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from results.labels import on_one_line
from results.ledger.dialects import postgresql, sqlite
from results.ledger.dialects.engine import ALLOWED
from results.ledger.errors import RECOVER, StoreError
from results.ledger.url import LedgerUrl, without_passwords

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresqlInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

KEYS_PER_QUERY = 500
"""Keys in one query: databases limit the number of values in it."""
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
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
        return postgresql.to_use(parsed, url)
    if read_only and url.file is not None and not url.file.exists():
        return create_engine("sqlite://")
    file = _check_file(parsed, url)
    place = parsed if file is None else parsed.set(database=str(file))
    return sqlite.to_read(place, url, file) if read_only else sqlite.to_write(place, url)


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
        if isinstance(cause, sqlite3.Error):
            kind = sqlite.kind(cause, opened=action != "open")
        else:
            kind = postgresql.kind(cause)
        raise kind(f"cannot {action} the ledger {url}: {reason}{hint}") from (None if url.secrets else error)


def in_groups(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields the keys in their order, no more at a time than a query may have."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]], key: Column[Any]) -> int:
    """Inserts the rows whose key does not exist yet, and returns their number."""
    statement = insertion(connection, table).on_conflict_do_nothing().returning(key)
    return len(connection.execute(statement, rows).all())


def insertion(connection: Connection, table: Table) -> "PostgresqlInsert | SqliteInsert":
    """Returns an INSERT of the database's own dialect, which has a clause for existing keys."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # late: commands that only read need neither

        return insert(table)
    from sqlalchemy.dialects.sqlite import insert as insert_into_file

    return insert_into_file(table)


def _parse(url: LedgerUrl) -> URL:
    """Returns SQLAlchemy's URL. Raises StoreError for text that is no URL, or not one of a ledger."""
    try:
        parsed = make_url(url.revealed)
    except (ArgumentError, ValueError):
        raise StoreError(f"the ledger's URL cannot be read: {str(url)!r}; {ALLOWED}") from None
    if parsed.drivername not in DRIVERS:
        raise StoreError(f"no ledger of kind {parsed.drivername!r} ({url}); {ALLOWED}")
    return parsed.set(drivername=DRIVERS[parsed.drivername])


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
