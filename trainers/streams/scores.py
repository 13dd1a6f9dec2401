"""Accuracy of predictions, for our engines and for plug-in trainers."""

import numpy as np
from numpy.typing import NDArray


def accuracies(hits: NDArray[np.bool_], labels: NDArray[np.int64], balanced: bool) -> NDArray[np.float64]:
    """Returns [M], the share of hits [M, n]; balanced: the mean over the classes in labels [M, n] of each one's share.

    >>> hits, labels = np.array([[True, False, False, True]]), np.array([[0, 0, 0, 1]])
    >>> float(accuracies(hits, labels, False)[0]), round(float(accuracies(hits, labels, True)[0]), 4)
    (0.5, 0.6667)
    """
    if not balanced:
        return np.asarray(hits.mean(axis=1))
    classes = [
        [row[truth == label].mean() for label in np.unique(truth)] for row, truth in zip(hits, labels, strict=True)
    ]
    return np.array([np.mean(shares) for shares in classes])
