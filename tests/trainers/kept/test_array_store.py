"""What is kept is what is read back, under any version of NumPy that pyproject.toml allows."""

import os

import numpy as np
import pytest

from trainers.persistence import array_store
from trainers.persistence.array_store import SLACK, load_arrays, save_arrays


def test_exactly_the_arrays_that_were_given_come_back(tmp_path):
    given = {"params": np.arange(6, dtype=np.float32).reshape(2, 3), "task": np.array(4)}
    save_arrays(tmp_path, {"seed": 0, "rate": 0.1}, given)
    kept = load_arrays(tmp_path, {"rate": 0.1, "seed": 0})
    assert kept.keys() == given.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(kept[name], array, strict=True)


def test_nothing_is_unpickled(tmp_path):
    save_arrays(tmp_path, {}, {"objects": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_arrays(tmp_path, {})


def test_a_folder_is_looked_through_at_first_and_then_seldom(tmp_path, monkeypatch):
    largest = SLACK * 4000
    monkeypatch.setattr(array_store, "LARGEST_FOLDER", largest)
    saved = 0

    def save():
        nonlocal saved
        saved += 1
        save_arrays(tmp_path, {"number": saved}, {"array": np.zeros(90)})  # about a quarter of a slack

    def add():
        """A file of another process that is older than ours, and as large as the folder may be."""
        (tmp_path / "other.kept").write_bytes(bytes(largest))
        os.utime(tmp_path / "other.kept", (1, 1))

    for _ in range(2):
        add()
        before = saved
        while (tmp_path / "other.kept").exists() and saved < before + 9:
            save()
        assert saved - before in ((1,) if not before else (2, 3, 4, 5)), "at once, then after a slack"
    assert len(list(tmp_path.iterdir())) == saved, "ours are all kept"
