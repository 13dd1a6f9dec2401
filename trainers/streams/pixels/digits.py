"""scikit-learn's 1,797 handwritten 8×8 digits: installed with it, no download."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from trainers.streams.base import DataError, Examples, Images

TEST_EVERY = 5  # writers follow each other in the file: every fifth image of a class takes some from all of them


@lru_cache(maxsize=1)
def load(data_dir: Path | None = None) -> Images:
    """Returns 1,442 training and 355 test images of 64 pixels, 0…16.

    data_dir is not used. Raises DataError without scikit-learn.
    """
    table = _table()
    inputs, labels = table[:, :-1].astype(np.uint8), table[:, -1].astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return Images(Examples(inputs[~test], labels[~test]), Examples(inputs[test], labels[test]), 10, 16.0)


def present(data_dir: Path) -> str | None:
    """Returns the place of the images, or None."""
    return "in scikit-learn" if find_spec("sklearn") else None


def _table() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Returns [1797, 65]: pixels and label. The file is read without importing scikit-learn, which takes seconds."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DataError("permuted_digits needs scikit-learn, which is not installed; pip install scikit-learn")
    file = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return np.column_stack([pixels, labels])
