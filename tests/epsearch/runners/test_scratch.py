"""Folders of runs: removed at the end, and after a kill by the next run."""

import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from epsearch.runners.scratch import HOLDER, scratch
from results.ledger.writers.holder import UNKNOWN
from tests.support.holders import another_process, dead, needs_proc


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_the_run(temporary):
    with pytest.raises(KeyboardInterrupt), scratch() as folder:
        (folder / "tune").mkdir()
        (folder / "tune" / "state").touch()
        raise KeyboardInterrupt
    assert list(temporary.iterdir()) == []


def left_behind(folder, holder):
    """What a run of this holder has left."""
    (folder / "session" / "logs").mkdir(parents=True)
    (folder / "session" / "logs" / "raylet.out").touch()
    (folder / "latest").symlink_to(folder / "session")
    (folder / HOLDER).write_text(holder.to_json())
    return folder


@needs_proc
def test_the_folder_of_a_run_that_was_killed_goes_with_the_next(temporary):
    left_behind(temporary / "epsearch-killed", dead())
    with scratch() as folder:
        assert list(temporary.iterdir()) == [folder]


def test_other_folders_stay(temporary):
    """Of runs that go on, of those of which nothing is known, and whatever else begins like that."""
    with another_process() as (_, holder):
        left_behind(temporary / "epsearch-alive", holder)
        left_behind(temporary / "epsearch-unknown", UNKNOWN)
        (temporary / "epsearch-notes").mkdir()
        before = sorted(temporary.rglob("*"))
        with scratch():
            pass
        assert sorted(temporary.rglob("*")) == before


@needs_proc
def test_a_folder_that_cannot_be_emptied_keeps_its_holder(temporary, monkeypatch):
    """As while a process of the killed run still writes to it: the next run tries again."""
    folder, remove = left_behind(temporary / "epsearch-killed", dead()), shutil.rmtree

    def busy(path, **options):
        if path == folder / "session":
            raise OSError("Directory not empty")
        remove(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", busy)
        with scratch():
            assert (folder / HOLDER).exists()
    with scratch():
        assert not folder.exists()


@needs_proc
def test_a_killed_process_leaves_its_folder_to_the_next(temporary):
    code = "import os, signal\nfrom epsearch.runners.scratch import scratch\nwith scratch():\n os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(temporary)})
    assert [one.name for one in temporary.glob("*/*")] == [HOLDER]
    with scratch() as folder:
        assert list(temporary.iterdir()) == [folder]
