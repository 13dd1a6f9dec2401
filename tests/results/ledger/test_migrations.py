"""A ledger of an older version: read as it is, and brought up to date, whole or not at all, after a copy of it.

The older one is `DEVELOPMENT`, which has the tables of the first version; where a migration has to fail, the program is
given one more version whose migration adds a table.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from unittest.mock import ANY

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, inspect, text

from results.ledger import layout, schema
from results.ledger.database import connect
from results.ledger.dialects import sqlite
from results.ledger.errors import StoreUnavailable
from results.ledger.migrations import MIGRATIONS
from results.ledger.record import Summary, same_result
from results.ledger.retry import RetryPolicy
from results.ledger.schema import DEVELOPMENT
from results.ledger.store import Store, StoreError
from results.ledger.url import LedgerUrl
from tests.support.limits import HANGS
from tests.support.synthetic import ROOT, process, record

TABLE = "CREATE TABLE epsearch_later (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(16) NOT NULL)"
LATER = Table(
    "epsearch_later",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(16), nullable=False),
)
"""The table that one more version adds; its migration makes it."""
NEXT = schema.VERSION + 1
STUDY = schema.study_to_row("demo", {"repeats": 5}, "2025-11-21T00:00:00+00:00")
SUMMARY = Summary("demo", STUDY["checksum"], "finished", {"epsilon": 0.1}, 1 / 3, False)
MEMBERS = [record(seed=s) for s in range(3)] + [record(seed=3, diverged=True)]
KEYS = [member.key for member in MEMBERS]
TOLD = f"the ledger had schema version {DEVELOPMENT} and was brought up to {schema.VERSION}"


def make_older(url: str, number: int = DEVELOPMENT) -> None:
    """A ledger of an older version with MEMBERS and the study `demo`."""
    with Store.open(url) as store:
        store.add(MEMBERS)
        with store.transaction("write to") as connection:
            connection.execute(schema.studies.insert().values(STUDY))
            connection.execute(schema.summaries.insert().values(schema.summary_to_row(SUMMARY)))
            connection.execute(schema.versions.update().values(version=number))
            for table in schema.TABLES_OF[schema.VERSION]:
                if table not in schema.TABLES_OF[DEVELOPMENT]:
                    table.drop(connection)


def add_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the program one more version."""
    tables, last = schema.TABLES_OF[schema.VERSION], schema.VERSION
    monkeypatch.setattr(schema, "VERSION", NEXT)
    monkeypatch.setattr(schema, "TABLES_OF", schema.TABLES_OF | {NEXT: (*tables, LATER)})
    monkeypatch.setitem(MIGRATIONS, last, lambda connection: connection.exec_driver_sql(TABLE))


def on_sqlite(folder: Path) -> tuple[str, Path]:
    url = f"sqlite:///{folder}/ledger.db"
    make_older(url)
    return url, folder / "ledger.db"


def opened(url: str, lines: list[str] | None = None) -> Store:
    """To write to, as a run opens SQLite, and as the command opens any other; lines: gets those for the user."""
    retries = RetryPolicy(notify=([] if lines is None else lines).append)
    return (Store.open if url.startswith("sqlite") else Store.upgrade)(url, retries)


def version(url: str) -> int:
    engine = connect(url)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT version FROM epsearch_schema")).scalar_one()
    engine.dispose()
    return int(found)


def tables(url: str) -> dict[str, object]:
    """Columns of every table of ours, but for defaults, its indexes and primary key."""
    engine = connect(url)
    there = inspect(engine)
    found: dict[str, object] = {}
    for name in there.get_table_names():
        if name.startswith("epsearch_"):
            columns = {one["name"]: (str(one["type"]), one["nullable"]) for one in there.get_columns(name)}
            indexes = {one["name"]: one["column_names"] for one in there.get_indexes(name)}
            found[name] = (columns, indexes, there.get_pk_constraint(name)["constrained_columns"])
    engine.dispose()
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check_members(store: Store) -> None:
    damage: dict[str, str] = {}
    found = store.get(KEYS, damage)
    assert not damage and len(found) == len(MEMBERS)
    assert all(same_result(found[member.key], member) for member in MEMBERS)
    study = store.study("demo")
    assert study is not None and study.config == {"repeats": 5} and not study.damage
    assert store.summaries() == {"demo": SUMMARY}
    assert store.claims.claimants(KEYS) == {} and store.leases.states() == {} and store.events.read("demo") == []


def test_every_version_leads_to_the_next() -> None:
    assert set(MIGRATIONS) == set(range(1, schema.VERSION))
    assert schema.TABLES_OF.keys() == {1, DEVELOPMENT, schema.VERSION}


@pytest.mark.parametrize("number", [1, DEVELOPMENT])
def test_the_tables_are_those_of_a_new_ledger(url: str, number: int) -> None:
    Store.open(url).close()
    new, engine = tables(url), connect(url)
    with engine.begin() as connection:
        schema.metadata.drop_all(connection)
    engine.dispose()
    make_older(url, number)
    opened(url).close()
    assert tables(url) == new


@pytest.mark.slow
def test_it_is_read_as_it_is(url: str) -> None:
    make_older(url)
    before = tables(url)
    with Store.read(url, RetryPolicy(notify=pytest.fail)) as store:
        check_members(store)
        assert len(store.all_runs()) == len(MEMBERS)
    assert (version(url), tables(url)) == (DEVELOPMENT, before)


@pytest.mark.parametrize("number", [1, DEVELOPMENT])
def test_nothing_is_lost_and_the_new_table_is_there(url: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(url, number)
    before = tables(url)
    add_version(monkeypatch)
    lines: list[str] = []
    for _ in range(2):
        with opened(url, lines) as store:
            check_members(store)
            assert len(store.all_runs()) == len(MEMBERS)
        assert len(lines) == 1 and lines[0].startswith(
            f"the ledger had schema version {number} and was brought up to {NEXT}"
        )
        assert version(url) == NEXT
        new = {"epsearch_turns": ANY}
        assert tables(url) == before | new | {"epsearch_later": ({"id": ANY, "name": ANY}, {}, ["id"])}
    with Store.open(url) as store:
        assert store.add([record(seed=9), *MEMBERS]) == 1


DAMAGE = {
    "DROP TABLE epsearch_leases": "epsearch_leases",
    "DROP TABLE epsearch_claims": "there is no table epsearch_claims",
    "ALTER TABLE epsearch_leases DROP COLUMN expires": "epsearch_leases has no column expires",
    "ALTER TABLE epsearch_summaries RENAME TO other": "there is no table epsearch_summaries",
    "DROP TABLE epsearch_audit; CREATE TABLE epsearch_audit (id TEXT PRIMARY KEY)": "epsearch_audit",
}


@pytest.mark.parametrize("statements", DAMAGE)
def test_tables_that_are_damaged_are_one_line_and_stay_as_they_are(url: str, statements: str) -> None:
    make_older(url)
    engine = connect(url)
    with engine.begin() as connection:
        for statement in statements.split("; "):
            connection.exec_driver_sql(statement)
    engine.dispose()
    before = tables(url)
    with pytest.raises(StoreError, match=DAMAGE[statements]) as caught:
        opened(url)
    assert "\n" not in str(caught.value) and (version(url), tables(url)) == (DEVELOPMENT, before)


def test_sqlite_is_copied_first(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    file.chmod(0o640)
    opened(url, lines := []).close()
    assert lines == [f"{TOLD}; the ledger as it was before is kept in {file}.v7"]
    assert names(tmp_path) == ["ledger.db", "ledger.db.v7"]
    copy = f"sqlite:///{file}.v7"
    assert (tmp_path / "ledger.db.v7").stat().st_mode & 0o777 == 0o640
    with Store.read(copy) as store:
        check_members(store)
    with closing(sqlite3.connect(f"{file}.v7")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT version FROM epsearch_schema").fetchone() == (DEVELOPMENT,)


def test_what_another_program_has_just_written_is_in_the_copy(tmp_path: Path) -> None:
    """It stands in the log beside the file, and in the file only later."""
    url, file = on_sqlite(tmp_path)
    late = schema.to_row(record(seed=7))
    with closing(sqlite3.connect(file)) as other:
        with other:
            other.execute(
                f"INSERT INTO epsearch_runs ({', '.join(late)}) VALUES ({', '.join(f':{name}' for name in late)})", late
            )
        assert (tmp_path / "ledger.db-wal").stat().st_size > 0
        Store.open(url).close()
    with Store.read(f"sqlite:///{file}.v7") as copy:
        assert len(copy.all_runs()) == len(MEMBERS) + 1


def test_a_copy_of_another_time_stays(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    older, second = tmp_path / "ledger.db.v7", tmp_path / "ledger.db.v7.2"
    older.write_bytes(b"of last year")
    opened(url, lines := []).close()
    assert lines[0].endswith(f"is kept in {second}")
    assert older.read_bytes() == b"of last year"
    file.write_bytes(second.read_bytes())  # gone back to
    opened(url, lines := []).close()
    assert lines[0].endswith(f"is kept in {second}")
    assert names(tmp_path) == ["ledger.db", "ledger.db.v7", "ledger.db.v7.2"]


@pytest.mark.parametrize("name", ["what?.db", "100%.db", "a#b.db", b"caf\xe9.db".decode(errors="surrogateescape")])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    url = LedgerUrl.of_file(tmp_path / name)
    make_older(url.revealed)
    opened(url.revealed, lines := []).close()
    assert len(lines) == 1
    assert names(tmp_path) == [name, f"{name}.v7"]


def test_without_a_copy_nothing_changes(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    before = file.read_bytes()
    (tmp_path / "ledger.db.v7.part").mkdir()
    with pytest.raises(
        StoreUnavailable, match=r"^cannot copy the ledger to .*\.part before .*; the ledger is unchanged$"
    ) as one:
        Store.open(url)
    assert "\n" not in str(one.value)
    assert file.read_bytes() == before and names(tmp_path) == ["ledger.db", "ledger.db.v7.part"]


def test_another_database_is_brought_up_to_date_by_the_command_alone(url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("a file is copied and brought up to date by whoever writes to it")
    make_older(url)
    before = tables(url)
    with pytest.raises(StoreError, match=r"^the ledger has schema version 7, .* `epsearch db upgrade`") as one:
        Store.open(url)
    assert "\n" not in str(one.value)
    assert (version(url), tables(url)) == (DEVELOPMENT, before)
    with opened(url, lines := []) as store:
        assert lines == [TOLD]
        check_members(store)


def test_the_command_makes_no_ledger(url: str) -> None:
    with pytest.raises(StoreError, match="there is no ledger yet"):
        Store.upgrade(url)
    assert tables(url) == {}


def test_a_failure_halfway_leaves_it_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(url, 1)
    add_version(monkeypatch)
    before = tables(url)

    def half(connection: Connection) -> None:
        connection.exec_driver_sql(TABLE)
        connection.exec_driver_sql("ALTER TABLE epsearch_runs ADD COLUMN seed BIGINT")  # which is there already

    with monkeypatch.context() as broken:
        broken.setitem(MIGRATIONS, NEXT - 1, half)
        with pytest.raises(StoreError, match="seed"):
            opened(url)
    assert (version(url), tables(url)) == (1, before)
    with opened(url) as store:
        check_members(store)


def test_a_migration_that_does_not_do_its_work_is_undone(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(url, 1)
    add_version(monkeypatch)
    with monkeypatch.context() as broken:
        broken.setitem(MIGRATIONS, NEXT - 1, lambda connection: None)
        with pytest.raises(StoreError, match="there is no table epsearch_later"):
            opened(url)
    assert version(url) == 1


@pytest.mark.slow
@pytest.mark.parametrize("old", [True, False], ids=["older", "new"])
def test_many_threads_open_it_at_once(url: str, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", HANGS)
    if old:
        make_older(url)
    together, problems, counts, lines = threading.Barrier(8), [], [], []

    def work() -> None:
        together.wait(HANGS)
        try:
            with opened(url, lines) if old else Store.open(url, RetryPolicy(notify=lines.append)) as store:
                counts.append(len(store.all_runs()))
        except StoreError as error:
            problems.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert counts == [len(MEMBERS) if old else 0] * 8
    assert len(lines) == old
    assert version(url) == schema.VERSION


@pytest.mark.slow
def test_two_processes_bring_it_up_to_date_once(tmp_path: Path) -> None:
    url, _ = on_sqlite(tmp_path)
    openers = [process(url, f"print(store.add([record(seed={seed})]))") for seed in (10, 11)]
    outputs = [o.communicate(timeout=HANGS) for o in openers]
    assert [o.returncode for o in openers] == [0, 0], outputs
    with Store.open(url) as store:
        assert len(store.all_runs()) == len(MEMBERS) + 2
    assert names(tmp_path) == ["ledger.db", "ledger.db.v7"]


# Where a process is killed: what of the program is put in the place of what.
KILLED = {
    "before the copy": "migrations._copy = die",
    "in the copy": "migrations.flush = die",
    "before the copy has its name": "migrations._names = die",
    "after the copy": "layout.migrate = die",
    "before the end": "layout.migrate = after(migrations.migrate)",
}
CHILD = """
import os, signal, sys
from results.ledger import layout, migrations
from results.ledger.store import Store

def die(*what):
    os.kill(os.getpid(), signal.SIGKILL)

def after(work):
    return lambda *what: (work(*what), die())

{change}
Store.open(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("change", KILLED.values(), ids=KILLED)
def test_a_kill_leaves_the_old_ledger_and_no_more_than_one_copy(tmp_path: Path, change: str) -> None:
    url, file = on_sqlite(tmp_path)
    for _ in range(2):
        command = [sys.executable, "-c", CHILD.format(change=change), url]
        assert subprocess.run(command, cwd=ROOT, timeout=HANGS).returncode == -signal.SIGKILL
        with Store.read(url) as store:
            check_members(store)
    assert version(url) == DEVELOPMENT
    with opened(url, lines := []) as store:
        assert lines == [f"{TOLD}; the ledger as it was before is kept in {file}.v7"]
        check_members(store)
    assert names(tmp_path) == ["ledger.db", "ledger.db.v7"]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("open_it", [Store.open, Store.read, Store.upgrade], ids=["open", "read", "upgrade"])
@pytest.mark.parametrize("number", [3, 6])
def test_other_development_versions_are_refused(url: str, open_it: type[Store], number: int) -> None:
    make_older(url, number)
    with pytest.raises(
        StoreError, match=rf"^the ledger has schema version {number}, .*`epsearch import` the file"
    ) as one:
        open_it(url)  # type: ignore[operator]
    assert "\n" not in str(one.value) and version(url) == number


def test_the_layout_that_is_made_is_the_last(url: str) -> None:
    Store.open(url).close()
    assert version(url) == schema.VERSION
    engine = connect(url)
    with engine.connect() as connection:
        assert layout.read_layout(connection)[0] == {table.name for table in schema.TABLES_OF[schema.VERSION]}
    engine.dispose()
