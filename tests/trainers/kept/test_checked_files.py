"""Files with checksums: what is read is what was written, under its name; else one line, and nothing."""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from trainers.persistence import checked_files
from trainers.persistence.array_store import load_arrays, save_arrays

CONTENT = bytes(range(256))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    checked_files.write(path, "mark", CONTENT)
    return path


def read(path, mark="mark"):
    return checked_files.read(path, mark, "made again")


def test_what_is_written_is_read(file, told):
    assert read(file) == CONTENT and not told
    checked_files.write(file, "mark", b"")
    assert read(file) == b"" and not told
    assert os.listdir(file.parent) == ["file"]


def test_what_is_not_there_is_no_news(tmp_path, file, told):
    assert read(tmp_path / "other") is None and read(file / "below") is None and not told


def test_every_changed_byte_is_seen(file, told):
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read(file) is None
    assert told == [f"{file} cannot be used, it is damaged: made again"] * len(whole)


def test_every_other_length_is_seen(file, told):
    whole = file.read_bytes()
    others = [whole[:length] for length in range(len(whole))] + [whole + b"x", whole * 2]
    for other in others:
        file.write_bytes(other)
        assert read(file) is None
    assert len(told) == len(others)


def test_what_was_written_for_something_else_is_not_taken(file, told):
    assert read(file, "another mark") is None and len(told) == 1


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path, told):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("folder", "pipe", "endless"):
        assert read(tmp_path / name) is None
        assert told.pop() == f"{tmp_path / name} cannot be used, it is no regular file: made again"


def test_what_cannot_be_written_leaves_what_was_there(file, monkeypatch, told):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        checked_files.write(file, "mark", b"new")
    assert read(file) == CONTENT and os.listdir(file.parent) == ["file"]


def test_no_arrays_come_from_a_damaged_file(tmp_path, told):
    """Some bytes of an .npz file say how many numbers there are, and its own checksum is then never looked at."""
    arrays = {"params": np.arange(100, dtype=np.float32), "task": np.array(3)}
    save_arrays(tmp_path, {"key": 1}, arrays)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert load_arrays(tmp_path, {"key": 1}) is None
    assert len(told) == len(whole)
    save_arrays(tmp_path, {"key": 1}, arrays)
    np.testing.assert_array_equal(load_arrays(tmp_path, {"key": 1})["params"], arrays["params"])


def test_arrays_of_another_key_are_not_taken(tmp_path, told):
    save_arrays(tmp_path, {"key": 1}, {"params": np.zeros(3)})
    (first,) = tmp_path.iterdir()
    save_arrays(tmp_path, {"key": 2}, {"params": np.ones(3)})
    (second,) = set(tmp_path.iterdir()) - {first}
    first.write_bytes(second.read_bytes())
    assert load_arrays(tmp_path, {"key": 1}) is None and len(told) == 1


def test_arrays_that_cannot_be_marked_as_used_are_used(tmp_path, monkeypatch):
    """They may be somebody else's."""
    save_arrays(tmp_path, {"key": 1}, {"params": np.zeros(3)})

    def forbidden(*given):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", forbidden)
    np.testing.assert_array_equal(load_arrays(tmp_path, {"key": 1})["params"], np.zeros(3))


KILLED = """
import os, pathlib, signal, sys
from trainers.persistence import checked_files
os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
checked_files.write(pathlib.Path(sys.argv[1]), "mark", b"new")
"""


def test_what_a_killed_process_has_begun_goes_with_the_next_file(file):
    """Whatever the name of that one is; files of others with such names stay."""
    others = {".file.12345678.part", ".file.lock", "sealing"}
    for name in others:
        (file.parent / name).touch()
    ended = subprocess.run([sys.executable, "-c", KILLED, str(file)])
    assert ended.returncode == -signal.SIGKILL
    (left,) = {*os.listdir(file.parent)} - others - {"file"}
    assert left.startswith(".file.") and read(file) == CONTENT
    checked_files.write(file.with_name("another"), "mark", b"")
    assert {*os.listdir(file.parent)} == {"file", "another", *others} and read(file) == CONTENT


def test_what_somebody_is_writing_stays(file, monkeypatch):
    """Until it has its name: two that write into a folder, and even to one file, do not disturb each other."""
    replace, inner = os.replace, [file.with_name("another"), file]

    def meanwhile(beside, path):
        if inner:
            checked_files.write(inner.pop(), "mark", b"meanwhile")
        assert os.path.exists(beside)
        replace(beside, path)

    monkeypatch.setattr(os, "replace", meanwhile)
    checked_files.write(file, "mark", b"new")
    assert not inner and read(file) == b"new" and read(file.with_name("another")) == b"meanwhile"
    assert {*os.listdir(file.parent)} == {"file", "another"}


def test_a_file_that_is_taken_for_one_that_was_left_is_begun_again(file, monkeypatch):
    """Between its making and its lock another process may see it."""
    made, mkstemp = [], tempfile.mkstemp

    def seen(*named):
        made.append(mkstemp(*named))
        if len(made) == 1:
            checked_files._clear(file.parent)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkstemp", seen)
    checked_files.write(file, "mark", b"new")
    assert len(made) == 2 and read(file) == b"new" and os.listdir(file.parent) == ["file"]


def test_without_locks_nothing_is_removed(file, monkeypatch):
    """As on Windows, where nobody can know whether a file is being written."""
    left = file.with_name(f".file.12345678{checked_files.UNFINISHED}")
    left.touch()
    with monkeypatch.context() as windows:
        windows.setattr("trainers.operating_system.fcntl", None)
        windows.setattr("trainers.operating_system.LOCKS", False)
        windows.setattr(checked_files, "LOCKS", False)
        checked_files.write(file, "mark", b"new")
    assert read(file) == b"new" and left.exists()
    checked_files.write(file, "mark", b"newer")
    assert read(file) == b"newer" and not left.exists()
