"""Whatever is raised is one line: status 2 for the user's, 1 for the surroundings', 70 and a crash report for ours."""

import errno
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from epsearch.failures import crash_report, lines, stopping
from epsearch.failures.errors import Interrupted, TrainingFailed, Unavailable, UsageError
from epsearch.runners import local
from epsearch.session import session
from results.ledger import schema
from results.ledger.errors import StoreError, StoreGone, StoreUnavailable, StudyConflict
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support.ledgers import ARGUMENTS, NAME, finished
from trainers.streams import DataError

GO_ON = stopping.RESUMES


def os_error(code, name=None):
    return OSError(code, os.strerror(code), name)


def raised_from(error, cause):
    error.__cause__ = cause
    return error


@pytest.fixture
def listing(epsearch, monkeypatch):
    """Runs `epsearch list` where it raises an error."""

    def call(error, *arguments):
        def fail(*rest):
            raise error

        monkeypatch.setattr("epsearch.findings.listing.list_studies", fail)
        return epsearch("list", *arguments)

    return call


# error, exit status, what its line says
ERRORS = [
    (UsageError("repeats must be >= 1"), 2, ["repeats must be >= 1"]),
    (DataError("no such images"), 2, ["no such images"]),
    (StudyConflict("another configuration"), 2, ["another configuration"]),
    (StoreError("cannot write to the ledger: readonly"), 1, ["readonly"]),
    (StoreUnavailable("cannot write to the ledger: disk is full"), 1, ["disk is full"]),
    (StoreGone("cannot write to the ledger: connection refused"), 1, ["connection refused"]),
    (Unavailable("Ray does not start here; try --runner local"), 1, ["--runner local"]),
    (TrainingFailed("a cohort could not be trained: no room"), 1, ["no room"]),
    (os_error(errno.ENOSPC, "runs/report.html"), 1, ["runs/report.html: No space left on device"]),
    (os_error(errno.EACCES, "runs"), 1, ["runs: Permission denied"]),
    (os_error(errno.EMFILE), 1, ["Too many open files"]),
    (os_error(errno.EPIPE), 1, ["broken pipe"]),
    (MemoryError(), 1, ["out of memory", "--workers"]),
    (torch.OutOfMemoryError("CUDA out of memory"), 1, ["CUDA out of memory"]),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, ["out of memory"]),
    (RuntimeError("can't start new thread"), 1, ["out of memory"]),
    (RuntimeError("Unable to allocate 3 GiB"), 1, ["out of memory"]),
    (RuntimeError("std::bad_alloc"), 1, ["out of memory (std::bad_alloc)"]),
    (OSError(12, "Cannot allocate memory"), 1, ["out of memory (Cannot allocate memory)"]),
    (OSError("libllvmlite.so: failed to map segment from shared object"), 1, ["out of memory (libllvmlite.so"]),
    (ImportError("libtorch_cpu.so: failed to map segment from shared object"), 1, ["out of memory (libtorch_cpu.so"]),
    (
        raised_from(OSError("not found\nmaybe"), MemoryError("no room for numpy")),
        1,
        ["out of memory (no room for numpy)"],
    ),
    (ImportError("a.so: cannot allocate memory in static TLS block"), 70, ["a bug in epsearch: ImportError"]),
    (ValueError("out of memory"), 70, ["a bug in epsearch: ValueError"]),
    (KeyboardInterrupt(), 130, ["stopped"]),
    (Interrupted(), 130, ["stopped"]),
    (ZeroDivisionError("division by zero"), 70, ["a bug in epsearch: ZeroDivisionError: division by zero"]),
    (RecursionError("too deep"), 70, ["RecursionError"]),
    (OSError("what no system says"), 70, ["what no system says"]),
    (GeneratorExit("odd"), 70, ["GeneratorExit"]),
    (TrainingFailed("a cohort: ValueError", "Traceback of a worker"), 70, ["a cohort: ValueError"]),
    (ValueError("two\n  lines\x1b[31m and [/red] " + "x" * 5000), 70, ["two lines\\x1b[31m and [/red] xxx"]),
]


@pytest.mark.parametrize(
    ("error", "status", "parts"),
    ERRORS,
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_exception_is_one_line(listing, error, status, parts):
    answer = listing(error)
    assert answer.status == status and answer.out == ""
    line = answer.err.strip()
    assert line.startswith("epsearch: ") and "\n" not in line and len(line) < 1300
    assert all(part in line for part in parts), line
    assert ("crash report" in line) == (status == 70)
    assert GO_ON not in line  # nothing was to be trained


@pytest.mark.few(3)
@pytest.mark.parametrize("command", ["run", "compare", "memory"])
@pytest.mark.parametrize(
    ("error", "status"),
    [row[:2] for row in ERRORS],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_command_that_trains_says_what_is_kept(epsearch, monkeypatch, command, error, status):
    def fail(*rest):
        raise error

    monkeypatch.setattr("epsearch.api.train", fail)
    answer = epsearch(command, "--device", "cpu")
    assert answer.status == status and answer.err.count("\n") == 1
    assert (GO_ON in answer.err) == (status != 2) and answer.err.count(GO_ON) <= 1
    monkeypatch.setattr("epsearch.findings.listing.list_studies", fail)
    assert GO_ON not in epsearch("list").err  # whatever this process did before


def report_of(answer):
    return Path(re.search(r"crash report (\S+)", answer.err)[1])


def test_a_crash_report_has_what_is_needed_to_mend_it(listing, cache):
    report = report_of(listing(ZeroDivisionError("division by zero"), "--json", "--out", "some where"))
    assert report.parent == cache / "crashes"
    text = report.read_text(encoding="utf-8")
    for part in (
        "Traceback",
        "in list_",
        "ZeroDivisionError: division by zero",
        "  --json",
        "  some where",
        "Python 3",
    ):
        assert part in text
    assert f"torch {torch.__version__.partition('+')[0]}" in text


def test_a_crash_report_has_the_workers_traceback(listing):
    error = TrainingFailed("a cohort could not be trained: ValueError: no", "Traceback of a worker\n  line 7")
    assert "Traceback of a worker\n  line 7" in report_of(listing(error)).read_text(encoding="utf-8")


def test_no_password_in_a_line_or_a_crash_report(listing, monkeypatch):
    monkeypatch.setenv("EPSEARCH_STORAGE", "postgresql://me:fr%40mEnv@host/db")
    error = ValueError("password fr@mEnv of postgresql://me:fr%40mEnv@host/db: s3cret:!@; also=1&password=third!")
    answer = listing(error, "--storage", "postgresql://me:s3cret:!@host/db")
    text = answer.err + report_of(answer).read_text(encoding="utf-8")
    for secret in ("s3cret", "fr%40mEnv", "third!"):
        assert secret not in text
    assert "fr@mEnv" not in report_of(answer).read_text(encoding="utf-8")
    assert "postgresql://me:***@host/db" in text and "EPSEARCH_STORAGE=a URL" in text


@pytest.mark.parametrize("name", [crash_report.TOKEN, crash_report.TOKENS])
def test_no_token_in_a_crash_report(listing, monkeypatch, name):
    """Neither that of a client nor those that a service accepts."""
    monkeypatch.setenv(name, "ann:write:the-secret-of-ann")
    text = report_of(listing(ZeroDivisionError())).read_text(encoding="utf-8")
    assert "the-secret" not in text and f"{name}=masked\n" in text


@pytest.mark.parametrize("name", ["passwd", "token", "pass%77ord", "password"])
def test_no_secret_parameter_in_a_crash_report(listing, name):
    url = f"postgresql://host/db?user=me&{name}=s3cret"
    text = report_of(listing(ZeroDivisionError("s3cret is wrong"), "--storage", url)).read_text(encoding="utf-8")
    assert "s3cret" not in text and f"  postgresql://host/db?user=me&{name}=***\n" in text


def test_a_password_with_a_space_is_in_no_crash_report(listing):
    answer = listing(ZeroDivisionError("pass word"), "--storage=postgresql://me:pass word@host/db")
    text = report_of(answer).read_text(encoding="utf-8")
    assert "pass word" not in text and "  --storage=postgresql://me:***@host/db\n" in text


@pytest.mark.parametrize(
    "message",
    [
        "storage is postgresql://me:***@server1/db, but EPSEARCH_STORAGE is another URL; make them one",
        'cannot open the ledger postgresql://me:***@h/db: FATAL: password authentication failed for user "x@y"',
        "no folder /data/password=1/x of sqlite:////data/pass=1/x.sqlite",
    ],
)
def test_what_is_masked_already_stays_as_it_is(listing, message):
    assert listing(UsageError(message)).err == f"epsearch: {message}\n"


@pytest.mark.parametrize("error", [StoreGone, StoreUnavailable])
@pytest.mark.parametrize("command", ["list", "show", "report", "run --extend --name first"])
def test_a_database_that_cannot_be_reached_is_of_the_surroundings(epsearch, monkeypatch, error, command):
    def fail(url, retries):
        raise error("cannot open the ledger: connection refused")

    monkeypatch.setattr(Store, "read", fail)
    answer = epsearch(*command.split(), "--storage", "postgresql://me@host/db")
    assert answer.status == 1 and "connection refused" in answer.err and answer.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("command", "read"), [("list", "summaries"), ("show", "get"), ("report", "get")])
def test_a_database_that_goes_while_it_is_read_is_not_damage(epsearch, monkeypatch, tmp_path, command, read):
    def fail(store, keys=(), damage=None):
        raise StoreGone("cannot read the ledger: connection lost")

    shutil.copytree(finished(), tmp_path / "runs")
    monkeypatch.setattr(Store, read, fail)
    answer = epsearch(command)
    assert answer.status == 1 and "connection lost" in answer.err and "damaged" not in answer.err


@pytest.mark.slow
@pytest.mark.parametrize(("goes", "of"), [("read", LedgerUrl), ("_undamaged_values", Store)], ids=["opened", "read"])
def test_the_final_report_waits_for_a_database_that_has_gone(epsearch, monkeypatch, tmp_path, goes, of):
    """Both when the ledger is opened for it, and when its runs are read."""
    shutil.copytree(finished(), tmp_path / "runs")
    original, failures_left = getattr(Store, goes), [StoreGone("connection refused")]

    def once(first, *rest, **more):
        assert isinstance(first, of)
        if failures_left and (of is LedgerUrl or rest[0] is schema.runs):
            raise failures_left.pop()
        return original(first, *rest, **more)

    monkeypatch.setattr(Store, goes, once)
    monkeypatch.setattr(session, "RetryPolicy", lambda seconds, tell, *_: RetryPolicy(seconds, tell, lambda _: None))
    answer = epsearch("run", *ARGUMENTS, "--name", NAME)
    assert answer.status == 0 and not failures_left and "connection refused; trying again" in answer.err, answer.err


def test_a_crash_report_lies_elsewhere_where_the_cache_takes_none(listing, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(crash_report.tempfile, "tempdir", str(tmp_path / "tmp"))
    assert report_of(listing(ZeroDivisionError())).parent == tmp_path / "tmp"
    monkeypatch.setattr(crash_report.tempfile, "tempdir", str(tmp_path / "file"))
    answer = listing(ZeroDivisionError())
    assert answer.status == 70 and "no crash report could be written" in answer.err


@pytest.mark.parametrize(
    ("error", "status", "parts"),
    [
        (
            os_error(errno.ENOSPC, "kept.npz"),
            1,
            ["cohorts could not be trained: cannot write", "No space left", stopping.KEPT],
        ),
        (MemoryError("no room"), 1, ["out of memory (no room)", stopping.KEPT]),
        (DataError("t10k is not an IDX file"), 1, ["DataError: t10k is not an IDX file", stopping.KEPT]),
        (UsageError("your stream raised"), 2, ["your stream raised"]),
        (IndexError("off by one"), 70, ["IndexError: off by one", "crash report"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_ends_a_cohort(epsearch, small_options, monkeypatch, error, status, parts):
    def execute(job, progress):
        raise error

    monkeypatch.setattr(local, "execute", execute)
    answer = epsearch("run", *small_options, "--quiet")
    assert answer.status == status and answer.err.strip().count("\n") == 0
    assert all(part in answer.err for part in parts), answer.err
    if status == 70:
        assert "in execute" in report_of(answer).read_text(encoding="utf-8")


@pytest.mark.slow
def test_output_that_nobody_reads(tmp_path):
    """As `epsearch datasets | head -0`: the reader has gone before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "epsearch", "datasets", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == "epsearch: the output is no longer read (broken pipe)\n"


def test_what_the_terminal_cannot_show_is_escaped(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii", errors="strict"))
    assert lines.run_command(lambda: print("ε of \udcff.zip")) == 0
    assert sys.stdout.buffer.getvalue() == rb"\u03b5 of \udcff.zip" + b"\n"
