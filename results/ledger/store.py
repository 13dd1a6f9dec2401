"""The ledger: all records and certificates by content key, and the configuration of every study."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, Connection, Engine, Row, Table, select

from results.ledger import layout, leases, schema
from results.ledger.certificate import Certificate
from results.ledger.database import connect, in_groups, insert_new, insertion, one_line_errors
from results.ledger.errors import LeaseHeld, LeaseLost, StoreError, StudyConflict, conflict
from results.ledger.holder import Holder
from results.ledger.leases import Lease
from results.ledger.record import RunRecord, StudyRow, Summary
from results.ledger.retry import Patience, tried_again
from results.ledger.url import LedgerUrl

__all__ = ["Found", "Lease", "LeaseHeld", "LeaseLost", "Store", "StoreError", "StudyConflict", "StudyRow"]

OLDEST_RUNS = (schema.runs.c.created, schema.runs.c.key)
OLDEST_STUDIES = (schema.studies.c.created, schema.studies.c.name)

One = TypeVar("One")
Make = Callable[[Row[Any]], object]
Values = dict[str, Any]


class Found(dict[str, One], Generic[One]):
    """Key -> what the ledger has under it, for the keys that it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.damaged: dict[str, str] = {}
        """Key -> why its row cannot be used."""


class Store(AbstractContextManager["Store"]):
    """An open ledger, from `Store.open`, `Store.upgrade` or `Store.read`; also a context manager.

    It may be used by several threads and processes at once. Every method raises StoreError, with one line, where the
    database fails. The content of a damaged row is never returned. A store that has a lease raises LeaseLost, and
    writes nothing, where that is no longer its own.
    """

    def __init__(self, engine: Engine, url: LedgerUrl, prepare: Callable[[Connection], layout.Layout]) -> None:
        self._engine, self._url = engine, url
        self.patience = Patience()  # none; a run has some
        self.lease: Lease | None = None
        """The lease under which it writes, from `acquire`; without one it writes whoever else does."""
        try:
            with self._transaction("open") as connection:
                self._tables, self.told = prepare(connection)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, url: LedgerUrl | str) -> "Store":
        """Opens `sqlite:///FILE` or `postgresql://…` for writing, and makes missing tables.

        An older SQLite ledger is copied and brought up to date; then `told` says so in one line, else it is empty.
        Raises StoreError for a wrong or damaged URL, driver, folder or file, for a ledger of a newer program, and for
        one of an older program on another database than SQLite.
        """
        return cls(connect(url), LedgerUrl.of(url), layout.prepare)

    @classmethod
    def upgrade(cls, url: LedgerUrl | str) -> "Store":
        """Opens a ledger as `open`, and brings an older one up to date on any database; also StoreError without one."""
        return cls(connect(url), LedgerUrl.of(url), partial(layout.prepare, upgrade=True))

    @classmethod
    def read(cls, url: LedgerUrl | str) -> "Store":
        """Opens a ledger for reading and writes nothing: an older ledger is not changed, a missing one is empty."""
        return cls(connect(url, read_only=True), LedgerUrl.of(url), layout.look)

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    def __exit__(self, *error: object) -> None:
        self.close()

    def get(self, keys: Iterable[str]) -> Found[RunRecord]:
        """Returns the records of those keys that the ledger has."""
        return self._find(schema.runs, schema.from_row, sorted(set(keys)))

    def add(self, records: Iterable[RunRecord], summary: Summary | None = None) -> int:
        """Adds records in one transaction, all or none, and returns the number added.

        A key that exists keeps its first record, unless that is damaged. summary: of their study, see `sum_up`.
        """
        return self._insert(schema.runs, schema.from_row, [*map(schema.to_row, records)], summary)

    def certify(self, certificates: Iterable[Certificate], summary: Summary | None = None) -> int:
        """Adds certificates in one transaction, as `add` adds records, and returns the number added."""
        rows = [schema.seal(asdict(certificate)) for certificate in certificates]
        return self._insert(schema.certificates, schema.to_certificate, rows, summary)

    @tried_again
    def sum_up(self, summary: Summary) -> None:
        """Replaces a study's summary, unless the study has been changed since the summary was computed."""
        with self._writing() as connection:
            _sum_up(connection, summary)

    def certificates(self, keys: Iterable[str]) -> Found[Certificate]:
        """Returns the certificates of those keys that have one."""
        return self._find(schema.certificates, schema.to_certificate, sorted(set(keys)))

    @tried_again
    def all_runs(self) -> list[RunRecord]:
        """Returns every record, in the order of creation, then key."""
        return [record for _, record in self._sound(schema.runs, schema.from_row, *OLDEST_RUNS)]

    @tried_again
    def save_study(self, name: str, config: Mapping[str, Any]) -> None:
        """Stores a study. The same configuration again changes nothing.

        Raises StudyConflict if a study of this name has another configuration, and StoreError if it is damaged.
        """
        row = schema.study_to_row(name, config, datetime.now(UTC).isoformat())
        query = select(schema.studies).where(schema.studies.c.name == name)
        with self._writing(name) as connection:
            insert_new(connection, schema.studies, [row], schema.studies.c.name)
            there = schema.to_study(connection.execute(query).one())
        if there.damage:
            raise StoreError(f"study {name!r} is damaged: {there.damage}; choose another --name")
        new = json.loads(row["config"])
        if there.config != new:
            raise conflict(name, there.config, new)

    @tried_again
    def change_study(self, before: StudyRow, config: Mapping[str, Any]) -> None:
        """Gives a study another configuration. Raises StudyConflict if it is no longer as it was read."""
        there = schema.studies.c
        known = (there.name == before.name) & (there.config == schema.mapping_to_json(before.config))
        new = schema.study_to_row(before.name, config, before.created)
        with self._writing() as connection:
            changed = connection.execute(schema.studies.update().where(known).values(new))
            now = connection.execute(select(there.config).where(there.name == before.name)).scalar_one_or_none()
            # It is already the new one if a first try succeeded and its answer was lost.
            if changed.rowcount != 1 and now != new["config"]:
                raise StudyConflict(
                    f"study {before.name!r} was changed by another program in the meantime; run the command again"
                )

    @tried_again
    def described(self, phase: str) -> list[tuple[dict[str, Any], str]]:
        """Returns (content, time of creation) of every run on the streams of a phase, "cv" or "eval", oldest first."""
        rows = self._sound(schema.runs, _content, *OLDEST_RUNS, where=schema.runs.c.phase == phase)
        return [(content, row.created) for row, content in rows]

    def study(self, name: str) -> StudyRow | None:
        """Returns the study of that name, or None."""
        return next((row for row in self.studies() if row.name == name), None)

    @tried_again
    def studies(self) -> list[StudyRow]:
        """Returns every study, in the order of creation, then name."""
        return [study for _, study in self._sound(schema.studies, schema.to_study, *OLDEST_STUDIES)]

    @tried_again
    def summaries(self) -> dict[str, Summary]:
        """Returns study -> its summary, without damaged summaries and those of a study before it was changed."""
        now = {study.name: study.checksum for study in self.studies()}
        known = (summary for _, summary in self._sound(schema.summaries, schema.to_summary))
        return {summary.name: summary for summary in known if now.get(summary.name) == summary.study}

    @tried_again
    def _find(self, table: Table, make: Callable[[Row[Any]], One], keys: Sequence[str]) -> Found[One]:
        with self._transaction("read") as connection:
            return self._known(connection, table, make, keys)

    def _known(
        self, connection: Connection, table: Table, make: Callable[[Row[Any]], One], keys: Sequence[str]
    ) -> Found[One]:
        known: Found[One] = Found()
        for group in in_groups(keys):
            for row in self._rows(connection, table, table.c.key.in_(group)):
                try:
                    known[row.key] = make(row)
                except schema.Damaged as error:
                    known.damaged[str(row.key)] = str(error)
        return known

    def _sound(
        self, table: Table, make: Callable[[Row[Any]], One], *order: Column[str], where: Any = None
    ) -> list[tuple[Row[Any], One]]:
        """Returns every row that is not damaged, with what `make` makes of it, in the given order."""
        made = []
        with self._transaction("read") as connection:
            for row in self._rows(connection, table, where, *order):
                with suppress(schema.Damaged):
                    made.append((row, make(row)))
        return made

    def _rows(self, connection: Connection, table: Table, where: Any = None, *order: Column[str]) -> list[Row[Any]]:
        """Returns rows of a table; an older ledger that is read may lack the table, and then there are none."""
        if table.name not in self._tables:
            return []
        query = select(table).order_by(*order)
        return list(connection.execute(query if where is None else query.where(where)))

    @tried_again
    def _insert(self, table: Table, make: Make, rows: list[Values], summary: Summary | None) -> int:
        if not rows:
            return 0
        # Sorted, so that two writers of the same keys take the same locks in the same order.
        rows.sort(key=lambda row: str(row["key"]))
        with self._writing() as connection:
            # Damaged rows are replaced here, in the same transaction: the new ones have the same keys.
            if damaged := self._known(connection, table, make, [str(row["key"]) for row in rows]).damaged:
                connection.execute(table.delete().where(table.c.key.in_(damaged)))
            added = insert_new(connection, table, rows, table.c.key)
            if table is schema.runs:
                leases.drop_claims(connection, [str(row["key"]) for row in rows])
            if summary is not None:
                _sum_up(connection, summary)
            return added

    def acquire(self, name: str, holder: Holder) -> Lease:
        """Takes the lease of a study, stored or not, under which this store then writes; holder: from `here`.

        Raises LeaseHeld while somebody else has it. A lease that is over, or whose holder is gone, is taken over.
        """
        own = holder.acquiring()

        def work() -> Lease:
            with self._transaction("write to") as connection:
                return leases.acquire(connection, name, own)

        self.lease = lease = self.patience.again(work)
        return lease

    def renew(self, lease: Lease) -> bool:
        """Lets a lease last LEASE_SECONDS from now; returns False if it was taken over or released.

        It is tried once, whatever the store's patience: how long there is for more is known to whoever renews.
        """
        with self._transaction("write to") as connection:
            return leases.renew(connection, lease)

    @tried_again
    def release(self, lease: Lease) -> None:
        """Gives a lease back, with its claims; then this store writes no more, until it acquires another."""
        with self._transaction("write to") as connection:
            leases.release(connection, lease)

    @tried_again
    def claim(self, lease: Lease, keys: Collection[str]) -> set[str]:
        """Claims keys for a study, and returns those that are claimed by it now: it is to train their members.

        The others have a record or a live claim of another study. Raises LeaseLost.
        """
        with self._transaction("write to") as connection:
            leases.guard(connection, lease)
            # Before records are looked for: whoever adds one drops the claim on it in the same transaction.
            leases.lock_claims(connection)
            known = self._known(connection, schema.runs, schema.from_row, sorted(set(keys)))
            return leases.claim(connection, lease, [*(set(keys) - known.keys())])

    @tried_again
    def claimed(self, keys: Collection[str]) -> dict[str, str]:
        """Returns key -> study that has claimed it, for those keys that a study is training now."""
        if schema.claims.name not in self._tables:  # of an older ledger that is read
            return {}
        with self._transaction("read") as connection:
            return leases.claimed(connection, sorted(set(keys)))

    @contextmanager
    def _writing(self, name: str | None = None) -> Iterator[Connection]:
        """Begins a transaction, with the store's lease if it has one; name: of the study, where that may be another."""
        with self._transaction("write to") as connection:
            if self.lease is not None and name in (None, self.lease.name):
                leases.guard(connection, self.lease)
            yield connection

    @contextmanager
    def _transaction(self, action: str) -> Iterator[Connection]:
        with one_line_errors(self._url, action), self._engine.begin() as connection:
            yield connection


def _content(row: Row[Any]) -> dict[str, Any]:
    return schema.json_object("content", schema.unseal(schema.runs, row)["content"])


def _sum_up(connection: Connection, summary: Summary) -> None:
    studies, table, row = schema.studies.c, schema.summaries, schema.summary_to_row(summary)
    now = connection.execute(select(studies.checksum).where(studies.name == summary.name)).scalar_one_or_none()
    there = connection.execute(select(table).where(table.c.name == summary.name)).mappings().all()
    if now == summary.study and [*map(dict, there)] != [row]:
        insert = insertion(connection, table).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=[table.c.name], set_=row))
