"""The two-way layout score = setting + seed + noise, with any cells missing, and F tests against its noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from results.statistics.paired import RELATIVE_ZERO


class TwoWay(NamedTuple):
    """Free means for x and seed: the residual sum of squares, the degrees of freedom of x and of the residual."""

    pure: float
    settings: int
    spare: int


def two_way(table: np.ndarray, there: np.ndarray) -> TwoWay:
    """Least squares of table[k, s] on a mean for each k and each s; cells not `there` count for nothing."""
    # Seeds eliminated: (diag(n_k) − N diag(1/n_s) Nᵀ) m = Σ_s of the table, whose columns have mean 0.
    share = there / there.sum(axis=0)
    system = np.diag(there.sum(axis=1)) - share @ there.T
    values, vectors = np.linalg.eigh(system)
    sound = values > RELATIVE_ZERO * values[-1]  # the others stand for levels that any setting may shift
    means = vectors[:, sound] @ ((vectors[:, sound].T @ table.sum(axis=1)) / values[sound])
    left = np.where(there, table - means[:, None] + share.T @ means, 0.0)
    rank = int(sound.sum())
    return TwoWay(float((left**2).sum()), rank, int(there.sum()) - there.shape[1] - rank)


def residuals(scores: np.ndarray) -> TwoWay:
    """The layout of a complete table [K, R], seeds as blocks: pure/spare is the variance of its noise.

    >>> residuals(np.array([[0.0, 1.0], [1.0, 4.0]]))
    TwoWay(pure=1.0, settings=1, spare=1)
    """
    return two_way(scores - scores.mean(axis=0), np.ones(scores.shape, dtype=bool))


def upper_tail(extra: float, more: int, free: TwoWay) -> float:
    """p-value of the F test of a sum of squares `extra` with `more` degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, free.spare, extra / more / (free.pure / free.spare))) if free.pure > 0 else 0.0


def no_difference(scores: np.ndarray) -> float:
    """p-value of "all settings [K, R] have the same mean", seeds as blocks (two-way analysis of variance).

    Right for noise that is normal, equal and independent beyond the effect of the seed. NaN where no degree of
    freedom is left; 1 where the settings differ by no more than rounding.

    >>> round(no_difference(np.array([[1.0, 2.0, 3.1], [1.1, 1.9, 3.0], [2.0, 3.2, 4.0]])), 4)
    0.0006
    """
    there = ~np.isnan(scores)
    used = there.sum(axis=0) >= 2
    there = there[:, used]
    y = np.where(there, scores[:, used], 0.0)
    table = np.where(there, y - y.sum(axis=0) / there.sum(axis=0), 0.0)
    if not table.size:
        return math.nan
    free = two_way(table, there)
    if free.settings < 1 or free.spare < 1:
        return math.nan
    if np.abs(table).max() <= RELATIVE_ZERO * np.abs(y).max():
        return 1.0
    return upper_tail(float((table**2).sum()) - free.pure, free.settings, free)
