"""The store: records and certificates by content key, and the configuration of every study."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, Table, func, select

from results.ledger import schema
from results.ledger.database import in_groups, insert_new, insertion
from results.ledger.errors import StoreError, StudyConflict, conflict
from results.ledger.record import ALONE, KINDS, RERUN, Certificate, RunRecord, StudyRow, Summary, mapping_to_json
from results.ledger.retry import RetryPolicy
from results.ledger.url import LedgerUrl
from results.ledger.writers import claims
from results.ledger.writers.access import Access, Prepare, try_again
from results.ledger.writers.claims import Claims
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.events import Events
from results.ledger.writers.lease import now, state_of
from results.ledger.writers.leases import Leases
from results.ledger.writers.queue import Queue
from results.ledger.writers.removal import Unused, drop_unused

__all__ = ["Store", "StoreError", "StudyConflict", "StudyRow"]

OLDEST_RUNS = (schema.runs.c.created, schema.runs.c.key)
OLDEST_STUDIES = (schema.studies.c.created, schema.studies.c.name)


Make = Callable[[Row[Any]], object]
Values = dict[str, Any]
Rows = Callable[[Table], Iterable[list[Values]]]


class Store(Access):
    """An open ledger, from `Store.open`, `Store.upgrade` or `Store.read`; also a context manager.

    It may be used by several threads and processes at once. Every method raises StoreError, with one line, where the
    database fails. The content of a damaged row is never returned. A store that has a lease raises LeaseLost, and
    writes nothing, where that was lost.
    """

    def __init__(self, make: Callable[[], Engine], url: LedgerUrl, prepare: Prepare, retries: RetryPolicy) -> None:
        self.leases, self.claims, self.queue, self.events = Leases(self), Claims(self), Queue(self), Events(self)
        super().__init__(make, url, prepare, retries)

    def regain(self, lost: LeaseLost) -> None:
        """Takes a lost lease again, as `Leases.regain`, or raises the error."""
        self.leases.regain(lost)

    def get(self, keys: Iterable[str], damage: dict[str, str] | None = None) -> dict[str, RunRecord]:
        """Returns the stored records of these keys; damage: gets key -> why a stored record cannot be used."""
        return self._find(schema.runs, schema.from_row, keys, damage)

    def add(self, records: Iterable[RunRecord], summary: Summary | None = None) -> int:
        """Adds records in one transaction, all or none, and returns the number added.

        A key that exists keeps its first record, unless that is damaged. summary: of their study, see `sum_up`.
        """
        return self._insert(schema.runs, schema.from_row, [*map(schema.new_row, records)], summary)

    def certify(self, certificates: Iterable[Certificate], summary: Summary | None = None) -> int:
        """Adds certificates in one transaction per kind, as `add` adds records, and returns the number added.

        Certificates of reruns replace earlier ones.
        """
        new, added = list(certificates), 0
        for kind in KINDS:
            rows = [schema.certificate_to_row(certificate) for certificate in new if certificate.kind == kind]
            make = partial(schema.to_certificate, kind=kind)
            added += self._insert(schema.CERTIFICATES[kind], make, rows, summary, replace=kind == RERUN)
        return added

    @try_again
    def sum_up(self, summary: Summary) -> None:
        """Replaces a study's summary, unless the study has been changed since the summary was computed."""
        with self._writing() as connection:
            _sum_up(connection, summary)

    def certificates(
        self, keys: Iterable[str], kind: str = ALONE, damage: dict[str, str] | None = None
    ) -> dict[str, Certificate]:
        """Returns the stored certificates of a kind with these keys; damage: see `get`."""
        return self._find(schema.CERTIFICATES[kind], partial(schema.to_certificate, kind=kind), keys, damage)

    @try_again
    def all_runs(self) -> list[RunRecord]:
        """Returns every record, in the order of creation, then key."""
        return [record for _, record in self._undamaged_values(schema.runs, schema.from_row, *OLDEST_RUNS)]

    @try_again
    def save_study(self, name: str, config: Mapping[str, Any]) -> None:
        """Stores a study. The same configuration again changes nothing.

        Raises StudyConflict if a study of this name has another configuration, and StoreError if it is damaged.
        """
        row = schema.study_to_row(name, config, datetime.now(UTC).isoformat())
        query = select(schema.studies).where(schema.studies.c.name == name)
        with self._writing(name) as connection:
            insert_new(connection, schema.studies, [row], schema.studies.c.name)
            stored = schema.to_study(connection.execute(query).one())
        if stored.damage:
            raise StoreError(f"study {name!r} is damaged: {stored.damage}; choose another --name")
        new = json.loads(row["config"])
        if stored.config != new:
            raise conflict(name, stored.config, new)

    @try_again
    def change_study(self, before: StudyRow, config: Mapping[str, Any]) -> None:
        """Gives a study another configuration. Raises StudyConflict if it is no longer as it was read."""
        columns = schema.studies.c
        unchanged = (columns.name == before.name) & (columns.config == mapping_to_json(before.config))
        new = schema.study_to_row(before.name, config, before.created)
        with self._writing() as connection:
            changed = connection.execute(schema.studies.update().where(unchanged).values(new))
            now = connection.execute(select(columns.config).where(columns.name == before.name)).scalar_one_or_none()
            # It is already the new one if a first try succeeded and its answer was lost.
            if changed.rowcount != 1 and now != new["config"]:
                raise StudyConflict(
                    f"study {before.name!r} was changed by another program in the meantime; run the command again"
                )

    @try_again
    def contents(self, phase: str) -> list[tuple[dict[str, Any], str]]:
        """Returns (content, time of creation) of every run on the streams of a phase of PHASES, oldest first."""
        rows = self._undamaged_values(schema.runs, _content, *OLDEST_RUNS, where=schema.runs.c.phase == phase)
        return [(content, row.created) for row, content in rows]

    @try_again
    def study(self, name: str) -> StudyRow | None:
        """Returns the study of that name, or None."""
        rows = self._undamaged_values(schema.studies, schema.to_study, where=schema.studies.c.name == name)
        return rows[0][1] if rows else None

    @try_again
    def studies(self) -> list[StudyRow]:
        """Returns every study, in the order of creation, then name."""
        return [study for _, study in self._undamaged_values(schema.studies, schema.to_study, *OLDEST_STUDIES)]

    @try_again
    def summaries(self) -> dict[str, Summary]:
        """Returns study -> its summary, without damaged summaries and those of a study before it was changed."""
        now = {study.name: study.checksum for study in self.studies()}
        stored = (summary for _, summary in self._undamaged_values(schema.summaries, schema.to_summary))
        return {summary.name: summary for summary in stored if now.get(summary.name) == summary.study}

    @try_again
    def summary(self, name: str) -> Summary | None:
        """Returns the summary of a study; None where it has none of how the study is now."""
        study = self.study(name)
        rows = self._undamaged_values(schema.summaries, schema.to_summary, where=schema.summaries.c.name == name)
        summary = rows[0][1] if rows else None
        return summary if study is not None and summary is not None and summary.study == study.checksum else None

    @try_again
    def delete_study(self, name: str, unused: Unused) -> frozenset[str]:
        """Deletes a study that is ours, its events, and unused members; returns the keys of these members.

        unused: called within the transaction, while no other study can begin, grow or store results.
        The row of its lease stays: a process that trained it before must not write to a new study of that name.
        """
        with self._writing(name) as connection:
            dropped = drop_unused(connection, unused)
            for table in (schema.events, schema.queue):
                connection.execute(table.delete().where(table.c.study == name))
            for table in (schema.summaries, schema.studies):
                connection.execute(table.delete().where(table.c.name == name))
            return dropped

    @try_again
    def runs_before(self, created: str) -> set[str]:
        """Returns the keys of all records that were created before a time, ISO-8601 in UTC."""
        with self.transaction("read") as connection:
            return set(connection.execute(select(schema.runs.c.key).where(schema.runs.c.created < created)).scalars())

    @try_again
    def count_events(self, older_than: float) -> int:
        """Returns the number of events older than `older_than` seconds, by the database's clock."""
        with self.transaction("read") as connection:
            query = select(func.count()).where(_older(connection, older_than))
            return int(connection.execute(query).scalar_one())

    @try_again
    def delete_old(self, unused: Unused, older_than: float) -> frozenset[str]:
        """Deletes unused members, and events older than `older_than` seconds; returns the keys of the members.

        unused: see `delete_study`.
        """
        with self._writing() as connection:
            dropped = drop_unused(connection, unused)
            connection.execute(schema.events.delete().where(_older(connection, older_than)))
            return dropped

    @try_again
    def _insert(
        self, table: Table, make: Make, rows: list[Values], summary: Summary | None, replace: bool = False
    ) -> int:
        if not rows:
            return 0
        # Sorted, so that two writers of the same keys take the same locks in the same order.
        rows.sort(key=lambda row: str(row["key"]))
        with self._writing() as connection:
            added = self._put(connection, table, make, rows, replace)
            if table is schema.runs:
                claims.drop(connection, [str(row["key"]) for row in rows])
            if summary is not None:
                _sum_up(connection, summary)
            return added

    def _put(self, connection: Connection, table: Table, make: Make, rows: list[Values], replace: bool = False) -> int:
        """Inserts rows of new or damaged keys, with `replace` all rows; returns their number."""
        keys, damage = [str(row["key"]) for row in rows], dict[str, str]()
        self.load(connection, table, make, keys, damage)
        # What is replaced goes in the same transaction: the new rows have the same keys.
        for group in in_groups(keys if replace else [*damage]):
            connection.execute(table.delete().where(table.c.key.in_(group)))
        return insert_new(connection, table, rows, table.c.key) if rows else 0

    @try_again
    def names(self, table: Table) -> list[str]:
        """Returns the keys of a table, its first column, in the same order for every database."""
        with self.transaction("read") as connection:
            first = table.columns[0]
            return sorted(connection.execute(select(first)).scalars()) if self.has(table) else []

    @try_again
    def undamaged_rows(self, table: Table, names: Sequence[str]) -> list[Values]:
        """Returns those rows of a table, with their checksums, that are not damaged, in the order of the names."""
        read: dict[str, Values] = {}
        with self.transaction("read") as connection:
            for group in in_groups(names):
                for row in self._rows(connection, table, table.columns[0].in_(group)):
                    with suppress(schema.Damaged):
                        schema.READERS[table](row)
                        read[str(row[0])] = row._asdict()
        return [read[name] for name in names if name in read]

    @try_again
    def import_rows(self, rows: Rows, ignored: Collection[str] = ()) -> tuple[tuple[str, ...], int, int]:
        """Adds rows of another ledger, all or none; returns (new studies, number of runs, of certificates).

        rows: yields those of a table in groups, each time that it is called. Stored rows stay, unless they are damaged
        or, of a rerun, older. Raises StudyConflict where a study of a name has another configuration, apart from the
        ignored options, and LeaseHeld while it is being trained.
        """
        with self._writing() as connection:
            new, runs, certificates = set[str](), 0, 0
            for group in rows(schema.studies):
                new |= {row["name"] for row in group if self._adopt_study(connection, row, ignored)}
            for group in rows(schema.runs):
                runs += self._put(connection, schema.runs, schema.from_row, group)
                claims.drop(connection, [row["key"] for row in group])
            for kind, table in schema.CERTIFICATES.items():
                make = partial(schema.to_certificate, kind=kind)
                for group in rows(table):
                    stored = self.load(connection, table, make, [row["key"] for row in group])
                    newer = [row for row in group if kind == RERUN and _newer(row, stored.get(row["key"]))]
                    others = [row for row in group if row not in newer]
                    certificates += self._put(connection, table, make, newer, replace=True)
                    certificates += self._put(connection, table, make, others)
            for group in rows(schema.summaries):
                if fresh := [row for row in group if row["name"] in new]:
                    insert_new(connection, schema.summaries, fresh, schema.summaries.c.name)
            return tuple(sorted(new)), runs, certificates

    def _adopt_study(self, connection: Connection, row: Values, ignored: Collection[str]) -> bool:
        """Returns whether the study is new. Raises StudyConflict, StoreError and LeaseHeld."""
        table, name = schema.studies, str(row["name"])
        new = insert_new(connection, table, [row], table.c.name) == 1  # first, as it locks an SQLite file
        if (present := state_of(connection, name)) is not None and present.held:
            raise LeaseHeld(name, present.holder, present.seconds)
        if not new:
            stored = schema.to_study(connection.execute(select(table).where(table.c.name == name)).one())
            if stored.damage:
                raise StoreError(f"study {name!r} is damaged here: {stored.damage}; choose another --name")
            old, now = (
                {option: value for option, value in config.items() if option not in ignored}
                for config in (stored.config, json.loads(row["config"]))
            )
            if old != now:
                raise conflict(name, old, now)
        return new


def _newer(row: Values, stored: Certificate | None) -> bool:
    return stored is not None and str(row["created"]) > stored.created


def _content(row: Row[Any]) -> dict[str, Any]:
    return schema.json_object("content", schema.without_checksum(schema.runs, row)["content"])


def _older(connection: Connection, seconds: float) -> ColumnElement[bool]:
    return schema.events.c.time < now(connection) - seconds


def _sum_up(connection: Connection, summary: Summary) -> None:
    studies, table, row = schema.studies.c, schema.summaries, schema.summary_to_row(summary)
    now = connection.execute(select(studies.checksum).where(studies.name == summary.name)).scalar_one_or_none()
    stored = connection.execute(select(table).where(table.c.name == summary.name)).mappings().all()
    if now == summary.study and [*map(dict, stored)] != [row]:
        insert = insertion(connection, table).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=[table.c.name], set_=row))
