"""The ledger: every record ever trained, by content key, and the configuration of every study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from sqlalchemy import Column, Connection, Engine, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from results import schema
from results.database import connect, one_line_errors
from results.errors import StoreError, StudyConflict, conflict
from results.record import RunRecord

__all__ = ["Store", "StoreError", "StudyConflict", "StudyRow"]

KEYS_PER_QUERY = 500


@dataclass(frozen=True)
class StudyRow:
    """One study of the ledger."""

    name: str
    config: Mapping[str, Any]
    created: str
    """ISO-8601 time, UTC."""


class Store:
    """A ledger opened with `Store.open`. Safe to use from several threads and processes at once; usable in a
    `with` statement.

    Every method raises StoreError, one line, where the database does.
    """

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self._url = url

    @classmethod
    def open(cls, url: str) -> Store:
        """Open `sqlite:///FILE` or `postgresql://…`, and make the tables where they are missing.

        StoreError where the URL, the driver, the folder or the file is wrong, or a newer program made the
        ledger.
        """
        store = cls(connect(url), url)
        try:
            store._prepare()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, keys: Iterable[str]) -> dict[str, RunRecord]:
        """The records of those keys that the ledger knows."""
        found: dict[str, RunRecord] = {}
        with self._transaction("read") as connection:
            for some in _batches(sorted(set(keys)), KEYS_PER_QUERY):
                rows = connection.execute(select(schema.runs).where(schema.runs.c.key.in_(some)))
                found |= {row.key: schema.from_row(row) for row in rows}
        return found

    def add(self, records: Iterable[RunRecord]) -> int:
        """Add records in one transaction: all or none. A key already there keeps its first record. Returns
        the number added.
        """
        # Sorted, so that two writers of the same keys take the same locks in the same order.
        rows = sorted((schema.to_row(record) for record in records), key=lambda row: str(row["key"]))
        if not rows:
            return 0
        with self._transaction("write to") as connection:
            return _insert_new(connection, schema.runs, rows, schema.runs.c.key)

    def all_runs(self) -> list[RunRecord]:
        """Every record, in the order of creation, then key."""
        with self._transaction("read") as connection:
            rows = connection.execute(select(schema.runs).order_by(schema.runs.c.created, schema.runs.c.key))
            return [schema.from_row(row) for row in rows]

    def count(self) -> int:
        """Number of records."""
        with self._transaction("read") as connection:
            return int(connection.execute(select(func.count()).select_from(schema.runs)).scalar_one())

    def save_study(self, name: str, config: Mapping[str, Any]) -> None:
        """Remember a study. The same configuration again changes nothing; another one under the name raises
        StudyConflict.
        """
        row = {
            "name": name,
            "config": schema.mapping_to_json(config),
            "created": datetime.now(UTC).isoformat(),
        }
        with self._transaction("write to") as connection:
            _insert_new(connection, schema.studies, [row], schema.studies.c.name)
            there = connection.execute(
                select(schema.studies.c.config).where(schema.studies.c.name == name)
            ).scalar_one()
        old, new = json.loads(there), json.loads(str(row["config"]))
        if old != new:
            raise conflict(name, old, new)

    def study(self, name: str) -> StudyRow | None:
        """The study of that name, or None."""
        return next((row for row in self.studies() if row.name == name), None)

    def studies(self) -> list[StudyRow]:
        """Every study, in the order of creation, then name."""
        with self._transaction("read") as connection:
            rows = connection.execute(select(schema.studies).order_by(schema.studies.c.created, schema.studies.c.name))
            return [StudyRow(row.name, json.loads(row.config), row.created) for row in rows]

    def _prepare(self) -> None:
        with self._transaction("open") as connection:
            self._check_version(connection)
            for table in (schema.runs, schema.studies):
                connection.execute(CreateTable(table, if_not_exists=True))

    def _check_version(self, connection: Connection) -> None:
        connection.execute(CreateTable(schema.versions, if_not_exists=True))
        _insert_new(connection, schema.versions, [{"id": 1, "version": schema.VERSION}], schema.versions.c.id)
        version = connection.execute(select(schema.versions.c.version)).scalar_one()
        if version > schema.VERSION:
            raise StoreError(
                f"the ledger has schema version {version}, made by a newer epsearch; "
                f"allowed: up to {schema.VERSION}; upgrade epsearch"
            )

    @contextmanager
    def _transaction(self, action: str) -> Iterator[Connection]:
        with one_line_errors(self._url, action), self._engine.begin() as connection:
            yield connection


def _insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]], key: Column[Any]) -> int:
    """Insert the rows whose key is not there yet; returns their number."""
    build = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = build(table).on_conflict_do_nothing().returning(key)
    return len(connection.execute(statement, rows).all())


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[i : i + size] for i in range(0, len(items), size))
