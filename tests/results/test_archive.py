"""Ledgers as files: the same bytes for the same rows, nothing taken over from a file that is damaged or hostile."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from results import archive
from results.archive import MANIFEST, PARTS, Archive, ArchiveError, write
from results.ledger import schema
from results.ledger.database import KEYS_PER_QUERY
from results.ledger.record import RERUN, Certificate, Summary, same_result
from results.ledger.store import Store, StoreError, StudyConflict
from results.ledger.writers.errors import LeaseHeld
from results.ledger.writers.holder import here
from tests.support.synthetic import DAY, record

CONFIG = {"study": {"repeats": 2}, "certify": 1}
RUNS = [record(seed=0), record(seed=1, diverged=True), record(seed=2, phase="eval", tasks=5)]


def filled(url: str | Path) -> Store:
    store = Store.open(url if isinstance(url, str) else f"sqlite:///{url}")
    store.save_study("one", CONFIG)
    row = store.study("one")
    assert row is not None
    store.add(RUNS, Summary("one", row.checksum, "finished", {"epsilon": 0.1}, 0.93, False))
    store.certify([Certificate(RUNS[0].key, 0.0, float("inf"), DAY)])
    store.certify([Certificate(RUNS[1].key, 0.1, float("inf"), DAY, RERUN)])
    return store


def exported(store: Store, path: Path) -> Path:
    write(path, {table: [store.undamaged_rows(table, store.names(table))] for table in PARTS}, "1.0")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with filled(tmp_path / "one.db") as store:
        return exported(store, tmp_path / "one.zip")


def test_what_is_taken_over_is_what_was_there(file: Path, store: Store, tmp_path: Path) -> None:
    """`store` is an SQLite file, or a PostgreSQL database; back again, the bytes are the same."""
    with Archive(file) as opened:
        added = store.import_rows(opened.rows)
        assert added == (("one",), 3, 2)
        again = store.import_rows(opened.rows)
        assert again == ((), 0, 0)
    found = store.get([one.key for one in RUNS])
    assert all(same_result(found[one.key], one) for one in RUNS)
    assert store.summaries()["one"].status == "finished"
    assert store.certificates([RUNS[1].key], RERUN)[RUNS[1].key].accuracy_difference == 0.1
    assert store.certificates([RUNS[0].key])[RUNS[0].key].parameter_difference == float("inf")
    assert exported(store, tmp_path / "back.zip").read_bytes() == file.read_bytes()


def test_the_bytes_do_not_depend_on_the_order_of_writing(file: Path, tmp_path: Path) -> None:
    created = Archive(file)
    with created, Store.open(f"sqlite:///{tmp_path}/other.db") as store:
        store.add([RUNS[2]])
        store.import_rows(created.rows)
        assert exported(store, tmp_path / "other.zip").read_bytes() == file.read_bytes()
    unpacked = [(name, created_.read(name)) for created_ in [zipfile.ZipFile(file)] for name in created_.namelist()]
    assert [name for name, _ in unpacked] == [*PARTS.values(), MANIFEST]
    assert json.loads(unpacked[-1][1])["epsearch"] == "1.0"


def test_what_is_there_stays_unless_it_is_damaged_or_older(file: Path, tmp_path: Path) -> None:
    mine = replace(RUNS[0], seconds=9.0)
    newer, older = (Certificate(RUNS[1].key, 0.3, 0.0, day, RERUN) for day in ("2999-01-01", "2000-01-01"))
    for rerun, kept in ((newer, 0.3), (older, 0.1)):
        path = tmp_path / f"{kept}.db"
        with Store.open(f"sqlite:///{path}") as store, Archive(file) as opened:
            store.add([mine, RUNS[2]])
            store.certify([rerun])
            with closing(sqlite3.connect(path)) as raw, raw:
                raw.execute("UPDATE epsearch_runs SET steps = 1 WHERE key = ?", [RUNS[2].key])
            assert store.import_rows(opened.rows)[1] == 2
            found = store.get([one.key for one in RUNS])
            assert found[RUNS[0].key].seconds == 9.0 and found[RUNS[2].key].steps == RUNS[2].steps
            assert store.certificates([RUNS[1].key], RERUN)[RUNS[1].key].accuracy_difference == kept


def test_another_study_of_the_name_is_refused_and_nothing_is_added(file: Path, store: Store) -> None:
    store.save_study("one", {**CONFIG, "study": {"repeats": 3}})
    with Archive(file) as opened, pytest.raises(StudyConflict, match=r"study\.repeats is 3 there, 2 here"):
        store.import_rows(opened.rows)
    assert store.all_runs() == [] and len(store.studies()) == 1


def test_ignored_options_make_no_other_study(file: Path, store: Store) -> None:
    store.save_study("one", {**CONFIG, "certify": 7})
    with Archive(file) as opened:
        with pytest.raises(StudyConflict):
            store.import_rows(opened.rows)
        assert store.import_rows(opened.rows, ("certify",))[0] == ()
    study = store.study("one")
    assert study is not None and study.config["certify"] == 7


def test_a_study_that_is_being_trained_is_refused(file: Path, store: Store, url: str) -> None:
    with Store.open(url) as other, Archive(file) as opened:
        other.leases.acquire("one", here())
        with pytest.raises(LeaseHeld):
            store.import_rows(opened.rows)
    assert store.all_runs() == [] and store.studies() == []


def test_a_failure_in_the_middle_adds_nothing(file: Path, store: Store) -> None:
    with Archive(file) as opened:

        def broken(table: Any) -> Any:
            if table is schema.reruns:
                raise StoreError("gone")
            return opened.rows(table)

        with pytest.raises(StoreError, match="gone"):
            store.import_rows(broken)
    assert store.all_runs() == [] and store.studies() == []


@pytest.mark.slow
def test_more_rows_than_a_query_has_values(tmp_path: Path) -> None:
    runs = [record(seed=seed) for seed in range(KEYS_PER_QUERY + 2)]
    with Store.open(f"sqlite:///{tmp_path}/many.db") as store, Store.open(f"sqlite:///{tmp_path}/to.db") as target:
        store.add(runs)
        with Archive(exported(store, tmp_path / "many.zip")) as opened:
            assert [len(group) for group in opened.rows(schema.runs)] == [KEYS_PER_QUERY, 2]
            assert target.import_rows(opened.rows)[1] == len(runs)


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    with filled(tmp_path / "one.db") as store:
        with closing(sqlite3.connect(tmp_path / "one.db")) as raw, raw:
            raw.execute("UPDATE epsearch_runs SET steps = 1 WHERE key = ?", [RUNS[0].key])
        with Archive(exported(store, tmp_path / "one.zip")) as opened:
            assert opened.parts[schema.runs]["rows"] == 2


def parts_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(path: Path, parts: dict[str, bytes], honest: bool = True) -> Path:
    """A file of these parts; honest: with a manifest that fits them."""
    import hashlib

    if honest:
        manifest = json.loads(parts[MANIFEST])
        for name in manifest["parts"]:
            data = parts.get(name, b"")
            rows, digest = data.count(b"\n"), hashlib.sha256(data).hexdigest()
            manifest["parts"][name] = {"rows": rows, "bytes": len(data), "sha256": digest}
        parts = parts | {MANIFEST: json.dumps(manifest).encode()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    return path


def changed_row(change: Callable[[dict[str, Any]], None], sealed: bool = True) -> Callable[[dict[str, bytes]], None]:
    def apply(parts: dict[str, bytes]) -> None:
        first, *others = parts["runs.jsonl"].splitlines(keepends=True)
        row = json.loads(first)
        change(row)
        if sealed:
            row = schema.with_checksum({name: value for name, value in row.items() if name != "checksum"})
        parts["runs.jsonl"] = json.dumps(row).encode() + b"\n" + b"".join(others)

    return apply


def manifest_says(**values: Any) -> Callable[[dict[str, bytes]], None]:
    def apply(parts: dict[str, bytes]) -> None:
        parts[MANIFEST] = json.dumps(json.loads(parts[MANIFEST]) | values).encode()

    return apply


def doubled(parts: dict[str, bytes]) -> None:
    parts["runs.jsonl"] += parts["runs.jsonl"]


def first_row_again(parts: dict[str, bytes]) -> None:
    parts["runs.jsonl"] = parts["runs.jsonl"].splitlines(keepends=True)[0] + parts["runs.jsonl"]


def put(name: str, data: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda parts: parts.update({name: data})


HOSTILE = {
    "another checksum": (changed_row(lambda row: row.update(steps=1), sealed=False), "its checksum does not match"),
    "another content": (
        changed_row(lambda row: row.update(content='{"epsilon": 1}')),
        "is not that of its content",
    ),
    "impossible": (changed_row(lambda row: row.update(accuracies="[[7.0]]")), "must have shape"),
    "another column": (changed_row(lambda row: row.update(more="x")), "its columns are"),
    "no column": (changed_row(lambda row: row.pop("steps")), "its columns are"),
    "text for a number": (changed_row(lambda row: row.update(steps="many")), "steps must be a whole number, got text"),
    "twice": (doubled, "it is not behind the one before"),
    "the first row twice": (first_row_again, "it is not behind the one before"),
    "no JSON": (put("runs.jsonl", b"{'a': 1}\n"), "is damaged"),
    "no object": (put("runs.jsonl", b"[1]\n"), "a row must be a JSON object"),
    "deep": (put("runs.jsonl", b"[" * 200_000 + b"\n"), "is damaged"),
    "a long number": (put("runs.jsonl", b"1" * 5000 + b"\n"), "is damaged"),
    "no text": (put("studies.jsonl", b"\xff\xfe\n"), "is damaged"),
    "a path": (put("../../etc/passwd", b"x"), "it must hold studies.jsonl"),
    "another file": (put("more.pkl", b"x"), "it must hold studies.jsonl"),
    "newer": (manifest_says(schema=99), "export it with the same version"),
    "another format": (manifest_says(format="epsearch ledger 2"), "export it with the same version"),
    "no part": (lambda parts: parts.pop("reruns.jsonl"), "it must hold studies.jsonl"),
}


@pytest.mark.parametrize("version", [1, 6, 7])
def test_files_of_development_versions_are_read(file: Path, tmp_path: Path, version: int) -> None:
    parts = parts_of(file)
    manifest_says(schema=version)(parts)
    with Archive(packed(tmp_path / "older.zip", parts)) as archive, Archive(file) as present:
        assert archive.parts == present.parts and archive.parts[schema.runs]["rows"] > 0


@pytest.mark.parametrize(("change", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(file: Path, tmp_path: Path, change: Any, words: str) -> None:
    """Also where whoever made it has made the hashes fit."""
    parts = parts_of(file)
    change(parts)
    with pytest.raises(ArchiveError) as caught:
        Archive(packed(tmp_path / "hostile.zip", parts))
    assert words in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize(("what", "words"), [("rows", "the hash of runs.jsonl is not"), ("bytes", "has another size")])
def test_a_manifest_that_counts_wrong_is_refused(file: Path, tmp_path: Path, what: str, words: str) -> None:
    """With the right hash."""
    parts = parts_of(file)
    manifest = json.loads(parts[MANIFEST])
    manifest["parts"]["runs.jsonl"][what] += 1
    parts[MANIFEST] = json.dumps(manifest).encode()
    with pytest.raises(ArchiveError, match=words):
        Archive(packed(tmp_path / "other.zip", parts, honest=False))


def test_a_part_that_is_there_twice_is_refused(file: Path) -> None:
    """Of two, readers of zip files take either."""
    with zipfile.ZipFile(file, "a") as more, pytest.warns(UserWarning, match="Duplicate name"):
        more.writestr("runs.jsonl", parts_of(file)["runs.jsonl"])
    with pytest.raises(ArchiveError, match="each once"):
        Archive(file)


def test_a_hash_that_does_not_fit_is_refused(file: Path, tmp_path: Path) -> None:
    parts = parts_of(file)
    lines = parts["runs.jsonl"].splitlines(keepends=True)
    parts["runs.jsonl"] = b"".join(lines).replace(b'"cohort":', b' "cohort":', 1)[: len(b"".join(lines))]
    with pytest.raises(ArchiveError, match="is damaged"):
        Archive(packed(tmp_path / "other.zip", parts, honest=False))


def test_what_unpacks_to_too_much_is_refused(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(file)
    monkeypatch.setattr(archive, "LONGEST_LINE", 100)
    with pytest.raises(ArchiveError, match="has more than 100 bytes"):
        Archive(file)
    monkeypatch.setattr(archive, "LARGEST", 10)
    with pytest.raises(ArchiveError, match="must unpack to at most"):
        Archive(file)
    monkeypatch.setattr(archive, "LARGEST_MANIFEST", 10)
    with pytest.raises(ArchiveError, match="is no file that"):
        Archive(packed(tmp_path / "large.zip", parts))


@pytest.mark.parametrize("content", [b"", b"PK", b"SQLite format 3\0" * 10, b"\0" * 4096])
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a file"
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="is no file that `epsearch export` has written"):
        Archive(path)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path, tmp_path / "none", tmp_path / "pipe"):
        with pytest.raises(ArchiveError):
            Archive(other)


def test_damage_of_any_byte_is_refused_or_changes_nothing(file: Path, tmp_path: Path) -> None:
    whole, draw = file.read_bytes(), random.Random(0)
    with Archive(file) as opened:
        rows = {table: list(opened.rows(table)) for table in PARTS}
    path, served = tmp_path / "damaged.zip", 0
    for _ in range(150):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(data) if draw.random() < 0.8 else bytes(data[: draw.randrange(len(data))]))
        try:
            with Archive(path) as opened:
                assert {table: list(opened.rows(table)) for table in PARTS} == rows
                served += 1
        except ArchiveError as error:
            assert "\n" not in str(error)
    assert served < 75  # bits of a zip that say nothing of its content, such as its times


def test_a_file_that_cannot_be_finished_leaves_the_old_one(file: Path) -> None:
    before = file.read_bytes()

    def broken() -> Any:
        yield []
        raise StoreError("gone")

    with pytest.raises(StoreError):
        write(file, {table: broken() for table in PARTS}, "1.0")
    assert file.read_bytes() == before and [one.name for one in file.parent.glob(".*")] == []
