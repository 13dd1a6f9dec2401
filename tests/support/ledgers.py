"""A finished study's ledger for tests to copy and to damage, trained once."""

import atexit
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from unittest.mock import patch

from epsearch import api
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from results.ledger.schema import DEVELOPMENT, TABLES_OF, VERSION
from tests.epsearch.conftest import SMALL

STUDY = SMALL | {"repeats": 1, "points": 3}
ARGUMENTS = [part for name, value in STUDY.items() for part in ("--" + name.replace("_", "-"), str(value))]
NAME = "first"


@cache
def finished(**options: object) -> Path:
    """The out folder of the study NAME: SQLite ledger and report; options: other ones than those of STUDY."""
    folder = Path(tempfile.mkdtemp(prefix="ledgers-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with patch.dict(os.environ, {"EPSEARCH_CACHE": str(folder / "cache")}):
        api.run(build(Search, STUDY | options | {"out": folder / "runs", "name": NAME}))
    return folder / "runs"


def execute(folder: Path, *statements: str, **values: object) -> None:
    """Changes the ledger of an out folder behind the program's back."""
    with closing(sqlite3.connect(folder / "epsearch.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


def query(folder: Path, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / "epsearch.sqlite")) as connection:
        return connection.execute(statement).fetchall()


def results(folder: Path) -> list[tuple]:
    """What a ledger knows of members, but for when and how long they were trained, and together with whom."""
    columns = "key, phase, method, epsilon, seed, status, steps, accuracies, initial, within, violations, fingerprint"
    return query(folder, f"SELECT {columns} FROM epsearch_runs ORDER BY key")


def of_development(folder: Path) -> None:
    """Makes the ledger of an out folder one of the last development version."""
    new = {table.name for table in TABLES_OF[VERSION]} - {table.name for table in TABLES_OF[DEVELOPMENT]}
    execute(
        folder,
        f"UPDATE epsearch_schema SET version = {DEVELOPMENT}",
        *(f"DROP TABLE {name}" for name in sorted(new)),
    )
