"""The tables of a ledger as they stand in a database: made, brought up to date, or refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Float, Inspector, Integer, String, Table, func, inspect, select, text
from sqlalchemy.schema import CreateColumn, CreateTable
from sqlalchemy.types import TypeEngine

from results.ledger import schema
from results.ledger.errors import StoreError

PREPARATION = 0x65707365617263  # "epsearc": PostgreSQL's name of the lock under which the tables are made
TABLES = (schema.runs, schema.studies, schema.certificates)

Columns = Mapping[str, frozenset[str]]
"""Table -> the columns that it has. What a ledger does not have yet is missing."""


def prepare(connection: Connection) -> Columns:
    """Make the tables where there are none, and bring those of an older ledger up to date, to write to them.

    StoreError where a newer program made them, or they are not what one of this program's has made.
    """
    _lock_others_out(connection)
    _check_pages(connection)
    version = _version(connection)
    look(connection)
    for table in TABLES:
        if what := _other_than_made(inspect(connection), table):
            raise StoreError(f"the ledger is damaged: {what}, and cannot be written to")
    if version is None:
        for table in (schema.versions, *TABLES):
            connection.execute(CreateTable(table))
        connection.execute(schema.versions.insert().values(id=1, version=schema.VERSION))
    elif version < schema.VERSION:
        _bring_up_to_date(connection, version)
    return {table.name: frozenset(table.columns.keys()) for table in TABLES}


def look(connection: Connection) -> Columns:
    """What there is to read: nothing in a database without a ledger. StoreError as of `prepare`."""
    version = _version(connection)
    if version is None:
        return {}
    there = {table.name: _columns(connection, table) for table in TABLES}
    for table in TABLES:
        later = {column for newer in range(version + 1, schema.VERSION + 1) for column in _added(newer, table)}
        if missing := sorted({column.name for column in table.columns} - later - there[table.name]):
            what = (
                f"{table.name} has no column {missing[0]}" if there[table.name] else f"there is no table {table.name}"
            )
            raise StoreError(f"the ledger is damaged: {what}")
    return there


def _other_than_made(there: Inspector, table: Table) -> str | None:
    """How the table differs from the one that is made; None where it does not, or is not there."""
    if table.name in there.get_view_names():
        return f"{table.name} is a view, not a table"
    if not there.has_table(table.name):
        return None
    for column in there.get_columns(table.name):
        made = table.columns.get(column["name"])
        if made is not None and _kind(column["type"]) is not _kind(made.type):
            return f"{table.name}.{made.name} is {column['type']!s}, not {made.type!s}"
    key = [column.name for column in table.primary_key]
    if there.get_pk_constraint(table.name)["constrained_columns"] != key:
        return f"{table.name} has lost its primary key"
    return None


def _kind(of: TypeEngine[Any]) -> type | None:
    """Text, whole number or number, however a database calls it."""
    return next((kind for kind in (String, Integer, Float) if isinstance(of, kind)), None)


def _added(version: int, table: Table) -> set[str]:
    """The columns of the table that came with a version."""
    if table in schema.ADDED_TABLES.get(version, ()):
        return {column.name for column in table.columns}
    return {column.name for column in schema.ADDED_COLUMNS.get(version, ()) if column.table is table}


def _columns(connection: Connection, table: Table) -> frozenset[str]:
    if not inspect(connection).has_table(table.name):
        return frozenset()
    return frozenset(connection.execute(text(f"SELECT * FROM {table.name} WHERE 1 = 0")).keys())


def _version(connection: Connection) -> int | None:
    """None in a database without a ledger."""
    inspector = inspect(connection)
    if not inspector.has_table(schema.versions.name):
        if any(inspector.has_table(table.name) for table in TABLES):
            raise StoreError(f"the ledger is damaged: there is no table {schema.versions.name}")
        return None
    found = connection.execute(select(text("version")).select_from(schema.versions)).scalars().all()
    if len(found) != 1 or not isinstance(found[0], int) or found[0] < 1:
        raise StoreError(f"the ledger is damaged: its schema version must be one whole number, got {found}")
    if found[0] > schema.VERSION:
        raise StoreError(
            f"the ledger has schema version {found[0]}, made by a newer epsearch; "
            f"allowed: up to {schema.VERSION}; upgrade epsearch"
        )
    return found[0]


def _lock_others_out(connection: Connection) -> None:
    """Until the transaction ends, no other process makes or changes the tables."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(PREPARATION)))
    else:
        # Python's driver begins a transaction at the first INSERT only; a CREATE TABLE before it would stand alone.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _check_pages(connection: Connection) -> None:
    """Nothing is added to an SQLite file that has been damaged as such: that would make it worse."""
    if connection.dialect.name != "sqlite":
        return
    wrong = [row[0] for row in connection.exec_driver_sql("PRAGMA quick_check") if row[0] != "ok"]
    wrong = [line for line in wrong if not line.startswith("NULL value in ")]  # a row's own damage
    if wrong:
        line = " ".join(wrong[0].split())
        raise StoreError(
            f"the ledger's file is damaged ({line}); what can be saved of it, `sqlite3 FILE .recover` prints"
        )


def _bring_up_to_date(connection: Connection, version: int) -> None:
    """Rows of the tables get the defaults of their new columns."""
    versions = range(version + 1, schema.VERSION + 1)
    new = [table for newer in versions for table in schema.ADDED_TABLES.get(newer, ())]
    for table in new:
        connection.execute(CreateTable(table))
    for column in (column for newer in versions for column in schema.ADDED_COLUMNS.get(newer, ())):
        if column.table not in new:  # which has it already
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")
    connection.execute(schema.versions.update().values(version=schema.VERSION))
