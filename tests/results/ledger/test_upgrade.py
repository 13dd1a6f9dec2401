"""A ledger that the first version of this program made, opened by this one."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from sqlalchemy import Connection, inspect, text

from results.ledger import database, schema
from results.ledger.certificate import Certificate
from results.ledger.database import connect
from results.ledger.record import ARRAYS, RunRecord, same_result
from results.ledger.schema import array_to_json, mapping_to_json
from results.ledger.store import Store, StoreError
from tests.support.limits import HANGS
from tests.support.synthetic import process, record

# As version 1 made them, word for word; no code of today's schema takes part.
VERSION_1 = (
    "CREATE TABLE epsearch_schema (id INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (id))",
    """CREATE TABLE epsearch_runs (
        key VARCHAR(64) NOT NULL, phase VARCHAR(16) NOT NULL, method VARCHAR(64) NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL, seed BIGINT NOT NULL, status VARCHAR(16) NOT NULL,
        diverged_task INTEGER, diverged_step BIGINT, steps BIGINT NOT NULL, seconds DOUBLE PRECISION NOT NULL,
        accuracies TEXT NOT NULL, initial TEXT NOT NULL, within TEXT NOT NULL, violations TEXT NOT NULL,
        content TEXT NOT NULL, created VARCHAR(64) NOT NULL, PRIMARY KEY (key))""",
    """CREATE TABLE epsearch_studies (
        name VARCHAR(255) NOT NULL, config TEXT NOT NULL, created VARCHAR(64) NOT NULL, PRIMARY KEY (name))""",
    "INSERT INTO epsearch_schema (id, version) VALUES (1, 1)",
    """INSERT INTO epsearch_studies VALUES ('demo', '{"repeats": 5}', '2025-11-21T00:00:00+00:00')""",
)
INSERT_1 = text(
    "INSERT INTO epsearch_runs (key, phase, method, epsilon, seed, status, diverged_task, diverged_step, steps, "
    "seconds, accuracies, initial, within, violations, content, created) VALUES (:key, :phase, :method, :epsilon, "
    ":seed, :status, :diverged_task, :diverged_step, :steps, :seconds, :accuracies, :initial, :within, :violations, "
    ":content, :created)"
)
MEMBERS = [record(seed=s) for s in range(3)] + [record(seed=3, diverged=True)]


def as_version_1_knew_it(member: RunRecord) -> RunRecord:
    return dataclasses.replace(member, fingerprint="", cohort="")


def insert_as_version_1(connection: Connection, member: RunRecord) -> None:
    row = {field.name: getattr(member, field.name) for field in dataclasses.fields(member)}
    row |= {name: array_to_json(row[name]) for name in ARRAYS} | {"content": mapping_to_json(member.content)}
    connection.execute(INSERT_1, {name: row[name] for name in row if name not in ("fingerprint", "cohort")})


def make_version_1(url: str) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        for statement in VERSION_1:
            connection.exec_driver_sql(statement)
        for member in MEMBERS:
            insert_as_version_1(connection, member)
    engine.dispose()


def columns(url: str, table: str = "epsearch_runs") -> set[str]:
    engine = connect(url)
    found = {column["name"] for column in inspect(engine).get_columns(table)}
    engine.dispose()
    return found


def version(url: str) -> int:
    engine = connect(url)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT version FROM epsearch_schema")).scalar_one()
    engine.dispose()
    return int(found)


def test_nothing_is_lost_and_everything_new_works(url: str) -> None:
    make_version_1(url)
    for _ in range(2):
        with Store.open(url) as store:
            found = store.get(m.key for m in MEMBERS)
            assert len(found) == store.count() == len(MEMBERS)
            for member in MEMBERS:
                assert same_result(found[member.key], as_version_1_knew_it(member))
                assert found[member.key].cohort == ""
                assert found[member.key].seconds == member.seconds
            study = store.study("demo")
            assert study is not None and study.config == {"repeats": 5}
            assert version(url) == schema.VERSION == 3
    with Store.open(url) as store:
        new = record(seed=9)
        assert store.add([new, *MEMBERS]) == 1
        assert store.get([new.key])[new.key].fingerprint == new.fingerprint != ""
        assert store.certify([Certificate(MEMBERS[0].key, 0.0, 0.0, "")]) == 1


def test_a_ledger_brought_up_to_date_has_the_columns_of_a_new_one(url: str) -> None:
    make_version_1(url)
    Store.open(url).close()
    for table in schema.metadata.sorted_tables:
        assert columns(url, table.name) == set(table.columns.keys())
    engine = connect(url)
    for column in inspect(engine).get_columns("epsearch_runs"):
        assert column["nullable"] == schema.runs.c[column["name"]].nullable
    engine.dispose()


def test_an_older_program_that_has_it_open_goes_on_adding(url: str) -> None:
    make_version_1(url)
    Store.open(url).close()
    late = record(seed=7)
    engine = connect(url)
    with engine.begin() as connection:
        insert_as_version_1(connection, late)
    engine.dispose()
    with Store.open(url) as store:
        assert same_result(store.get([late.key])[late.key], as_version_1_knew_it(late))


def test_a_failure_halfway_leaves_version_1(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_version_1(url)
    before = columns(url)
    with monkeypatch.context() as broken:
        last = (*schema.ADDED_COLUMNS[schema.VERSION], schema.runs.c.seed)  # which is there already
        broken.setitem(schema.ADDED_COLUMNS, schema.VERSION, last)
        with pytest.raises(StoreError, match="seed"):
            Store.open(url)
    assert (columns(url), version(url)) == (before, 1)
    with Store.open(url) as store:
        assert store.count() == len(MEMBERS)


@pytest.mark.parametrize("old", [True, False], ids=["version 1", "new"])
def test_many_threads_open_it_at_once(url: str, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", HANGS)
    if old:
        make_version_1(url)
    together, problems, counts = threading.Barrier(8), [], []

    def work() -> None:
        together.wait(HANGS)
        try:
            with Store.open(url) as store:
                counts.append(store.count())
        except StoreError as error:
            problems.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert counts == [len(MEMBERS) if old else 0] * 8
    assert version(url) == schema.VERSION


def test_two_processes_open_it_at_once(url: str) -> None:
    make_version_1(url)
    openers = [process(url, f"print(store.count(), store.add([record(seed={seed})]))") for seed in (10, 11)]
    outputs = [o.communicate(timeout=HANGS) for o in openers]
    assert [o.returncode for o in openers] == [0, 0], outputs
    with Store.open(url) as store:
        assert store.count() == len(MEMBERS) + 2
    assert "fingerprint" in columns(url)
