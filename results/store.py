"""The ledger: every record ever trained and every certificate, by content key, and the configuration of every study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from sqlalchemy import Column, Connection, Engine, Row, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateColumn, CreateTable

from results import schema
from results.certificate import Certificate
from results.database import connect, one_line_errors
from results.errors import StoreError, StudyConflict, conflict
from results.patience import Patience, tried_again
from results.record import RunRecord

__all__ = ["Store", "StoreError", "StudyConflict", "StudyRow"]

KEYS_PER_QUERY = 500
PREPARATION = 0x65707365617263  # "epsearc": PostgreSQL's name of the lock under which the tables are made


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
        self.patience = Patience()  # none; a run has some

    @classmethod
    def open(cls, url: str) -> Store:
        """Open `sqlite:///FILE` or `postgresql://…`, make the tables where they are missing, and bring those of an
        older ledger up to date.

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
        return {row.key: schema.from_row(row) for row in self._rows(schema.runs, keys)}

    def add(self, records: Iterable[RunRecord]) -> int:
        """Add records in one transaction: all or none. A key already there keeps its first record. Returns
        the number added.
        """
        return self._add_rows(schema.runs, (schema.to_row(record) for record in records))

    def certify(self, certificates: Iterable[Certificate]) -> int:
        """Add certificates in one transaction: all or none. A key already there keeps its first certificate.
        Returns the number added.
        """
        return self._add_rows(schema.certificates, (asdict(certificate) for certificate in certificates))

    def certificates(self, keys: Iterable[str]) -> dict[str, Certificate]:
        """The certificates of those keys that have one."""
        return {row.key: Certificate(**row._mapping) for row in self._rows(schema.certificates, keys)}

    @tried_again
    def all_runs(self) -> list[RunRecord]:
        """Every record, in the order of creation, then key."""
        with self._transaction("read") as connection:
            rows = connection.execute(select(schema.runs).order_by(schema.runs.c.created, schema.runs.c.key))
            return [schema.from_row(row) for row in rows]

    @tried_again
    def count(self) -> int:
        """Number of records."""
        with self._transaction("read") as connection:
            return int(connection.execute(select(func.count()).select_from(schema.runs)).scalar_one())

    @tried_again
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

    @tried_again
    def change_study(self, before: StudyRow, config: Mapping[str, Any]) -> None:
        """Give a study another configuration. StudyConflict where it is no longer as it was read."""
        there = schema.studies.c
        known = (there.name == before.name) & (there.config == schema.mapping_to_json(before.config))
        new = schema.mapping_to_json(config)
        with self._transaction("write to") as connection:
            changed = connection.execute(schema.studies.update().where(known).values(config=new))
            now = connection.execute(select(there.config).where(there.name == before.name)).scalar_one_or_none()
            if changed.rowcount != 1 and now != new:  # it is `new` where a first try came through, and its answer not
                raise StudyConflict(f"study {before.name!r} has been changed meanwhile; run the command again")

    @tried_again
    def described(self, phase: str) -> list[tuple[dict[str, Any], str]]:
        """(content, time of creation) of every run on the streams of a phase, "cv" or "eval", oldest first."""
        runs = schema.runs.c
        query = select(runs.content, runs.created).where(runs.phase == phase).order_by(runs.created, runs.key)
        with self._transaction("read") as connection:
            return [(json.loads(row.content), row.created) for row in connection.execute(query)]

    def study(self, name: str) -> StudyRow | None:
        """The study of that name, or None."""
        return next((row for row in self.studies() if row.name == name), None)

    @tried_again
    def studies(self) -> list[StudyRow]:
        """Every study, in the order of creation, then name."""
        with self._transaction("read") as connection:
            rows = connection.execute(select(schema.studies).order_by(schema.studies.c.created, schema.studies.c.name))
            return [StudyRow(row.name, json.loads(row.config), row.created) for row in rows]

    def _rows(self, table: Table, keys: Iterable[str]) -> list[Row[Any]]:
        return self._found(table, sorted(set(keys)))

    @tried_again
    def _found(self, table: Table, keys: Sequence[str]) -> list[Row[Any]]:
        found: list[Row[Any]] = []
        with self._transaction("read") as connection:
            for some in _batches(keys, KEYS_PER_QUERY):
                found += connection.execute(select(table).where(table.c.key.in_(some)))
        return found

    def _add_rows(self, table: Table, rows: Iterable[dict[str, Any]]) -> int:
        # Sorted, so that two writers of the same keys take the same locks in the same order.
        ordered = sorted(rows, key=lambda row: str(row["key"]))
        return self._insert(table, ordered) if ordered else 0

    @tried_again
    def _insert(self, table: Table, rows: list[dict[str, Any]]) -> int:
        with self._transaction("write to") as connection:
            return _insert_new(connection, table, rows, table.c.key)

    def _prepare(self) -> None:
        with self._transaction("open") as connection:
            _lock_others_out(connection)
            _add_columns(connection, self._version(connection))
            for table in (schema.runs, schema.studies, schema.certificates):
                connection.execute(CreateTable(table, if_not_exists=True))

    def _version(self, connection: Connection) -> int:
        connection.execute(CreateTable(schema.versions, if_not_exists=True))
        _insert_new(connection, schema.versions, [{"id": 1, "version": schema.VERSION}], schema.versions.c.id)
        version = int(connection.execute(select(schema.versions.c.version)).scalar_one())
        if version > schema.VERSION:
            raise StoreError(
                f"the ledger has schema version {version}, made by a newer epsearch; "
                f"allowed: up to {schema.VERSION}; upgrade epsearch"
            )
        return version

    @contextmanager
    def _transaction(self, action: str) -> Iterator[Connection]:
        with one_line_errors(self._url, action), self._engine.begin() as connection:
            yield connection


def _lock_others_out(connection: Connection) -> None:
    """Until the transaction ends, no other process makes or changes the tables."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(PREPARATION)))
    else:
        # Python's driver begins a transaction at the first INSERT only; a CREATE TABLE before it would stand alone.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _add_columns(connection: Connection, version: int) -> None:
    """Bring the tables of an older ledger up to date; its rows get the columns' defaults."""
    for newer in range(version + 1, schema.VERSION + 1):
        for column in schema.ADDED_COLUMNS.get(newer, ()):
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")
    if version < schema.VERSION:
        connection.execute(schema.versions.update().values(version=schema.VERSION))


def _insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]], key: Column[Any]) -> int:
    """Insert the rows whose key is not there yet; returns their number."""
    build = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = build(table).on_conflict_do_nothing().returning(key)
    return len(connection.execute(statement, rows).all())


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[i : i + size] for i in range(0, len(items), size))
