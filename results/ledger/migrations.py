"""How a ledger of an older schema version becomes one of the next, and the copy that is made of it before."""

from __future__ import annotations

import filecmp
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection

from results.ledger import schema
from results.ledger.errors import StoreUnavailable
from results.ledger.files import on_one_line


def add_summaries(connection: Connection) -> None:
    """A table of what `epsearch list` shows. It stays empty: commands that write to a study fill in its own row."""
    connection.exec_driver_sql(
        "CREATE TABLE epsearch_summaries (name VARCHAR(255) NOT NULL, study VARCHAR(64) NOT NULL, "
        "summary TEXT NOT NULL, checksum VARCHAR(64) NOT NULL, PRIMARY KEY (name))"
    )


MIGRATIONS: dict[int, Callable[[Connection], None]] = {3: add_summaries}
"""Version -> what makes the next one of it, in the transaction of the connection.

A migration that has been released stays as it is: it says in SQL what it does, and takes nothing from today's `schema`.
"""


def migrate(connection: Connection, version: int) -> None:
    """From a version to the last one, in the transaction of the connection."""
    for number in range(version, schema.VERSION):
        MIGRATIONS[number](connection)
    connection.execute(schema.versions.update().values(version=schema.VERSION))


def copy_beside(connection: Connection, version: int) -> str | None:
    """Copies an SQLite ledger, whole and flushed to the disk, to a file of its own beside it; returns that file's name.

    Nobody else may be writing: the connection has begun a transaction to do so, and has written nothing. Copies of
    earlier times stay; one that is the same serves. None where the ledger is no file. StoreUnavailable where the copy
    cannot be made.
    """
    query = "SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'"  # a name need be no UTF-8
    name = connection.exec_driver_sql(query).scalar_one()
    if not name:
        return None
    file = Path(os.fsdecode(name))
    part = file.with_name(f"{file.name}.v{version}.part")
    try:
        _copy(file, part)
        for copy in _names(file, version):
            if not copy.exists():
                part.rename(copy)
                break
            if filecmp.cmp(part, copy, shallow=False):
                part.unlink()
                break
        _flush(file.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise StoreUnavailable(
            f"cannot copy the ledger to {on_one_line(part)} before it is brought up to date: {reason}; it is as it was"
        ) from error
    return on_one_line(copy)


def _names(file: Path, version: int) -> Iterator[Path]:
    yield file.with_name(f"{file.name}.v{version}")
    yield from (file.with_name(f"{file.name}.v{version}.{number}") for number in count(2))


def _copy(file: Path, part: Path) -> None:
    part.unlink(missing_ok=True)  # of a program that was killed
    part.touch(mode=0o600)
    # By a connection of its own, which sees what is committed, be it in the file or in the log beside it.
    source = sqlite3.connect(f"file:{quote(os.fsencode(file))}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode=OFF").close()
        source.backup(copy)
    shutil.copymode(file, part)
    _flush(part)


def _flush(place: Path) -> None:
    """To the disk, the content of a file or the names in a folder."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
