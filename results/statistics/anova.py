"""Two-way analysis of variance, score = point + seed + noise with any cells missing, and F tests against its noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from results.statistics.paired import RELATIVE_ZERO


class TwoWay(NamedTuple):
    """The least-squares fit with one mean for each point and one for each seed."""

    pure: float
    """Residual sum of squares: the noise alone, whatever the curve over the points is."""
    settings: int
    """Degrees of freedom of the points, after the seeds."""
    spare: int
    """Degrees of freedom of the residual."""


def two_way(table: np.ndarray, there: np.ndarray) -> TwoWay:
    """Returns the fit to table [K, R], whose columns have mean 0; cells that are not in `there` are ignored."""
    # With the seeds eliminated the normal equations are (diag(n_k) − N diag(1/n_s) Nᵀ) m = Σ_s table, N = `there`.
    share = there / there.sum(axis=0)
    system = np.diag(there.sum(axis=1)) - share @ there.T
    values, vectors = np.linalg.eigh(system)
    sound = values > RELATIVE_ZERO * values[-1]  # the others are shifts of all means, which the seeds absorb
    means = vectors[:, sound] @ ((vectors[:, sound].T @ table.sum(axis=1)) / values[sound])
    # The mean of each seed follows from the means of the points: it is minus their average over the seed's cells.
    left = np.where(there, table - means[:, None] + share.T @ means, 0.0)
    rank = int(sound.sum())
    return TwoWay(float((left**2).sum()), rank, int(there.sum()) - there.shape[1] - rank)


def residuals(scores: np.ndarray) -> TwoWay:
    """Returns the fit to a complete table [K, R] with the seeds as blocks; pure/spare is the variance of its noise.

    >>> residuals(np.array([[0.0, 1.0], [1.0, 4.0]]))
    TwoWay(pure=1.0, settings=1, spare=1)
    """
    return two_way(scores - scores.mean(axis=0), np.ones(scores.shape, dtype=bool))


def upper_tail(extra: float, more: int, free: TwoWay) -> float:
    """Returns the p-value of the F test of a sum of squares `extra` with `more` degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, free.spare, extra / more / (free.pure / free.spare))) if free.pure > 0 else 0.0


def no_difference(scores: np.ndarray) -> float:
    """Returns the p-value of "all points [K, R] have the same mean", with the seeds as blocks.

    Exact for noise that is normal, equal and independent beyond the effect of the seed. NaN where no degree of freedom
    is left; 1 where the points differ by no more than rounding.

    >>> round(no_difference(np.array([[1.0, 2.0, 3.1], [1.1, 1.9, 3.0], [2.0, 3.2, 4.0]])), 4)
    0.0006
    """
    there = ~np.isnan(scores)
    used = there.sum(axis=0) >= 2  # a seed with a single score only determines its own mean
    there = there[:, used]
    y = np.where(there, scores[:, used], 0.0)
    table = np.where(there, y - y.sum(axis=0) / there.sum(axis=0), 0.0)
    if not table.size:
        return math.nan
    free = two_way(table, there)
    if free.settings < 1 or free.spare < 1:
        return math.nan
    # Before the F test, whose ratio of two rounding errors could be anything.
    if np.abs(table).max() <= RELATIVE_ZERO * np.abs(y).max():
        return 1.0
    return upper_tail(float((table**2).sum()) - free.pure, free.settings, free)
