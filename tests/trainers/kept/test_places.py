"""Files in folders and behind URLs: the same promises everywhere; failures are OSErrors in one line."""

import itertools
import sys
import threading

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from trainers.persistence.checked_files import Damaged
from trainers.persistence.places import Remote, place, reason

NUMBERS = itertools.count()


@pytest.fixture(params=["folder", "file://", "memory://"])
def where(request, tmp_path):
    """Somewhere new, of every kind."""
    if request.param == "memory://":
        return f"memory://places-{next(NUMBERS)}/below"
    return f"{request.param.removeprefix('folder')}{tmp_path / 'new'}"


def put(there, name, text, mark="mark"):
    there.write(name, mark, memoryview(text))


def test_what_is_written_is_read_listed_and_removed(where):
    there = place(where)
    assert there.names("runs") == []
    put(there, "runs/a", b"first")
    put(there, "runs/b", b"")
    put(there, "runs/a", b"second")
    again = place(where)  # another process
    assert (again.contents("runs/a", "mark"), again.contents("runs/b", "mark")) == (b"second", b"")
    assert sorted(again.names("runs")) == ["a", "b"] and again.names("others") == []
    again.remove(["runs/a", "runs/never"])
    assert there.names("runs") == ["b"]
    with pytest.raises(FileNotFoundError):
        there.contents("runs/a", "mark")


def test_what_was_written_for_something_else_is_damaged(where):
    there = place(where)
    put(there, "runs/a", b"content")
    with pytest.raises(Damaged, match="it is damaged"):
        there.contents("runs/a", "another mark")


def test_a_folder_needs_no_fsspec(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    put(place(tmp_path), "runs/a", b"content")
    with pytest.raises(OSError, match="fsspec"):
        place("memory://x").names("runs")


@pytest.mark.parametrize(
    ("url", "line"),
    [("nothing://x", "Protocol not known: nothing"), ("gs://bucket", "install gcsfs")],
)
def test_a_url_that_nobody_can_read_is_told_in_one_line(url, line):
    with pytest.raises(OSError, match=line) as error:
        place(url).names("runs")
    assert "\n" not in reason(error.value)


def test_s3_without_its_package_names_the_extra(monkeypatch):
    def missing(protocol):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(OSError, match=r"^Install s3fs to access S3; pip install 'epsearch\[s3\]'$"):
        place("s3://bucket/path").names("runs")


def test_errors_of_other_kinds_are_lines_too(monkeypatch):
    there = place(f"memory://places-{next(NUMBERS)}")

    def fail(*given, **named):
        raise RuntimeError("the service\nhas gone")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail)
    with pytest.raises(OSError, match=r"^the service$"):
        put(there, "runs/a", b"")


def test_nobody_waits_for_ever(monkeypatch):
    there, release = Remote(f"memory://places-{next(NUMBERS)}", timeout=0.05), threading.Event()
    monkeypatch.setattr(MemoryFileSystem, "cat_file", lambda *given, **named: release.wait())
    try:
        with pytest.raises(OSError, match=r"^no answer within 0\.05 seconds$"):
            there.contents("runs/a", "mark")
    finally:
        release.set()
