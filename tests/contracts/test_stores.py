"""The ledger: records and studies."""

from __future__ import annotations

import dataclasses
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine

from results.ledger import schema
from results.ledger.database import connect
from results.ledger.record import Certificate, Summary, same_result
from results.ledger.store import Store, StoreError, StudyConflict
from results.ledger.url import without_passwords
from tests.support.limits import HANGS
from tests.support.synthetic import process, record


def test_round_trip_is_exact(store: Store) -> None:
    awkward = record(seed=2, tasks=4)
    digits = np.random.default_rng(0).random((4, 4)) ** 9
    digits[0, 2:] = np.nan
    digits[1, 1] = np.nextafter(0.1, 1)
    digits[2, 2] = 5e-324
    awkward = dataclasses.replace(awkward, accuracies=digits, epsilon=0.1 + 0.2, seed=2**40)
    broken = record(seed=1, diverged=True)
    assert store.add([awkward, broken]) == 2
    found = store.get([awkward.key, broken.key, "unknown"])
    assert set(found) == {awkward.key, broken.key}
    assert same_result(found[awkward.key], awkward)
    assert same_result(found[broken.key], broken)
    assert found[awkward.key].seconds == awkward.seconds
    assert found[awkward.key].created == awkward.created


def test_numpy_scalars_come_back_as_numbers(store: Store) -> None:
    member = dataclasses.replace(record(), epsilon=np.float64(0.1), seed=np.int64(0), steps=np.int64(16500))
    store.add([member])
    assert same_result(store.get([member.key])[member.key], record())


def test_minus_zero_is_zero(store: Store) -> None:
    """SQLite returns 0.0 for it, which another checksum would fit."""
    member = dataclasses.replace(record(), epsilon=-0.0, seconds=-0.0)
    certificate = Certificate("00ff", -0.0, -0.0, "2026-01-01T00:00:00+00:00")
    store.add([member])
    store.certify([certificate])
    members, certificates = store.get([member.key]), store.certificates(["00ff"])
    assert members[member.key].epsilon == 0 and certificates["00ff"] == certificate


def test_the_first_record_of_a_key_stays(store: Store) -> None:
    first = record()
    second = dataclasses.replace(first, steps=7)
    assert store.add([first, first]) == 1
    assert store.add([second, record(seed=5)]) == 1
    assert store.get([first.key])[first.key].steps == first.steps
    assert len(store.all_runs()) == 2
    assert store.add([]) == 0


def test_many_keys_at_once(store: Store) -> None:
    members = [record(seed=s) for s in range(40)]
    assert store.add(members) == 40
    keys = [f"{i:064x}" for i in range(40_000)] + [m.key for m in members]
    assert len(store.get(keys)) == 40
    assert [r.key for r in store.all_runs()] == sorted(m.key for m in members)


def test_arrays_are_json_that_other_tools_can_read(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/ledger.db") as store:
        store.add([record()])
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as raw:
        row = raw.execute(
            "select json_extract(accuracies, '$[2][0]'), json_extract(accuracies, '$[0][2]'), "
            "json_extract(content, '$.network.lr'), epsilon from epsearch_runs"
        ).fetchone()
    assert row == (record().accuracies[2, 0], None, 0.1, 0.1)


def test_a_failing_batch_adds_nothing(store: Store) -> None:
    bad = dataclasses.replace(record(seed=1), content={"value": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        store.add([record(seed=0), bad])
    assert len(store.all_runs()) == 0


@pytest.mark.slow
def test_two_processes_add_at_the_same_time(url: str) -> None:
    """They open a new file together, and half of their keys are the same."""
    body = ("print(sum(store.add([record(seed=s)]) for s in range({0}, {1})))",)
    writers = [process(url, body[0].format(low, low + 40)) for low in (0, 20)]
    outputs = [w.communicate(timeout=HANGS) for w in writers]
    assert [w.returncode for w in writers] == [0, 0], outputs
    with Store.open(url) as store:
        assert len(store.all_runs()) == 60
        assert sum(int(out) for out, _ in outputs) == 60


def test_threads_share_a_store(store: Store) -> None:
    added: list[int] = []
    work = [
        threading.Thread(target=lambda: added.append(store.add([record(seed=s) for s in range(9)]))) for _ in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert sorted(added) == [0, 0, 0, 9]


@pytest.mark.slow
def test_kill_loses_no_committed_record(url: str) -> None:
    lines = ("seed = 0", "while True:", "    store.add([record(seed=seed), record(seed=seed, epsilon=0.5)])")
    writer = process(url, *lines, "    print(seed, flush=True)", "    seed += 1")
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= 25:
            break
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate(timeout=HANGS)[0].split("\n")
    last = max([25, *(int(word) for word in rest[:-1])])
    with Store.open(url) as store:
        committed = {record(seed=s, epsilon=e).key for s in range(last + 1) for e in (0.1, 0.5)}
        assert set(store.get(committed)) == committed
        assert len(store.all_runs()) % 2 == 0
        assert store.add([record(seed=10_000)]) == 1
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
            assert raw.execute("pragma integrity_check").fetchone() == ("ok",)


def test_sqlite_is_set_to_survive(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path}/ledger.db")
    with engine.connect() as connection:
        values = [
            connection.exec_driver_sql(f"pragma {n}").scalar() for n in ("journal_mode", "synchronous", "busy_timeout")
        ]
    engine.dispose()
    assert values == ["wal", 2, 60_000]


def test_studies(store: Store) -> None:
    config = {"repeats": 5, "seeds": (0, 1), "network": {"hidden": 256}}
    store.save_study("demo", config)
    store.save_study("demo", config)
    store.save_study("other", {"repeats": 5})
    row = store.study("demo")
    assert row is not None and row.config == {"repeats": 5, "seeds": [0, 1], "network": {"hidden": 256}}
    assert row.created.endswith("+00:00")
    assert store.study("unknown") is None
    assert [s.name for s in store.studies()] == ["demo", "other"]


def test_a_conflict_names_every_difference(store: Store) -> None:
    store.save_study("demo", {"repeats": 5, "network": {"hidden": 256}})
    with pytest.raises(StudyConflict) as one:
        store.save_study("demo", {"repeats": 3, "network": {"hidden": 256}})
    problem = "study 'demo' exists with another configuration: repeats is 5 there, 3 here"
    wanted = f"{problem}; choose another --name or repeat its options"
    assert str(one.value) == wanted
    with pytest.raises(StoreError, match=r"network\.hidden is 256 there, 128 here and lr is absent there, 0.1 here;"):
        store.save_study("demo", {"repeats": 5, "network": {"hidden": 128}, "lr": 0.1})
    row = store.study("demo")
    assert row is not None and row.config["repeats"] == 5


def summed_up(store: Store, status: str, name: str = "demo", study: str | None = None) -> Summary:
    row = store.study("demo")
    assert row is not None and row.checksum
    return Summary(name, row.checksum if study is None else study, status, {"epsilon": 0.1 + 0.2, "k": 7}, 1 / 3, False)


def test_a_summary_takes_the_place_of_the_one_before(store: Store) -> None:
    store.save_study("demo", {"repeats": 5})
    assert store.summaries() == {}
    store.sum_up(first := summed_up(store, "1 of 5"))
    assert store.summaries() == {"demo": first}
    assert store.summary("demo") == first and store.summary("nothing") is None
    store.add([record()], second := summed_up(store, "2 of 5"))
    assert store.summaries() == {"demo": second}
    assert store.summary("demo") == second
    store.certify([Certificate(record().key, 0.0, 0.0, "")], third := summed_up(store, "finished"))
    assert store.summaries() == {"demo": third} and len(store.all_runs()) == 1
    assert store.add([record()], second) == 0  # the member is known, and what the study knows is none the less new
    assert store.summaries() == {"demo": second}


def test_a_summary_is_of_the_study_as_it_is(store: Store) -> None:
    store.save_study("demo", {"repeats": 5})
    before = store.study("demo")
    assert before is not None
    store.sum_up(summed_up(store, "finished"))
    store.change_study(before, {"repeats": 6})
    assert store.summaries() == {}
    store.sum_up(now := summed_up(store, "1 of 6"))
    store.add([record()], summed_up(store, "finished", study=before.checksum))  # of a program that knows of no change
    assert store.summaries() == {"demo": now} and len(store.all_runs()) == 1
    store.sum_up(summed_up(store, "finished", name="unknown"))
    assert store.summaries() == {"demo": now}


def test_records_and_summary_come_together_or_not_at_all(store: Store) -> None:
    store.save_study("demo", {"repeats": 5})
    store.sum_up(first := summed_up(store, "1 of 5"))
    with pytest.raises(ValueError, match="JSON"):
        store.add([record()], dataclasses.replace(first, score=float("nan")))
    bad = dataclasses.replace(record(seed=1), content={"value": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        store.add([record(), bad], summed_up(store, "2 of 5"))
    assert len(store.all_runs()) == 0 and store.summaries() == {"demo": first}


@pytest.mark.parametrize("change", ["summary = '{}'", "checksum = ''", "study = 'x'", "summary = 'finished'"])
def test_a_damaged_summary_is_none(url: str, change: str) -> None:
    with Store.open(url) as store:
        store.save_study("demo", {"repeats": 5})
        store.sum_up(first := summed_up(store, "finished"))
        engine = connect(url)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE epsearch_summaries SET {change}")
        engine.dispose()
        assert store.summaries() == {}
        store.sum_up(first)
        assert store.summaries() == {"demo": first}


def test_fields_of_another_version_are_no_summary(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save_study("demo", {"repeats": 5})
    monkeypatch.setattr(schema, "asdict", lambda summary: {**dataclasses.asdict(summary), "members": 7})
    store.sum_up(summed_up(store, "finished"))
    assert store.summaries() == {}


def refusal(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_urls() -> None:
    assert "cannot be read: 'nonsense'; allowed: sqlite:///FILE" in refusal("nonsense")
    assert "no ledger of kind 'mysql'" in refusal("mysql://me:secret@host/db")
    assert "secret" not in refusal("mysql://me:secret@host/db")
    assert "lost at exit" in refusal("sqlite://")
    assert "lost at exit" in refusal("sqlite:///:memory:")


def test_wrong_files(tmp_path: Path) -> None:
    assert f"folder does not exist: {tmp_path}/no" in refusal(f"sqlite:///{tmp_path}/no/ledger.db")
    assert f"got the folder {tmp_path}" in refusal(f"sqlite:///{tmp_path}")
    text = tmp_path / "notes.txt"
    text.write_text("this is no database, however long it may be" * 50)
    assert "file is not a database; allowed: a ledger of this program" in refusal(f"sqlite:///{text}")
    assert text.read_text().startswith("this is no database")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Store.open(f"sqlite:///{path}").close()
    with pytest.raises(StoreError, match="readonly database; allowed: a file and folder that can be written"):
        Store.open(f"sqlite:///file:{path}?mode=ro&uri=true").add([record()])
    assert "unable to open database file; allowed" in refusal(f"sqlite:///file:{tmp_path}/new.db?mode=ro&uri=true")


def test_a_newer_ledger_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    Store.open(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(schema.versions.update().values(version=99))
    engine.dispose()
    assert f"schema version 99, made by a newer epsearch; allowed: up to {schema.VERSION}" in refusal(url)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for kind in ("postgresql", "postgres", "postgresql+psycopg"):
        message = refusal(f"{kind}://me:secret@localhost/db")
        assert "pip install 'epsearch[postgres]'" in message
        assert "secret" not in message


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://me:s@c:ret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("sqlite:////data/a.db", "sqlite:////data/a.db"),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    assert without_passwords(url) == masked
