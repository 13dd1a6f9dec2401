"""The test of lack of fit of a quadratic curve."""

from __future__ import annotations

import math

import numpy as np

from results.statistics.anova import two_way, upper_tail
from results.statistics.curve import SeedFit


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
    free = two_way(table, there)
    more = free.settings - 2  # the curve has two coefficients
    if more < 1 or free.spare < 1:
        return math.nan
    extra = float((missed**2).sum()) - free.pure
    if extra <= there.sum() * fit.rounding**2:  # before the ratio: without any noise it would be 0/0
        return 1.0
    # With one degree of freedom beyond the curve the cubic term is all there is to test; without noise one test
    # decides.
    if free.pure == 0 or more == 1:
        return upper_tail(extra, more, free)
    return min(1.0, 2 * min(upper_tail(extra, more, free), upper_tail(_cubic(z, there, powers, missed, fit), 1, free)))


def _cubic(z: np.ndarray, there: np.ndarray, powers: np.ndarray, missed: np.ndarray, fit: SeedFit) -> float:
    """Returns the sum of squares that a z³ common to all seeds explains of what the quadratic missed."""
    cube = np.where(there, (z**3)[:, None], 0.0)
    cube = np.where(there, cube - cube.sum(axis=0) / there.sum(axis=0), 0.0)
    new = cube - powers @ np.linalg.solve(fit.gram.sum(axis=0), np.einsum("ksi,ks->i", powers, cube))
    return float((new * missed).sum() ** 2 / (new**2).sum())
