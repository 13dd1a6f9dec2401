"""scikit-learn's 1,797 handwritten 8×8 digits: installed with it, no download."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from trainers.streams.base import DataError, Examples, Images

TEST_EVERY = 5  # writers follow each other in the file: every fifth image of a class takes some from all of them


@lru_cache(maxsize=1)
def load(data_dir: Path | None = None) -> Images:
    """1,442 training and 355 test images of 64 pixels, 0…16. `data_dir` is not used."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError(f"permuted_digits needs scikit-learn: {error}; pip install scikit-learn") from error
    pixels, labels = load_digits(return_X_y=True)
    inputs, labels = pixels.astype(np.uint8), labels.astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return Images(Examples(inputs[~test], labels[~test]), Examples(inputs[test], labels[test]), 10, 16.0)


def present(data_dir: Path) -> str | None:
    """Where the images lie, or None."""
    from importlib.util import find_spec

    return "in scikit-learn" if find_spec("sklearn") else None
