"""Two-way analysis of variance with missing cells, and its F tests.

score = point + seed + noise.
"""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.curve import SeedFit
from results.statistics.paired import RELATIVE_ZERO

MANY = 512  # points from which on the equations are those of the seeds: the time grows as the cube of their number


class TwoWay(NamedTuple):
    """The least-squares fit with one mean for each point and one for each seed."""

    pure: float
    """Residual sum of squares: the noise alone, whatever the curve over the points is."""
    points: int
    """Degrees of freedom of the points, after the seeds."""
    spare: int
    """Degrees of freedom of the residual."""


class _Equations(NamedTuple):
    """Normal equations of the points, with the seeds eliminated; transposed, of the seeds without the points.

    K and R below are the points and seeds, or if transposed the seeds and points.
    """

    there: np.ndarray
    """[K, R] bool: the cells with a score; every column has one."""
    share: np.ndarray
    """[K, R] `there`, divided by the cells of each column."""
    values: np.ndarray
    """[n] eigenvalues of diag(n_k) − N diag(1/n_s) Nᵀ, N = `there`, other than 0."""
    vectors: np.ndarray
    """[K, n] their eigenvectors. The others are shifts of all means, which the columns absorb."""
    transposed: bool = False
    """True if rows are seeds, columns points: the smaller side has the equations."""

    @property
    def rank(self) -> int:
        """Degrees of freedom of the points, after the seeds."""
        rows, columns = self.there.shape
        return len(self.values) + (columns - rows if self.transposed else 0)

    def residuals(self, table: np.ndarray) -> np.ndarray:
        """Returns the residuals of a table [points, seeds] whose columns have mean 0; 0 where there is no cell."""
        if not self.transposed:
            return self._residuals(table)
        turned = table.T - np.where(self.there, table.T, 0.0).sum(axis=0) / self.there.sum(axis=0)
        return self._residuals(np.where(self.there, turned, 0.0)).T

    def _residuals(self, table: np.ndarray) -> np.ndarray:
        means = self.vectors @ ((self.vectors.T @ table.sum(axis=1)) / self.values)
        # The mean of each column follows from the means of the rows: it is minus their average over its cells.
        return np.where(self.there, table - means[:, None] + self.share.T @ means, 0.0)

    def leverages(self) -> np.ndarray:
        """Returns the diagonal of the hat matrix as [points, seeds]."""
        inverse = (self.vectors / self.values) @ self.vectors.T
        across = inverse @ self.share
        own = np.diag(inverse)[:, None] - 2 * across + (self.share * across).sum(axis=0)
        leverages = np.asarray(1 / self.there.sum(axis=0) + own)
        return leverages.T if self.transposed else leverages


def _equations(there: np.ndarray) -> _Equations:
    """Returns the normal equations of a table, each of whose rows and columns has a score."""
    transposed = len(there) > MANY > there.shape[1]
    there = there.T if transposed else there
    share = there / there.sum(axis=0)
    values, vectors = np.linalg.eigh(np.diag(there.sum(axis=1)) - share @ there.T)
    sound = values > RELATIVE_ZERO * values[-1]
    return _Equations(there, share, values[sound], vectors[:, sound], transposed)


def _two_way(table: np.ndarray, there: np.ndarray) -> TwoWay:
    """Returns the fit to table [K, R], whose columns have mean 0; cells that are not in `there` are ignored."""
    # Of few points with those that have no score, by which the last digits of stored searches are what they were.
    rows = there.any(axis=1) if len(there) > MANY else slice(None)
    equations = _equations(there[rows])
    left, rank = equations.residuals(table[rows]), equations.rank
    return TwoWay(float((left**2).sum()), rank, int(there.sum()) - there.shape[1] - rank)


def residuals(scores: np.ndarray) -> TwoWay:
    """Returns the fit to a table [K, R], NaN where there is no score, with the seeds as blocks.

    pure/spare is the variance of its noise.

    >>> residuals(np.array([[0.0, 1.0], [1.0, 4.0]]))
    TwoWay(pure=1.0, points=1, spare=1)
    """
    there = ~np.isnan(scores)
    table, there = scores[:, there.any(axis=0)], there[:, there.any(axis=0)]
    level = np.where(there, table, 0.0).sum(axis=0) / there.sum(axis=0)
    return _two_way(np.where(there, table - level, 0.0), there)


class Residuals(NamedTuple):
    """Residuals of a table [K, R], each from a fit without its cell."""

    by: np.ndarray
    """[K, R] the cell minus that, in the unit of the scores; NaN where it cannot be known."""
    t: np.ndarray
    """[K, R] the same in standard errors: the externally studentised residual (Cook & Weisberg 1982, §2.2.2)."""
    df: int
    """Degrees of freedom of t; 0 or less where no noise can be estimated."""
    noise: float
    """Standard deviation of the noise, from all cells, in the unit of the scores; NaN where it is not known."""


def left_out(scores: np.ndarray) -> Residuals:
    """Returns how far each cell of scores [K, R], NaN = missing, lies from score = point + seed, fitted without it."""
    there = ~np.isnan(scores)
    usable = there & (there.sum(axis=0) >= 2) & (there.sum(axis=1) >= 2)[:, None]
    nothing = np.full(scores.shape, math.nan)
    columns, rows = usable.any(axis=0), usable.any(axis=1)
    there = usable[rows][:, columns]
    if not there.size:
        return Residuals(nothing, nothing, 0, math.nan)
    y = np.where(there, scores[rows][:, columns], 0.0)
    equations = _equations(there)
    left = equations.residuals(np.where(there, y - y.sum(axis=0) / there.sum(axis=0), 0.0))
    free, df = 1 - equations.leverages(), int(there.sum()) - there.shape[1] - equations.rank - 1
    known, pure = there & (free > RELATIVE_ZERO) & (df > 0), float((left**2).sum())
    free = np.where(known, free, 1.0)
    by, others = left / free, np.maximum(pure - left**2 / free, 0.0) / max(df, 1)
    # Without noise every residual is a rounding error, and their ratios mean nothing.
    noise = np.maximum(others, max((RELATIVE_ZERO * np.abs(y).max()) ** 2, np.finfo(np.float64).tiny))
    found = [nothing.copy(), nothing.copy()]
    for full, part in zip(found, (by, left / np.sqrt(noise * free)), strict=True):
        full[np.ix_(rows, columns)] = np.where(known, part, math.nan)
    return Residuals(found[0], found[1], df, math.sqrt(pure / (df + 1)) if df > 0 else math.nan)


def residual_table(scores: np.ndarray) -> np.ndarray:
    """Returns scores [K, R] minus their least-squares point and seed; NaN where there is no score."""
    there = ~np.isnan(scores)
    rows, columns = there.any(axis=1), there.any(axis=0)
    inner, left = there[rows][:, columns], np.full(scores.shape, math.nan)
    if inner.size:
        y = np.where(inner, scores[rows][:, columns], 0.0)
        y = np.where(inner, y - y.sum(axis=0) / inner.sum(axis=0), 0.0)
        left[np.ix_(rows, columns)] = np.where(inner, _equations(inner).residuals(y), math.nan)
    return left


def _upper_tail(extra: float, more: int, free: TwoWay) -> float:
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
    free = _two_way(table, there)
    if free.points < 1 or free.spare < 1:
        return math.nan
    # Before the F test, whose ratio of two rounding errors could be anything.
    if np.abs(table).max() <= RELATIVE_ZERO * np.abs(y).max():
        return 1.0
    return _upper_tail(float((table**2).sum()) - free.pure, free.points, free)


def lack_of_fit(x: np.ndarray, scores: np.ndarray, fit: SeedFit) -> float:
    """Returns the p-value of "the means over the seeds lie on the quadratic", for the x [K] and scores [K, R] of `fit`.

    Two F tests against the residuals of the two-way analysis of variance: one of everything that a free mean for each x
    explains beyond the curve (Draper & Smith 1998, §2.1), and one of a cubic term alone, because an asymmetric curve
    shifts the top most and the first test detects it late. The result is twice the smaller p (Bonferroni).

    Exact for noise that is normal, equal and independent within a seed. Noise that is correlated between neighbouring x
    increases the residuals more than the deviations, so the first test then rejects less often. NaN where no degree of
    freedom is left; 1 where the curve misses the means by no more than rounding.
    """
    there = ~np.isnan(scores[:, fit.seeds])
    table, z = np.where(there, scores[:, fit.seeds] - fit.level, 0.0), (x - fit.centre) / fit.scale
    powers = np.where(there[:, :, None], np.stack([z, z * z], axis=1)[:, None] - fit.design, 0.0)
    missed = table - powers @ fit.beta
    free = _two_way(table, there)
    more = free.points - 2  # the curve has two coefficients
    if more < 1 or free.spare < 1:
        return math.nan
    extra = float((missed**2).sum()) - free.pure
    if extra <= there.sum() * fit.rounding**2:  # before the ratio: without any noise it would be 0/0
        return 1.0
    # With one degree of freedom beyond the curve the cubic term is all there is to test; without noise one test
    # decides.
    if free.pure == 0 or more == 1:
        return _upper_tail(extra, more, free)
    return min(
        1.0, 2 * min(_upper_tail(extra, more, free), _upper_tail(_cubic(z, there, powers, missed, fit), 1, free))
    )


def _cubic(z: np.ndarray, there: np.ndarray, powers: np.ndarray, missed: np.ndarray, fit: SeedFit) -> float:
    """Returns the sum of squares that a z³ common to all seeds explains of what the quadratic missed."""
    cube = np.where(there, (z**3)[:, None], 0.0)
    cube = np.where(there, cube - cube.sum(axis=0) / there.sum(axis=0), 0.0)
    new = cube - powers @ np.linalg.solve(fit.gram.sum(axis=0), np.einsum("ksi,ks->i", powers, cube))
    return float((new * missed).sum() ** 2 / (new**2).sum())
