"""The steps from each schema version of the ledger to the next, and the copy that is made before."""

import filecmp
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import chain, count
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection

from results.files import flush
from results.labels import on_one_line
from results.ledger import schema
from results.ledger.errors import StoreUnavailable


def _to_2(connection: Connection) -> None:
    """Adds the turns of owners."""
    number = "DOUBLE" if connection.dialect.name == "sqlite" else "DOUBLE PRECISION"
    connection.exec_driver_sql(
        f"CREATE TABLE epsearch_turns (owner VARCHAR(255) NOT NULL PRIMARY KEY, begun {number} NOT NULL)"
    )


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: _to_2}
"""Version -> the step to the next version, in the transaction of the connection.

A migration that has been released is never changed. It is written in SQL and uses nothing of `schema`, which describes
only the present version. Ledgers of `schema.DEVELOPMENT` have the tables of version 1.
"""


def migrate(connection: Connection, version: int) -> None:
    """Brings a ledger from a version to the last one, in the transaction of the connection."""
    for number in range(1 if version == schema.DEVELOPMENT else version, schema.VERSION):
        MIGRATIONS[number](connection)
    connection.execute(schema.versions.update().values(version=schema.VERSION))


def copy_beside(connection: Connection, version: int) -> str | None:
    """Copies an SQLite ledger to a file beside it, flushes the copy to the disk, and returns its name.

    The connection must have begun a write transaction, so that nobody else is writing, and must not have written yet.
    Earlier copies are kept; one with the same content is used. None for a ledger that is not a file. Raises
    StoreUnavailable where the copy cannot be made.
    """
    query = "SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'"  # a name need be no UTF-8
    name = connection.exec_driver_sql(query).scalar_one()
    if not name:
        return None
    file = Path(os.fsdecode(name))
    part = file.with_name(f"{file.name}.v{version}.part")
    try:
        _copy(file, part)
        # A migration that was killed has left the same copy, which takes the same name again.
        free = (name for name in _names(file, version) if not name.exists() or filecmp.cmp(part, name, shallow=False))
        copy = part.replace(next(free))
        flush(file.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise StoreUnavailable(
            f"cannot copy the ledger to {on_one_line(part)} before it is brought up to date: {reason}; "
            "the ledger is unchanged"
        ) from error
    return on_one_line(copy)


def _names(file: Path, version: int) -> Iterator[Path]:
    """Returns the possible names of a copy, without end."""
    ends = chain([""], (f".{number}" for number in count(2)))
    return (file.with_name(f"{file.name}.v{version}{end}") for end in ends)


def _copy(file: Path, part: Path) -> None:
    part.unlink(missing_ok=True)  # of a program that was killed
    part.touch(mode=0o600)
    # Through a second connection, which sees all that is committed, in the file and in the log beside it.
    source = sqlite3.connect(f"file:{quote(os.fsencode(file))}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode=OFF").close()  # it is flushed below, and thrown away if that fails
        source.backup(copy)
    shutil.copymode(file, part)
    flush(part)
