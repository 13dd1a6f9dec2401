"""A database that is silent, locked or full for a while is waited for, and ends nobody who waits."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from sqlalchemy import event, text

from results.ledger.dialects import postgresql as dialect
from results.ledger.dialects import sqlite
from results.ledger.errors import StoreError, StoreGone, StoreLocked, StoreUnavailable
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store
from results.ledger.writers.holder import here
from tests.support import postgres
from tests.support.limits import HANGS
from tests.support.synthetic import process, record


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    programs = postgres.programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running(programs) as started:
        yield started


@contextmanager
def silent(server: postgres.Server) -> Iterator[Callable[[], None]]:
    """Within it, no process of the server does anything, and no connection closes; called, they go on."""
    first = psutil.Process(server.pid)
    family = [first, *first.children(recursive=True)]
    for one in family:
        one.suspend()

    def go_on() -> None:
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.resume()

    try:
        yield go_on
    finally:
        go_on()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short limits in the place of a minute."""
    monkeypatch.setattr(dialect, "SILENT_SECONDS", 1)
    monkeypatch.setattr(dialect, "IDLE_SECONDS", 1)
    monkeypatch.setitem(dialect.KEEP_ALIVE, "connect_timeout", 2)


@pytest.mark.service
@pytest.mark.usefixtures("short")
class TestPostgresql:
    def test_a_silent_server_is_an_error_that_may_pass(self, server: postgres.Server) -> None:
        with Store.open(server.url()) as store:
            store.add([record(seed=0)])
            with silent(server):
                for _ in range(2):  # a connection that is open, and a new one
                    with pytest.raises(StoreGone):
                        store.all_runs()
            assert len(store.all_runs()) == 1

    def test_a_run_goes_on_when_the_server_does(self, server: postgres.Server) -> None:
        lines: list[str] = []
        with Store.open(server.url()) as store:
            store.leases.acquire("demo", here())
            with silent(server) as go_on:
                store.retries = RetryPolicy(HANGS, lines.append, lambda seconds: go_on())
                assert store.add([record(seed=1)]) == 1
            assert len(lines) == 1
            assert "; trying again for up to" in lines[0]

    def test_long_answers_are_waited_for(self, server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dialect, "SILENT_SECONDS", HANGS)
        with Store.open(server.url()) as store, store.transaction("read") as connection:
            connection.execute(text("SELECT pg_sleep(2)"))

    @pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
    def test_a_timeout_of_the_server_may_pass(self, server: postgres.Server, setting: str) -> None:
        with Store.open(server.url()) as store, Store.open(server.url()) as other:
            holding = store._engine.connect()
            holding.execute(text("LOCK TABLE epsearch_runs"))
            with pytest.raises(StoreGone), other.transaction("read") as connection:
                connection.execute(text(f"SET {setting} = 100"))
                connection.execute(text("SELECT count(*) FROM epsearch_runs"))
            holding.close()

    def test_a_statement_that_a_person_cancels_is_not_tried_again(
        self, server: postgres.Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dialect, "SILENT_SECONDS", HANGS)
        with Store.open(server.url()) as store, Store.open(server.url()) as other:
            over = threading.Event()

            def cancel() -> None:
                query = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(50%'"
                while not over.wait(0.1):
                    with other.transaction("read") as connection:
                        connection.execute(text(f"{query} AND pid <> pg_backend_pid()"))

            canceller = threading.Thread(target=cancel)
            canceller.start()
            with pytest.raises(StoreUnavailable) as caught, store.transaction("read") as connection:
                connection.execute(text("SELECT pg_sleep(500)"))
            over.set()
            canceller.join()
            assert not isinstance(caught.value, StoreGone)

    def test_a_run_that_is_stopped_in_a_transaction_ends_nobody(self, server: postgres.Server) -> None:
        """Its locks are given up by the server, and it goes on later."""
        with Store.open(server.url()) as stopped, Store.open(server.url()) as other:
            stopped.leases.acquire("one", here())
            other.leases.acquire("two", here())
            other.retries = RetryPolicy(HANGS, lambda line: None)
            with pytest.raises(StoreGone), stopped._writing() as connection:
                connection.execute(text("LOCK TABLE epsearch_claims"))
                assert other.claims.claim(["0" * 64]) == {"0" * 64}
                connection.execute(text("SELECT 1"))
            stopped.retries = RetryPolicy(HANGS, lambda line: None)
            assert stopped.add([record(seed=2)]) == 1

    def test_the_url_may_have_other_limits(self, server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> None:
        seen, bounded = dict[str, object](), dialect._connection_class()

        class Seen:
            @staticmethod
            def connect(*arguments: object, **options: object) -> object:
                seen.update(options)
                return bounded.connect(*arguments, **options)

        monkeypatch.setattr(dialect, "_connection_class", lambda: Seen)
        with Store.open(f"{server.url()}&connect_timeout=7&keepalives_idle=3") as store:
            store.all_runs()
        assert str(seen["connect_timeout"]) == "7" and str(seen["keepalives_idle"]) == "3"
        assert seen["keepalives_count"] == dialect.KEEP_ALIVE["keepalives_count"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{file}") as opened:
        yield opened


CODES = ["FULL", "IOERR", "IOERR_FSYNC", "NOMEM", "CANTOPEN", "READONLY"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("moment", ["begin", "commit"])
def test_errors_of_the_disk_may_pass(store: Store, code: str, moment: str) -> None:
    """At any statement, and at the commit."""
    left, lines = [None] * 3, list[str]()

    def fail(*_: object) -> None:
        if left:
            left.pop()
            error = sqlite3.OperationalError("the disk is ill")
            error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
            raise error

    store.retries = RetryPolicy(100.0, lines.append, lambda seconds: None)
    event.listen(store._engine, {"begin": "before_cursor_execute", "commit": "commit"}[moment], fail)
    assert store.add([record(seed=0)]) == 1
    assert len(store.all_runs()) == 1
    assert len(lines) == 1 and "the disk is ill" in lines[0]


def test_a_file_that_cannot_be_opened_at_first_is_not_waited_for(tmp_path: Path) -> None:
    for file in (tmp_path / "none" / "ledger.sqlite", tmp_path):
        with pytest.raises(StoreError) as caught:
            Store.open(f"sqlite:///{file}")
        assert not isinstance(caught.value, StoreUnavailable)


def test_a_locked_file_is_waited_for_longer_than_anything_else(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was stopped within a transaction holds the lock until it goes on."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    store._engine.dispose()
    with Store.open(f"sqlite:///{file}") as waiting, closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked):
            waiting.add([record(seed=0)])
        now, lines = [0.0], list[str]()

        def sleep(seconds: float) -> None:
            now[0] += seconds
            if now[0] > 1000 and holder.in_transaction:
                holder.execute("COMMIT")

        waiting.retries = RetryPolicy(300.0, lines.append, sleep, lambda: now[0])
        assert waiting.add([record(seed=0)]) == 1
        assert now[0] > 1000
        assert len(lines) == 1


@pytest.mark.slow
def test_a_program_that_is_stopped_in_a_transaction_ends_nobody(store: Store, file: Path) -> None:
    lines = (
        "with store._writing() as c:",
        " c.exec_driver_sql('DELETE FROM epsearch_runs')",
        " print('in', flush=True)",
    )
    other = process(f"sqlite:///{file}", *lines, " sys.stdin.read()")
    assert other.stdout is not None and other.stdout.readline() == "in\n"
    os.kill(other.pid, signal.SIGSTOP)

    def go_on(seconds: float) -> None:
        os.kill(other.pid, signal.SIGCONT)
        with suppress(ValueError):
            other.communicate(timeout=HANGS)

    store._engine.dispose()
    try:
        store.retries = RetryPolicy(1.0, lambda line: None, go_on)
        with closing(sqlite3.connect(file, timeout=0)) as impatient, pytest.raises(sqlite3.OperationalError):
            impatient.execute("DELETE FROM epsearch_runs")
        event.listen(store._engine, "connect", lambda one, record: one.execute("PRAGMA busy_timeout = 1").close())
        assert store.add([record(seed=0)]) == 1
    finally:
        other.kill()
        other.wait()


def mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "size=2m"):
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as opened:
        while True:
            opened.write(b"\0" * 512)
    return filler


def test_a_disk_that_is_full_for_a_while_is_waited_for(disk: Path) -> None:
    lines: list[str] = []
    with Store.open(f"sqlite:///{disk}/ledger.sqlite") as store:
        filler = fill(disk)
        store.retries = RetryPolicy(HANGS, lines.append, lambda seconds: filler.unlink(missing_ok=True))
        members = [record(seed=seed) for seed in range(40)]
        assert store.add(members) == 40
        assert len(lines) == 1 and "full" in lines[0]
    with Store.read(f"sqlite:///{disk}/ledger.sqlite") as store:
        assert len(store.all_runs()) == 40


@pytest.mark.slow
@pytest.mark.parametrize("left", ["closed", "open", "killed"])
def test_a_ledger_on_a_full_disk_is_read(disk: Path, left: str) -> None:
    """As its program has closed it, has it open, or was killed."""
    url = f"sqlite:///{disk}/ledger.sqlite"
    other = process(
        url, "store.add([record(seed=seed) for seed in range(5)])", "print('in', flush=True)", "sys.stdin.read()"
    )
    assert other.stdout is not None and other.stdout.readline() == "in\n"
    if left == "closed":
        with Store.open(url):
            pass
        other.communicate()
    elif left == "killed":
        other.kill()
        other.communicate()
        for end in ("-shm",):
            (disk / f"ledger.sqlite{end}").unlink(missing_ok=True)
    fill(disk)
    try:
        with Store.read(url) as store:
            assert len(store.all_runs()) == 5
    finally:
        other.kill()
        other.communicate()
