"""Opening a ledger for reading: nothing is made, and nothing needs to be writable."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import StaticPool

from results.files import writable
from results.ledger.database import check_file, parse, server, sqlite, tolerate
from results.ledger.url import LedgerUrl

LEFT_BEHIND = ("-wal", "-journal")
"""Endings of the files beside an SQLite file of a program that has it open, or died while it had."""


def connect_to_read(url: LedgerUrl | str) -> Engine:
    """Returns an engine for reading. An SQLite file that does not exist is read as an empty ledger.

    Raises StoreError for a wrong URL or driver, and where the file is a folder.
    """
    url = LedgerUrl.of(url)
    parsed = parse(url)
    if parsed.drivername != "sqlite":
        return server(parsed, url)
    if url.file is not None and not url.file.exists():
        return create_engine("sqlite://")
    file = check_file(parsed, url)
    if file is None:
        return sqlite(parsed, _read_only)
    options = _options(file)
    if options is None:
        return create_engine("sqlite://", creator=partial(_copy, file), poolclass=StaticPool)
    name = f"file:{quote(os.fsencode(file.absolute()))}"
    return sqlite(URL.create("sqlite", database=name, query={**options, "uri": "true"}), _read_only)


def _options(file: Path) -> Mapping[str, str] | None:
    """Returns the options with which SQLite opens the file; None where it cannot be opened without writing.

    A writable file is opened for writing, although nothing is written, because SQLite then removes its helper files
    at the end. Any other file is opened as one that nobody changes, or together with the program that has it open.
    """
    if writable(file) and writable(file.parent):
        return {"mode": "rw"}
    if not any(_beside(file, end).exists() and _beside(file, end).stat().st_size for end in LEFT_BEHIND):
        return {"mode": "ro", "immutable": "1"}
    return {"mode": "ro"} if _beside(file, "-shm").exists() else None


def _copy(file: Path) -> sqlite3.Connection:
    """Returns a copy of the ledger in memory, including what a program that died has left in its log."""
    with TemporaryDirectory() as folder:
        for one in (file, *(_beside(file, end) for end in LEFT_BEHIND if _beside(file, end).exists())):
            shutil.copyfile(one, Path(folder, one.name))
        memory, copy = sqlite3.connect(":memory:", check_same_thread=False), sqlite3.connect(Path(folder, file.name))
        try:
            copy.backup(memory)
        finally:
            copy.close()
    _read_only(memory, None)
    return memory


def _read_only(connection: sqlite3.Connection, _record: Any) -> None:
    """Makes SQLite itself refuse to write."""
    tolerate(connection)
    connection.execute("PRAGMA query_only=ON").close()


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)
