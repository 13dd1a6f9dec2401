"""The tables of a ledger: made, brought up to date, or refused in one line."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Float, Inspector, Integer, String, Table, func, inspect, select, text
from sqlalchemy.types import TypeEngine

from results.ledger import schema
from results.ledger.errors import RECOVER, StoreError
from results.ledger.migrations import MIGRATIONS, copy_beside, migrate

PREPARATION = 0x65707365617263  # "epsearc"
"""Number of PostgreSQL's lock under which the tables are made."""
UPGRADE = "`epsearch db upgrade`"
"""The command that brings a ledger up to date, for messages."""


Layout = tuple[frozenset[str], str]
"""Names of the tables of an open ledger, and one line for the user, where it has just been brought up to date."""


def prepare(connection: Connection, upgrade: bool = False) -> Layout:
    """Prepares the tables for writing: makes missing ones, and brings those of an older ledger up to date.

    An SQLite file is copied beside itself first. Any other database is brought up to date only with `upgrade`, which in
    turn makes no ledger where there is none. Raises StoreError for tables of a newer program, and for tables that are
    not as this program makes them.
    """
    _lock_others_out(connection)
    _check_pages(connection)
    version = _version(connection)
    for table in schema.TABLES_OF[schema.VERSION]:
        if what := _difference(inspect(connection), table):
            raise StoreError(f"the ledger is damaged: {what}, and cannot be written to")
    if version is None:
        if upgrade:
            raise StoreError("there is no ledger yet; `epsearch run` makes one")
        tables = [schema.versions, *schema.TABLES_OF[schema.VERSION]]
        schema.metadata.create_all(connection, tables, checkfirst=False)
        connection.execute(schema.versions.insert().values(id=1, version=schema.VERSION))
        return _names(schema.VERSION), ""
    # Only the migrations know the tables of versions that cannot be read as they are.
    _check_columns(connection, schema.TABLES_OF.get(version, ()))
    line = _upgrade(connection, version, upgrade) if version != schema.VERSION else ""
    return _names(schema.VERSION), line


def read_layout(connection: Connection) -> Layout:
    """Returns the tables to read, of which there are none in a database without a ledger; changes nothing.

    Raises StoreError as `prepare`, and for a version that cannot be read as it is.
    """
    version = _version(connection)
    if version is None:
        return frozenset(), ""
    if version not in schema.TABLES_OF:
        raise StoreError(f"{_of_version(version)}; {UPGRADE} brings it up to date")
    _check_columns(connection, schema.TABLES_OF[version])
    return _names(version), ""


def _names(version: int) -> frozenset[str]:
    return frozenset(table.name for table in schema.TABLES_OF[version])


def _upgrade(connection: Connection, version: int, upgrade: bool) -> str:
    """Brings a ledger up to date and returns the line that says so.

    All in the transaction of the connection, so there is always the old ledger or the new one.
    """
    on_sqlite = connection.dialect.name == "sqlite"
    # Another database is not copied: its backup is made by its own tools.
    if not (on_sqlite or upgrade):
        raise StoreError(f"{_of_version(version)}; back it up, and let {UPGRADE} bring it up to date")
    copy = copy_beside(connection, version) if on_sqlite else None
    migrate(connection, version)
    _check_columns(connection, schema.TABLES_OF[schema.VERSION])
    line = f"the ledger had schema version {version} and was brought up to {schema.VERSION}"
    return f"{line}; the ledger as it was before is kept in {copy}" if copy else line


def _of_version(version: int) -> str:
    return f"the ledger has schema version {version}, this epsearch writes {schema.VERSION}"


def _check_columns(connection: Connection, tables: Sequence[Table]) -> None:
    """Raises StoreError if one of the tables, or a column of it, is missing."""
    for table in tables:
        # By a query, which works for tables and views of both databases, whatever types their columns have.
        query = text(f"SELECT * FROM {table.name} WHERE 1 = 0")
        present = set(connection.execute(query).keys() if inspect(connection).has_table(table.name) else ())
        if missing := sorted({column.name for column in table.columns} - present):
            what = f"{table.name} has no column {missing[0]}" if present else f"there is no table {table.name}"
            raise StoreError(f"the ledger is damaged: {what}")


def _difference(inspector: Inspector, table: Table) -> str | None:
    """Returns how a table differs from one that this program makes; None if it does not, or does not exist."""
    if table.name in inspector.get_view_names():
        return f"{table.name} is a view, not a table"
    if not inspector.has_table(table.name):
        return None
    for column in inspector.get_columns(table.name):
        expected = table.columns.get(column["name"])
        if expected is not None and _type(column["type"]) is not _type(expected.type):
            return f"{table.name}.{expected.name} is {column['type']!s}, not {expected.type!s}"
    key = [column.name for column in table.primary_key]
    if inspector.get_pk_constraint(table.name)["constrained_columns"] != key:
        return f"{table.name} has lost its primary key"
    return None


def _type(column: TypeEngine[Any]) -> type | None:
    """Returns whether a type is text, a whole number or a number: databases have different names for them."""
    return next((base for base in (String, Integer, Float) if isinstance(column, base)), None)


def _version(connection: Connection) -> int | None:
    """Returns the schema version; None in a database without a ledger. Raises StoreError if it cannot be used."""
    inspector = inspect(connection)
    if not inspector.has_table(schema.versions.name):
        if any(inspector.has_table(table.name) for table in schema.TABLES_OF[schema.VERSION]):
            raise StoreError(f"the ledger is damaged: there is no table {schema.versions.name}")
        return None
    versions = connection.execute(select(text("version")).select_from(schema.versions)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
        raise StoreError(f"the ledger is damaged: its schema version must be one whole number, got {versions}")
    if versions[0] in (*schema.TABLES_OF, *MIGRATIONS):
        return versions[0]
    if versions[0] < schema.DEVELOPMENT:
        raise StoreError(
            f"{_of_version(versions[0])}; {versions[0]} is of a development version: "
            "export the studies with that version, and `epsearch import` the file"
        )
    raise StoreError(
        f"the ledger has schema version {versions[0]}, made by a newer epsearch; "
        f"allowed: up to {schema.VERSION}; upgrade epsearch"
    )


def _lock_others_out(connection: Connection) -> None:
    """Keeps all other processes from making or changing the tables until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(PREPARATION)))
    else:
        # Python's driver begins a transaction only at the first INSERT; a CREATE TABLE before it would not be part of
        # it.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _check_pages(connection: Connection) -> None:
    """Raises StoreError for an SQLite file with damaged pages: writing to it would damage it more."""
    if connection.dialect.name != "sqlite":
        return
    lines = connection.exec_driver_sql("PRAGMA quick_check").scalars()
    # A NULL is one row's damage, which its checksum shows: the rest of the file can be written to.
    wrong = [line for line in lines if line != "ok" and not line.startswith("NULL value in ")]
    if wrong:
        raise StoreError(f"the ledger's file is damaged ({' '.join(wrong[0].split())}); {RECOVER}")
