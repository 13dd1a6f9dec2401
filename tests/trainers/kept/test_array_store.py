"""What is kept is what is read back, under any version of NumPy that pyproject.toml allows."""

import numpy as np
import pytest

from trainers.persistence.array_store import load_arrays, save_arrays


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
