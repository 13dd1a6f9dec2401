"""Studies beside commands that delete, ledgers that are replaced, servers that fall silent: no result is lost."""

import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest

from epsearch import api
from epsearch.control.removing import clean, delete
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load
from epsearch.preparation.build import build
from epsearch.reuse.transfer import import_file
from epsearch.study.kinds import Search
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.epsearch.conftest import SMALL
from tests.fuzz.runs import Run
from tests.support import postgres

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
REMOVALS, REPLACEMENTS, SILENCES = (max(1, round(SHARE * count)) for count in (100, 30, 10))
SEED = 50_000
PROCESSES = 8
OPTIONS = SMALL | {"repeats": 1, "points": 3, "certify": 0, "workers": 1}


def study_of(out, name, **options):
    return build(Search, OPTIONS | {"out": Path(out), "name": name} | options)


def train(out, name, delay, seeds):
    time.sleep(delay)
    try:
        api.run(study_of(out, name, seeds=seeds))
    except Exception as error:  # noqa: BLE001  whatever it is, it is counted
        return f"{name}: {type(error).__name__}: {error}"
    return ""


def remove(out, delay, cleaning):
    time.sleep(delay)
    storage = LedgerUrl.of_file(Path(out) / "epsearch.sqlite")
    try:
        if cleaning:
            clean(storage, Path(out), 0.001, lambda removal: True)
        else:
            delete("first", storage, Path(out), lambda removal: True)
    except UsageError as error:
        return str(error)
    return ""


def incomplete(out):
    """Names of finished studies that lack members, by what the ledger has."""
    storage = LedgerUrl.of_file(Path(out) / "epsearch.sqlite")
    with Store.read(storage) as store:
        names = [row.name for row in store.studies() if row.name != "first"]
    return [name for name in names if not load(name, storage, Path(out)).done]


def test_studies_that_begin_beside_delete_and_clean(figures, tmp_path):
    template = tmp_path / "template"
    api.run(study_of(template, "first"))
    draw, found, trained, removed = random.Random(SEED), [], 0, 0
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        list(pool.map(str, range(4 * PROCESSES)))  # started
        for number in range(REMOVALS):
            out, cleaning = tmp_path / str(number), number % 2 == 1
            shutil.copytree(template, out)
            if cleaning:  # what nobody has any more
                with closing(sqlite3.connect(out / "epsearch.sqlite")) as ledger, ledger:
                    ledger.execute("DELETE FROM epsearch_studies")
            count = draw.choice((1, 3, PROCESSES - 1))
            runs = [
                pool.submit(train, str(out), f"s{one}", draw.uniform(0, 0.3), draw.choice(("0,1", "0,1,2")))
                for one in range(count)
            ]
            removal = pool.submit(remove, str(out), draw.uniform(0, 0.5), cleaning)
            wrong = [one.result() for one in runs]
            removed += removal.result() == ""
            trained += count
            found += [one for one in wrong if one] + [f"{number}: {name} lacks members" for name in incomplete(out)]
            shutil.rmtree(out)
    figures("studies beside delete and clean", tried=REMOVALS, studies=trained, removals=removed, wrong=len(found))
    assert not found, found


def copy_over(file):
    """Renames an older copy over the file."""
    copy = file.with_name("copy")
    with closing(sqlite3.connect(file)) as connection, closing(sqlite3.connect(copy)) as target:
        connection.backup(target)
    with closing(sqlite3.connect(copy)) as connection, connection:
        for table in ("runs", "certificates", "summaries"):
            connection.execute(f"DELETE FROM epsearch_{table}")
    copy.replace(file)


def empty(file):
    with closing(sqlite3.connect(file, timeout=60)) as connection, connection:
        for table in ("runs", "studies", "leases", "claims", "events", "summaries", "certificates"):
            connection.execute(f"DELETE FROM epsearch_{table}")


def overwrite(file):
    """Copies another ledger into the file, as `cp` does."""
    with Store.open(f"sqlite:///{file}.new"):
        pass
    shutil.copyfile(f"{file}.new", file)


def truncate(file):
    os.truncate(file, 0)


HARMS = (copy_over, empty, Path.unlink, lambda file: file.rename(file.with_name("away")), overwrite, truncate)


def rows(out):
    with closing(sqlite3.connect(out / "epsearch.sqlite")) as connection:
        return set(connection.execute("SELECT key, accuracies, fingerprint FROM epsearch_runs"))


def test_ledgers_that_are_replaced(figures, tmp_path):
    plain = Run(tmp_path / "plain")
    assert plain.wait() == 0
    draw, wrong, ends = random.Random(SEED), [], Counter()
    for number in range(REPLACEMENTS):
        run, harm = Run(tmp_path / str(number)), HARMS[number % len(HARMS)]
        least = draw.randrange(1, 13)
        process = run.until(lambda run, least=least: run.rows("cv") + run.rows("eval") >= least)
        file = run.out / "epsearch.sqlite"
        with suppress(sqlite3.Error, OSError):  # a moment at which it cannot be harmed
            harm(file)
        status = process.wait()
        ends[status] += 1
        if "Traceback" in run.err:
            wrong.append((number, "traceback", run.err[-300:]))
        if status == 0 and rows(run.out) != rows(plain.out):
            wrong.append((number, "members missing at status 0"))
        if status != 0:
            if file.exists():
                file.rename(run.out / "damaged")
            for end in ("-wal", "-shm"):
                file.with_name(file.name + end).unlink(missing_ok=True)
            saved = run.out / "fuzzed" / "unsaved-results.zip"
            if "what was trained is stored" in run.err or not saved.exists():
                wrong.append((number, status, run.err[-300:]))
                continue
            import_file(saved, LedgerUrl.of_file(file), run.out)
            known = rows(run.out)
            again = Run(run.folder)
            if again.wait() != 0 or rows(run.out) != rows(plain.out) or len(known) < least:
                wrong.append((number, "not resumed from the saved results", again.err[-300:]))
    figures("replaced ledgers", tried=REPLACEMENTS, finished=ends[0], saved_to_a_file=ends[1], wrong=len(wrong))
    assert not wrong, wrong


def test_servers_that_fall_silent(figures, tmp_path):
    programs = postgres.programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    plain = Run(tmp_path / "plain")
    assert plain.wait() == 0
    draw, wrong = random.Random(SEED), []
    for number in range(SILENCES):
        with postgres.running(programs) as server:
            run = Run(tmp_path / str(number))
            run.options = f"{Run.options} --storage {server.url()}"
            process = run.until(lambda run: (run.out / "fuzzed").exists() or (run.folder / "err").exists())
            time.sleep(draw.uniform(3, 9))
            first = psutil.Process(server.pid)
            family = [first, *first.children(recursive=True)]
            for one in family:
                one.suspend()
            time.sleep(draw.choice((3, 40, 100)))
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.resume()
            if process.wait() != 0 or run.tables() != plain.tables() or "Traceback" in run.err:
                wrong.append((number, process.returncode, run.err[-500:]))
    figures("silent servers", tried=SILENCES, wrong=len(wrong))
    assert not wrong, wrong


def test_disks_that_are_full_for_a_while(figures, tmp_path):
    from tests.fuzz.test_signals_and_disks import Disk

    plain = Run(tmp_path / "plain")
    assert plain.wait() == 0
    tries, wrong, waited = max(1, round(20 * SHARE)), [], 0
    draw = random.Random(SEED)
    for number in range(tries):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = Disk(folder / "disk", 2**26)
        try:
            if not disk.mounted:
                pytest.skip("no file system can be mounted here")
            run, least = Run(folder, disk.folder), draw.randrange(1, 13)
            process = run.until(lambda run, least=least: run.rows("cv") + run.rows("eval") >= least)
            filler = disk.folder / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as opened:
                while True:
                    opened.write(b"\0" * 256)
            time.sleep(3)
            filler.unlink()
            status = process.wait()
            waited += "trying again" in run.err
            if status != 0:  # the report, say, did not fit
                again = Run(folder, disk.folder)
                status = again.wait()
            if status != 0 or run.tables() != plain.tables() or "Traceback" in run.err:
                wrong.append((number, status, run.err[-500:]))
        finally:
            disk.remove()
    figures("disks full for 3 s", tried=tries, waited=waited, wrong=len(wrong))
    assert not wrong, wrong


def test_a_signal_ends_the_wait_for_a_full_disk(tmp_path):
    from tests.fuzz.test_signals_and_disks import Disk

    disk = Disk(tmp_path / "disk", 2**26)
    try:
        if not disk.mounted:
            pytest.skip("no file system can be mounted here")
        run = Run(tmp_path, disk.folder)
        process = run.until(lambda run: run.rows("cv") >= 1)
        with suppress(OSError), (disk.folder / "filler").open("wb", buffering=0) as opened:
            while True:
                opened.write(b"\0" * 256)
        deadline = time.monotonic() + 600
        while "trying again" not in run.err and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait() in (130, 1, 0)
    finally:
        disk.remove()
