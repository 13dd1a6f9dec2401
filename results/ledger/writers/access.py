"""An open ledger: its database and tables, transactions, and rows that are not damaged."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Column, Connection, Engine, Row, Table, event, select

from results.ledger import layout, schema
from results.ledger.database import connect, in_groups, one_line_errors
from results.ledger.dialects.sqlite import identity_of_log, remove_log
from results.ledger.retry import RetryPolicy
from results.ledger.url import LedgerUrl
from results.ledger.writers.errors import LeaseLost
from results.ledger.writers.lease import Lease, guard

One = TypeVar("One")
T = TypeVar("T")
P = ParamSpec("P")
Prepare = Callable[[Connection], layout.Layout]
"""Reads the tables, or makes them, when a ledger is opened."""


NO_RETRIES = RetryPolicy()
"""Calls are tried once, and nobody is notified."""

Own = TypeVar("Own", bound="Access")


def try_again(method: Callable[Concatenate[Own, P], T]) -> Callable[Concatenate[Own, P], T]:
    """Returns a method that is repeated as `Access.again` says; it must allow that, and use up no arguments."""

    @wraps(method)
    def call(self: Own, /, *args: P.args, **options: P.kwargs) -> T:
        return self.again(lambda: method(self, *args, **options))

    return call


class Access(AbstractContextManager["Access"]):
    """Base of a `Store`: connections, transactions, rows; also a context manager."""

    def __init__(self, make: Callable[[], Engine], url: LedgerUrl, prepare: Prepare, retries: RetryPolicy) -> None:
        self._make, self._url, self._prepare = make, url, prepare
        self.retries = retries
        self.lease: Lease | None = None
        """The lease under which it writes, from `Leases.acquire`; without one its writes are not fenced."""
        self._opening, self._transactions = threading.Lock(), 0
        self._engine = make()
        try:
            self._read_layout()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, url: LedgerUrl | str, retries: RetryPolicy = NO_RETRIES) -> Self:
        """Opens `sqlite:///FILE` or `postgresql://…` for writing, and makes missing tables.

        An older SQLite ledger is copied and brought up to date, of which the user is notified. Opening is tried once.
        Raises StoreError for a wrong or damaged URL, driver, folder or file, for a ledger of a newer program, and for
        one of an older program on another database than SQLite.
        """
        return cls(partial(connect, url), LedgerUrl.of(url), layout.prepare, retries)

    @classmethod
    def upgrade(cls, url: LedgerUrl | str, retries: RetryPolicy = NO_RETRIES) -> Self:
        """Opens a ledger as `open`, and brings an older one up to date on any database; also StoreError without one."""
        return cls(partial(connect, url), LedgerUrl.of(url), partial(layout.prepare, upgrade=True), retries)

    @classmethod
    def read(cls, url: LedgerUrl | str, retries: RetryPolicy = NO_RETRIES) -> Self:
        """Opens a ledger for reading and writes nothing: an older ledger is not changed, a missing one is empty."""
        return cls(partial(connect, url, read_only=True), LedgerUrl.of(url), layout.read_layout, retries)

    @try_again
    def reopen(self) -> None:
        """Closes every connection and opens the ledger again, so that nothing is read from the memory of SQLite.

        Raises StoreError, also for a file that was damaged meanwhile.
        """
        with self._opening:
            self._engine.dispose()
            self._engine = self._make()
            self._read_layout()

    def limit_waits(self, seconds: float) -> None:
        """Sets the longest wait of new connections for a lock of another transaction."""
        statement = {"sqlite": "PRAGMA busy_timeout={}", "postgresql": "SET lock_timeout={}"}[self._engine.dialect.name]

        def prepare(connection: Any, _record: Any) -> None:
            connection.cursor().execute(statement.format(round(seconds * 1000)))
            connection.commit()

        def make(before: Callable[[], Engine] = self._make) -> Engine:
            engine = before()
            event.listen(engine, "connect", prepare)
            return engine

        self._make = make
        self._engine.dispose()  # present connections wait longer
        self._engine = make()

    def check_writing(self) -> None:
        """Writes a present value once more. Raises StoreError where nothing can be written."""
        with self.transaction("write to") as connection:
            connection.execute(schema.versions.update().values(version=schema.versions.c.version))

    def again(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns, repeated with the store's retries, and once more after its lease was regained.

        `work` may be called several times.
        """
        try:
            return self.retries.again(work)
        except LeaseLost as lost:
            self.regain(lost)
            return self.retries.again(work)

    def regain(self, lost: LeaseLost) -> None:
        """Raises the error; a `Store` takes the lease again."""
        raise lost

    def has(self, table: Table) -> bool:
        """Returns whether the ledger has a table: a missing ledger that is read has none."""
        return table.name in self._tables

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @try_again
    def _find(
        self, table: Table, make: Callable[[Row[Any]], One], keys: Iterable[str], damage: dict[str, str] | None
    ) -> dict[str, One]:
        with self.transaction("read") as connection:
            return self.load(connection, table, make, sorted(set(keys)), damage)

    @try_again
    def lacking(self, keys: Collection[str], table: Table = schema.runs) -> set[str]:
        """Returns the keys under which a table has no row."""
        lacking = set(keys)
        with self.transaction("read") as connection:
            for group in in_groups(sorted(keys)):
                lacking -= set(connection.execute(select(table.c.key).where(table.c.key.in_(group))).scalars())
        return lacking

    def load(
        self,
        connection: Connection,
        table: Table,
        make: Callable[[Row[Any]], One],
        keys: Sequence[str],
        damage: dict[str, str] | None = None,
    ) -> dict[str, One]:
        """Returns key -> value that `make` makes of its row; damage: gets key -> why its row cannot be used."""
        made = {}
        for group in in_groups(keys):
            for row in self._rows(connection, table, table.c.key.in_(group)):
                try:
                    made[row.key] = make(row)
                except schema.Damaged as error:
                    if damage is not None:
                        damage[str(row.key)] = str(error)
        return made

    def _undamaged_values(
        self, table: Table, make: Callable[[Row[Any]], One], *order: Column[str], where: Any = None
    ) -> list[tuple[Row[Any], One]]:
        """Returns (row, value that `make` makes of it) of every undamaged row, in this order."""
        made = []
        with self.transaction("read") as connection:
            for row in self._rows(connection, table, where, *order):
                with suppress(schema.Damaged):
                    made.append((row, make(row)))
        return made

    def _rows(self, connection: Connection, table: Table, where: Any = None, *order: Column[str]) -> list[Row[Any]]:
        """Returns rows of a table; none where the ledger lacks it."""
        if not self.has(table):
            return []
        query = select(table).order_by(*order)
        return list(connection.execute(query if where is None else query.where(where)))

    @contextmanager
    def _writing(self, name: str | None = None) -> Iterator[Connection]:
        """Begins a transaction, with the store's lease if it has one; name: of the study, where that may be another."""
        with self.transaction("write to") as connection:
            if self.lease is not None and name in (None, self.lease.name):
                guard(connection, self.lease)
            yield connection

    @contextmanager
    def transaction(self, action: str) -> Iterator[Connection]:
        """Begins a transaction; action: "read" or "write to", for messages. Raises StoreError."""
        with one_line_errors(self._url, action):
            with self._opening:
                if not self._transactions:  # no connection to a replaced file is to be left
                    self._follow_file()
                self._transactions += 1
            try:
                with self._engine.begin() as connection:
                    yield connection
            finally:
                with self._opening:
                    self._transactions -= 1

    def _follow_file(self) -> None:
        """Opens the SQLite file again where its name belongs to another one now, which may be empty or a copy."""
        log = identity_of_log(self._url)
        if self._url.identity == self._identity:
            self._log = log
            return
        self._engine.dispose()
        if log is not None and log == self._log:
            remove_log(self._url)  # SQLite would take the log of the old file for one of the new file, and damage that
        self._engine = self._make()
        self._read_layout()
        self.retries.notify(f"the ledger {self._url} is not the file that it was; what it lacks is stored in it again")

    def _read_layout(self) -> None:
        """Reads which tables there are, or makes them; notifies the user where they were brought up to date."""
        with one_line_errors(self._url, "open"), self._engine.begin() as connection:
            self._tables, line = self._prepare(connection)
        self._identity, self._log = self._url.identity, identity_of_log(self._url)
        if line:
            self.retries.notify(line)
