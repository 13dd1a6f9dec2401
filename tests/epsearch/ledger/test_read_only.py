"""Reading a ledger needs no writing: on a read-only file system, without permission, beside what a dead run left."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from epsearch.findings import listing
from epsearch.ledger.location import ledger_url
from results.ledger.store import Store, StoreError
from tests.support.ledgers import ARGUMENTS, finished, of_development

NOBODY = 65534


@contextmanager
def nobody():
    """Permissions hold for this process, whoever runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked():
    """Copies a ledger to where nobody may write, after `change(folder)`, and gives its folder."""
    made = []

    def lock(change=lambda folder: None):
        above = Path(tempfile.mkdtemp())  # not pytest's folder, which only its owner may enter
        made.append(above)
        above.chmod(0o755)
        folder = above / "runs"
        shutil.copytree(finished(), folder)
        change(folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        return folder

    yield lock
    for above in made:
        for path in (above, *above.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(above)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def leave_a_log(folder, shared=True):
    """As a run leaves it that is killed: rows in the write-ahead log that are not in the file yet."""
    other = folder / "other"
    other.mkdir()
    shutil.copy(folder / "epsearch.sqlite", other)
    with Store.open(f"sqlite:///{other}/epsearch.sqlite") as store:
        store.save_study("late", {"study": {}})
        for path in other.iterdir():
            if shared or not path.name.endswith("-shm"):
                shutil.copy(path, folder)
    shutil.rmtree(other)


def leave_a_journal(folder):
    """As a program leaves it that is killed while it changes a ledger with a rollback journal: half a change."""
    file, other = folder / "epsearch.sqlite", folder / "other"
    other.mkdir()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("PRAGMA cache_size=1")
    connection.execute("BEGIN")
    connection.execute("UPDATE epsearch_runs SET accuracies = 'spoilt' || accuracies")
    for path in list(folder.glob("epsearch.sqlite*")):
        shutil.copy(path, other)
    connection.execute("ROLLBACK")
    connection.close()
    for path in other.iterdir():
        shutil.copy(path, folder)
    shutil.rmtree(other)
    assert (folder / "epsearch.sqlite-journal").stat().st_size > 0
    assert b"spoilt" in file.read_bytes()


LEFT = {
    "nothing": (lambda folder: None, ["first"]),
    "a log": (leave_a_log, ["first", "late"]),
    "a log alone": (lambda folder: leave_a_log(folder, shared=False), ["first", "late"]),
    "a journal": (leave_a_journal, ["first"]),
}


@pytest.mark.parametrize(("change", "names"), LEFT.values(), ids=LEFT)
def test_list_and_show_need_no_permission_to_write(epsearch, locked, change, names):
    folder = locked(change)
    before = files(folder)
    with nobody():
        listed = epsearch("list", "--out", folder, "--json")
        shown = epsearch("show", "first", "--out", folder, "--json")
    assert (listed.status, shown.status) == (0, 0), listed.err + shown.err
    assert [row["name"] for row in listed.json] == names
    assert listed.json[0]["status"] == "finished" and shown.json["finished"] is True
    assert files(folder) == before


@pytest.mark.slow
def test_plan_and_report_need_no_permission_to_write_to_the_ledger(epsearch, locked, tmp_path):
    folder = locked()
    tmp_path.chmod(0o777)
    for path in tmp_path.parents:
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    (tmp_path / "elsewhere").mkdir(mode=0o777)
    (tmp_path / "elsewhere").chmod(0o777)
    place = f"sqlite:///{folder}/epsearch.sqlite"
    with nobody():
        planned = epsearch("plan", *ARGUMENTS, "--name", "first", "--out", folder, "--json")
        refused = epsearch("report", "first", "--out", folder)
        written = epsearch("report", "first", "--out", "elsewhere", "--storage", place, "--json")
    assert planned.status == 0 and planned.json["ahead"]["now"] == 0, planned.err
    assert refused.status == 2 and refused.err.count("\n") == 1
    assert (
        f"cannot write to the out folder {folder}/first: no permission; give another --out, and --storage {place}"
        in (refused.err)
    )
    assert written.status == 0 and (tmp_path / "elsewhere" / "first" / "report.html").exists(), written.err


def test_run_says_what_it_cannot_write_to(epsearch, locked):
    folder = locked()
    with nobody():
        answer = epsearch("run", *ARGUMENTS, "--name", "first", "--out", folder)
    assert answer.status == 2 and answer.err.count("\n") == 1 and "cannot write to the out folder" in answer.err


@pytest.mark.slow
def test_a_ledger_of_an_older_version_is_read_as_it_is(epsearch, locked):
    folder = locked(of_development)
    before = files(folder)
    with nobody():
        answer = epsearch("list", "--out", folder, "--json")
        shown = epsearch("show", "first", "--out", folder, "--json")
    assert answer.status == 0 and answer.json[0]["status"] == "finished", answer.err
    assert shown.status == 0 and shown.json["finished"] is True, shown.err
    assert epsearch("list", "--out", folder, "--json").json == answer.json  # whoever may write: nobody wrote
    assert files(folder) == before


def test_readers_leave_no_file_behind(epsearch, tmp_path):
    shutil.copytree(finished(), tmp_path / "runs")
    before = set((tmp_path / "runs").iterdir())
    for command in ("list", "show"):
        assert epsearch(command).status == 0
    assert set((tmp_path / "runs").iterdir()) == before


def test_a_reader_sees_what_a_run_is_just_writing(tmp_path):
    shutil.copytree(finished(), tmp_path / "runs")
    url = ledger_url(tmp_path / "runs")
    with Store.open(url) as writer:
        writer.save_study("late", {"study": {}})
        assert [row.name for row in listing.list_studies(url, tmp_path)] == ["first", "late"]
        writer.save_study("later", {"study": {}})
    assert [row.name for row in listing.list_studies(url, tmp_path)] == ["first", "late", "later"]


def test_who_reads_cannot_write():
    with Store.read(ledger_url(finished())) as store, pytest.raises(StoreError, match="readonly"):
        store.save_study("new", {})


@pytest.mark.parametrize("arguments", [["list"], ["show"], ["report"], ["report", "a", "b"], ["list", "--json"]])
def test_reading_makes_no_ledger(epsearch, tmp_path, arguments):
    (tmp_path / "runs").mkdir()
    answer = epsearch(*arguments)
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert (
        f"no ledger {tmp_path}/runs/epsearch.sqlite yet; `epsearch run` with the same --out or --storage makes one"
        in answer.err
    )
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_planning_makes_no_ledger(epsearch, small_options, tmp_path):
    (tmp_path / "runs").mkdir()
    assert epsearch("plan", *small_options).status == 0
    assert not list((tmp_path / "runs").iterdir())
    (tmp_path / "runs").rmdir()
    assert epsearch("plan", *small_options).status == 0


def test_an_empty_file_is_a_ledger_without_studies(epsearch, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "epsearch.sqlite").touch()
    assert epsearch("list", "--json").json == []
    assert "no study in" in epsearch("show").err
    assert (tmp_path / "runs" / "epsearch.sqlite").read_bytes() == b""
