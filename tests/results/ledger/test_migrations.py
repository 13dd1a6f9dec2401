"""A ledger of an older version: read as it is, and brought up to date, whole or not at all, after a copy of it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from results.ledger import layout, migrations, schema
from results.ledger.database import connect
from results.ledger.dialects import sqlite
from results.ledger.errors import StoreUnavailable
from results.ledger.migrations import MIGRATIONS
from results.ledger.record import Certificate, Summary, same_result
from results.ledger.store import Store, StoreError
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import here
from results.ledger.writers.leases import Lease
from results.ledger.writers.states import FINISHED, INTERRUPTED, RUNNING
from tests.support.limits import HANGS
from tests.support.synthetic import ROOT, process, record

# The tables as version 3 made them, word for word.
VERSION_3 = (
    "CREATE TABLE epsearch_schema (id INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (id))",
    """CREATE TABLE epsearch_runs (
        key VARCHAR(64) NOT NULL, phase VARCHAR(16) NOT NULL, method VARCHAR(64) NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL, seed BIGINT NOT NULL, status VARCHAR(16) NOT NULL,
        diverged_task INTEGER, diverged_step BIGINT, steps BIGINT NOT NULL, seconds DOUBLE PRECISION NOT NULL,
        accuracies TEXT NOT NULL, initial TEXT NOT NULL, within TEXT NOT NULL, violations TEXT NOT NULL,
        content TEXT NOT NULL, created VARCHAR(64) NOT NULL, fingerprint VARCHAR(64) DEFAULT '' NOT NULL,
        cohort VARCHAR(64) DEFAULT '' NOT NULL, checksum VARCHAR(64) DEFAULT '' NOT NULL, PRIMARY KEY (key))""",
    """CREATE TABLE epsearch_studies (
        name VARCHAR(255) NOT NULL, config TEXT NOT NULL, created VARCHAR(64) NOT NULL,
        checksum VARCHAR(64) DEFAULT '' NOT NULL, PRIMARY KEY (name))""",
    """CREATE TABLE epsearch_certificates (
        key VARCHAR(64) NOT NULL, accuracy_difference DOUBLE PRECISION NOT NULL,
        parameter_difference DOUBLE PRECISION NOT NULL, created VARCHAR(64) NOT NULL,
        checksum VARCHAR(64) DEFAULT '' NOT NULL, PRIMARY KEY (key))""",
)
# And what version 4 added.
VERSION_4 = (
    """CREATE TABLE epsearch_summaries (
        name VARCHAR(255) NOT NULL, study VARCHAR(64) NOT NULL, summary TEXT NOT NULL, checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (name))""",
)
# And version 5.
VERSION_5 = (
    """CREATE TABLE epsearch_leases (
        name VARCHAR(255) NOT NULL, token BIGINT NOT NULL, holder TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (name))""",
    """CREATE TABLE epsearch_claims (
        key VARCHAR(64) NOT NULL, study VARCHAR(255) NOT NULL, token BIGINT NOT NULL, PRIMARY KEY (key))""",
)
# And version 6; SQLite numbers events in another way.
VERSION_6 = (
    "ALTER TABLE epsearch_leases ADD COLUMN state VARCHAR(16) NOT NULL DEFAULT 'running'",
    "ALTER TABLE epsearch_leases ADD COLUMN reason TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE epsearch_leases ADD COLUMN changed DOUBLE PRECISION NOT NULL DEFAULT 0",
    """CREATE TABLE epsearch_reruns (
        key VARCHAR(64) NOT NULL, accuracy_difference DOUBLE PRECISION NOT NULL,
        parameter_difference DOUBLE PRECISION NOT NULL, created VARCHAR(64) NOT NULL, checksum VARCHAR(64) NOT NULL,
        PRIMARY KEY (key))""",
    """CREATE TABLE epsearch_events (
        id BIGSERIAL NOT NULL PRIMARY KEY, study VARCHAR(255) NOT NULL, token BIGINT NOT NULL,
        kind VARCHAR(16) NOT NULL, data TEXT NOT NULL, time DOUBLE PRECISION NOT NULL)""",
    "CREATE INDEX epsearch_events_of ON epsearch_events (study, id)",
)
ON_SQLITE = {
    "DOUBLE PRECISION": "DOUBLE",
    "BIGSERIAL NOT NULL PRIMARY KEY": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
}
ADDED = {3: VERSION_3, 4: VERSION_4, 5: VERSION_5, 6: VERSION_6}
STUDY = schema.study_to_row("demo", {"repeats": 5}, "2025-11-21T00:00:00+00:00")
GROWN = schema.study_to_row("grown", {"repeats": 6}, "2025-11-22T00:00:00+00:00")
SUMMARY = Summary("demo", STUDY["checksum"], "finished", {"epsilon": 0.1}, 1 / 3, False)
MEMBERS = [record(seed=s) for s in range(3)] + [record(seed=3, diverged=True)]
KEYS = [member.key for member in MEMBERS]
LEASES = [{"name": name, "token": 7, "holder": "{}", "expires": 0.0} for name in ("demo", "begun", "grown", "new")]
SUMMARIES = [
    Summary(name, "before", status, None, None, False)
    for name, status in (("begun", "repeat 1"), ("grown", "finished"))
]
TOLD = f"the ledger had schema version 6 and was brought up to {schema.VERSION}"


def make_older(url: str, number: int = 6) -> None:
    """A ledger of an older version with MEMBERS and the study `demo`."""
    statements = [statement for version, new in ADDED.items() if version <= number for statement in new]
    rows = [("schema", {"id": 1, "version": number}), ("studies", STUDY)]
    rows += [("runs", schema.to_row(member)) for member in MEMBERS]
    rows += [("summaries", schema.summary_to_row(SUMMARY))] if number > 3 else []
    engine = connect(url)
    with engine.begin() as connection:
        for statement in statements:
            for made, own in ON_SQLITE.items() if engine.name == "sqlite" else ():
                statement = statement.replace(made, own)
            connection.exec_driver_sql(statement)
        for table, row in rows:
            connection.execute(text(insert(table, row)), row)
    engine.dispose()


def insert(table: str, row: Mapping[str, object]) -> str:
    return f"INSERT INTO epsearch_{table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"


def on_sqlite(folder: Path) -> tuple[str, Path]:
    url = f"sqlite:///{folder}/ledger.db"
    make_older(url)
    return url, folder / "ledger.db"


def opened(url: str) -> Store:
    """To write to, as a run opens SQLite, and as the command opens whatever there is."""
    return Store.open(url) if url.startswith("sqlite") else Store.upgrade(url)


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


def check_members(store: Store, number: int = 6) -> None:
    found = store.get(KEYS)
    assert not found.damaged and len(found) == len(MEMBERS)
    assert all(same_result(found[member.key], member) for member in MEMBERS)
    study = store.study("demo")
    assert study is not None and study.config == {"repeats": 5} and not study.damage
    assert store.summaries() == ({"demo": SUMMARY} if number > 3 else {})
    assert store.claimed(KEYS) == {} and store.standings() == {} and store.events("demo") == []


def test_every_version_since_the_third_leads_to_the_next() -> None:
    assert set(MIGRATIONS) == set(range(3, schema.VERSION))
    assert set(schema.TABLES_OF) == {schema.VERSION - 1, schema.VERSION}


def test_it_is_read_as_it_is(url: str) -> None:
    make_older(url)
    before = tables(url)
    with Store.read(url) as store:
        check_members(store)
        assert len(store.all_runs()) == len(MEMBERS) and store.told == ""
    assert (version(url), tables(url)) == (6, before)


@pytest.mark.parametrize("number", ADDED)
def test_nothing_is_lost_and_everything_new_works(url: str, number: int) -> None:
    make_older(url, number)
    for turn in range(2):
        with opened(url) as store:
            check_members(store, number)
            assert len(store.all_runs()) == len(MEMBERS)
            assert store.told.startswith(TOLD.replace("6", str(number), 1)) if turn == 0 else store.told == ""
        assert version(url) == schema.VERSION
    with Store.open(url) as store:
        assert store.add([record(seed=9), *MEMBERS]) == 1
        assert store.certify([Certificate(KEYS[0], 0.0, 0.0, "")]) == 1
        assert store.acquire("demo", here()) == Lease("demo", 1)
        assert store.claim([*KEYS, "00ff"]) == {"00ff"} and store.claimed(["00ff"]) == {"00ff": "demo"}
        store.note([("note", {"text": "later"})])
        store.enter(FINISHED)
        assert [one.id for one in store.events("demo")] == [1, 2, 3]
        standing = store.standing("demo")
        assert standing is not None and standing.state == FINISHED
        store.release()
        store.submit("demo", {"kind": "run"})
        assert store.submissions()["demo"].open and store.last_event() == 4
        store.audit("me", "submit", "demo", {})
        assert [one.who for one in store.audited(10)] == ["me"]


def test_a_study_that_was_finished_is_and_any_other_was_left_running(url: str) -> None:
    """A summary of what a study was before it grew says nothing."""
    make_older(url, 5)
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(text(insert("studies", GROWN)), GROWN)
        for summary in SUMMARIES:
            connection.execute(schema.summaries.insert().values(schema.summary_to_row(summary)))
        for lease in LEASES:
            connection.execute(text(insert("leases", lease)), lease)
    engine.dispose()
    with opened(url) as store:
        standings = store.standings()
        stored = {name: standing.state for name, standing in standings.items()}
        assert stored == {"demo": FINISHED, "begun": RUNNING, "grown": RUNNING, "new": RUNNING}
        assert standings["new"].now == INTERRUPTED and standings["new"].reason == "" and standings["new"].changed == 0
        assert store.acquire("demo", here()) == Lease("demo", 8)


DAMAGE = {
    "DROP TABLE epsearch_leases": "epsearch_leases",
    "DROP TABLE epsearch_claims": "there is no table epsearch_claims",
    "ALTER TABLE epsearch_leases DROP COLUMN expires": "epsearch_leases has no column expires",
    "CREATE TABLE epsearch_audit (id TEXT PRIMARY KEY)": "epsearch_audit",
    "ALTER TABLE epsearch_summaries RENAME TO other": "there is no table epsearch_summaries",
    "CREATE TABLE epsearch_queue (id INTEGER PRIMARY KEY)": "epsearch_queue",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_tables_that_are_damaged_are_one_line_and_stay_as_they_are(url: str, statement: str) -> None:
    make_older(url)
    engine = connect(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    before = tables(url)
    with pytest.raises(StoreError, match=DAMAGE[statement]) as caught:
        opened(url)
    assert "\n" not in str(caught.value) and (version(url), tables(url)) == (6, before)


@pytest.mark.parametrize("number", ADDED)
def test_a_ledger_brought_up_to_date_has_the_tables_of_a_new_one(url: str, store: Store, number: int) -> None:
    new = tables(url)
    engine = connect(url)
    schema.metadata.drop_all(engine)
    engine.dispose()
    make_older(url, number)
    opened(url).close()
    assert tables(url) == new


def test_sqlite_is_copied_first(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    file.chmod(0o640)
    with Store.open(url) as store:
        assert store.told == f"{TOLD}; the ledger as it was before is kept in {file}.v6"
    assert names(tmp_path) == ["ledger.db", "ledger.db.v6"]
    copy = f"sqlite:///{file}.v6"
    assert (tmp_path / "ledger.db.v6").stat().st_mode & 0o777 == 0o640
    with Store.read(copy) as store:
        check_members(store)
    with closing(sqlite3.connect(f"{file}.v6")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT version FROM epsearch_schema").fetchone() == (6,)


def test_what_another_program_has_just_written_is_in_the_copy(tmp_path: Path) -> None:
    """It stands in the log beside the file, and in the file only later."""
    url, file = on_sqlite(tmp_path)
    late = schema.to_row(record(seed=7))
    with closing(sqlite3.connect(file)) as other:
        with other:
            other.execute(insert("runs", late), late)
        assert (tmp_path / "ledger.db-wal").stat().st_size > 0
        Store.open(url).close()
    with Store.read(f"sqlite:///{file}.v6") as copy:
        assert len(copy.all_runs()) == len(MEMBERS) + 1


def test_a_copy_of_another_time_stays(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    older, second = tmp_path / "ledger.db.v6", tmp_path / "ledger.db.v6.2"
    older.write_bytes(b"of last year")
    with Store.open(url) as store:
        assert store.told.endswith(f"is kept in {second}")
    assert older.read_bytes() == b"of last year"
    file.write_bytes(second.read_bytes())  # gone back to
    with Store.open(url) as store:
        assert store.told.endswith(f"is kept in {second}")
    assert names(tmp_path) == ["ledger.db", "ledger.db.v6", "ledger.db.v6.2"]


@pytest.mark.parametrize("name", ["what?.db", "100%.db", "a#b.db", b"caf\xe9.db".decode(errors="surrogateescape")])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    url = LedgerUrl.of_file(tmp_path / name)
    make_older(url.revealed)
    with Store.open(url) as store:
        assert store.told
    assert names(tmp_path) == [name, f"{name}.v6"]


def test_without_a_copy_nothing_changes(tmp_path: Path) -> None:
    url, file = on_sqlite(tmp_path)
    before = file.read_bytes()
    (tmp_path / "ledger.db.v6.part").mkdir()
    with pytest.raises(
        StoreUnavailable, match=r"^cannot copy the ledger to .*\.part before .*; the ledger is unchanged$"
    ) as one:
        Store.open(url)
    assert "\n" not in str(one.value)
    assert file.read_bytes() == before and names(tmp_path) == ["ledger.db", "ledger.db.v6.part"]


def test_another_database_is_brought_up_to_date_by_the_command_alone(url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("a file is copied and brought up to date by whoever writes to it")
    make_older(url)
    before = tables(url)
    with pytest.raises(StoreError, match=r"^the ledger has schema version 6, .* `epsearch db upgrade`") as one:
        Store.open(url)
    assert "\n" not in str(one.value)
    assert (version(url), tables(url)) == (6, before)
    with Store.upgrade(url) as store:
        assert store.told == TOLD
        check_members(store)


def test_the_command_makes_no_ledger(url: str) -> None:
    with pytest.raises(StoreError, match="there is no ledger yet"):
        Store.upgrade(url)
    assert tables(url) == {}


def test_a_failure_halfway_leaves_it_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(url)
    before = tables(url)

    def half(connection: Connection) -> None:
        migrations.add_queue(connection)
        connection.exec_driver_sql("ALTER TABLE epsearch_runs ADD COLUMN seed BIGINT")  # which is there already

    with monkeypatch.context() as broken:
        broken.setitem(MIGRATIONS, 6, half)
        with pytest.raises(StoreError, match="seed"):
            opened(url)
    assert (version(url), tables(url)) == (6, before)
    with opened(url) as store:
        check_members(store)


def test_a_migration_that_does_not_do_its_work_is_undone(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(url)
    with monkeypatch.context() as broken:
        broken.setitem(MIGRATIONS, 6, lambda connection: None)
        with pytest.raises(StoreError, match="there is no table epsearch_queue"):
            opened(url)
    assert version(url) == 6


@pytest.mark.parametrize("old", [True, False], ids=["version 6", "new"])
def test_many_threads_open_it_at_once(url: str, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", HANGS)
    if old:
        make_older(url)
    together, problems, counts, told = threading.Barrier(8), [], [], []

    def work() -> None:
        together.wait(HANGS)
        try:
            with opened(url) if old else Store.open(url) as store:
                counts.append(len(store.all_runs()))
                told.append(store.told)
        except StoreError as error:
            problems.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert counts == [len(MEMBERS) if old else 0] * 8
    assert len(list(filter(None, told))) == old
    assert version(url) == schema.VERSION


def test_two_processes_bring_it_up_to_date_once(tmp_path: Path) -> None:
    url, _ = on_sqlite(tmp_path)
    openers = [process(url, f"print(store.told, store.add([record(seed={seed})]))") for seed in (10, 11)]
    outputs = [o.communicate(timeout=HANGS) for o in openers]
    assert [o.returncode for o in openers] == [0, 0], outputs
    assert sum(TOLD in out for out, _ in outputs) == 1
    with Store.open(url) as store:
        assert len(store.all_runs()) == len(MEMBERS) + 2
    assert names(tmp_path) == ["ledger.db", "ledger.db.v6"]


# Where a process is killed: what of the program is put in the place of what.
KILLED = {
    "before the copy": "migrations._copy = die",
    "in the copy": "migrations._flush = die",
    "before the copy has its name": "migrations._names = die",
    "after the copy": "layout.migrate = die",
    "between table and version": "migrations.MIGRATIONS[6] = after(migrations.add_queue)",
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


@pytest.mark.parametrize("change", KILLED.values(), ids=KILLED)
def test_a_kill_leaves_the_old_ledger_and_no_more_than_one_copy(tmp_path: Path, change: str) -> None:
    url, file = on_sqlite(tmp_path)
    for _ in range(2):
        command = [sys.executable, "-c", CHILD.format(change=change), url]
        assert subprocess.run(command, cwd=ROOT, timeout=HANGS).returncode == -signal.SIGKILL
        with Store.read(url) as store:
            check_members(store)
    assert version(url) == 6
    with Store.open(url) as store:
        assert store.told == f"{TOLD}; the ledger as it was before is kept in {file}.v6"
        check_members(store)
    assert names(tmp_path) == ["ledger.db", "ledger.db.v6"]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_version_before_the_last_two_is_brought_up_to_date_but_not_read(url: str, number: int) -> None:
    make_older(url, number)
    wanted = f"schema version {number}, this epsearch writes 7 and reads 6 and 7; `epsearch db upgrade` brings it"
    with pytest.raises(StoreError, match=f"^the ledger has {wanted}"):
        Store.read(url)
    assert version(url) == number
    with opened(url) as store:
        assert store.told.startswith(f"the ledger had schema version {number} and was brought up to 7")
        check_members(store, number)
    with Store.read(url) as store:
        check_members(store, number)


@pytest.mark.parametrize("open_it", [Store.open, Store.read, Store.upgrade], ids=["open", "read", "upgrade"])
def test_a_version_from_before_there_were_migrations_is_refused(url: str, open_it: type[Store]) -> None:
    make_older(url)
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(schema.versions.update().values(version=2))
    engine.dispose()
    with pytest.raises(StoreError, match=r"^the ledger has schema version 2, .*; begin another ledger") as one:
        open_it(url)  # type: ignore[operator]
    assert "\n" not in str(one.value) and version(url) == 2


def test_the_layout_that_is_made_is_the_last(url: str) -> None:
    Store.open(url).close()
    assert version(url) == schema.VERSION
    engine = connect(url)
    with engine.connect() as connection:
        assert layout.look(connection).tables == {table.name for table in schema.TABLES_OF[schema.VERSION]}
    engine.dispose()
