"""Solves many small convex quadratic programs with a lower bound exactly."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FAILED_EXCHANGES = 3  # exchanges of whole blocks that may fail to help before single variables are exchanged
MOST_EXCHANGES = 50  # for each variable; a few in all are usual. A matrix that rounding has made indefinite may cycle
TOLERANCE = 1e-12  # of the largest entry of the matrix: what counts as zero


def solve(matrix: Array, linear: Array, lowest: float) -> Array:
    """Returns argmin ½ vᵀPv + qᵀv subject to v >= lowest, of M problems: P [M, n, n], q [M, n] -> [M, n].

    Block principal pivoting (Júdice & Pires, 1994): every variable is either at its bound or free. The free ones come
    from a linear system; those on the wrong side of their condition change places, all of them while that lowers their
    number, else only the last (Murty's rule), which ends after finitely many exchanges where P is positive definite. A
    problem that has not ended by then gets the best that was found: the places with the fewest on the wrong side.

    >>> solve(np.eye(2)[None], np.array([[-3.0, 2.0]]), 0.5).tolist()
    [[3.0, 0.5]]
    """
    count = linear.shape[1]
    shifted = linear + lowest * matrix.sum(axis=2)  # in terms of v − lowest, which is >= 0
    zero = TOLERANCE * np.maximum(np.abs(matrix).max(axis=(1, 2)), np.abs(shifted).max(axis=1))[:, None]
    free = np.zeros(linear.shape, dtype=bool)
    fewest = np.full(len(linear), count + 1)
    left = np.full(len(linear), FAILED_EXCHANGES)
    best = np.zeros(linear.shape)
    for _ in range(MOST_EXCHANGES * count):
        # Rows of the identity hold the others at their bound, so that all problems have systems of one size.
        both = free[:, :, None] & free[:, None, :]
        system = np.where(both, matrix, np.eye(count))
        above = np.linalg.solve(system, np.where(free, -shifted, 0.0)[..., None])[..., 0]
        slope = np.einsum("mij,mj->mi", matrix, above) + shifted
        wrong = np.where(free, above < -zero, slope < -zero)
        number = wrong.sum(axis=1)
        fewer = number < fewest
        best = np.where(fewer[:, None], np.where(free, np.maximum(above, 0.0), 0.0), best)
        if not wrong.any():
            break
        fewest = np.where(fewer, number, fewest)
        left = np.where(fewer, FAILED_EXCHANGES, left - 1)
        # The last True of each row is the first of the row turned round.
        last = np.arange(count) == (count - 1 - wrong[:, ::-1].argmax(axis=1))[:, None]
        free ^= np.where((left < 0)[:, None], wrong & last, wrong)
    return lowest + best
