"""Statistics of points: spread, comparison with a baseline, bootstrap ranking.

Scores are [K, R], one row a point and one column a seed. Seeds are paired: the same seed means the same data for every
point. NaN marks a member that was not trained or diverged.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from results.statistics.anova import residual_table
from results.statistics.bootstrap import DRAWS, FEWEST_SEEDS, resamples
from results.statistics.paired import (
    CONFIDENCE,
    RELATIVE_ZERO,
    SEED,
    holm,
    mean_estimate,
    sign_flip_p,
    smallest_sign_flip_p,
    student_quantile,
)
from results.statistics.racing import differences_to_leader


class Spread(NamedTuple):
    """Spread of a point over its seeds, in the unit of the values. NaN where n is too small."""

    n: int
    """Seeds with a value."""
    mean: float
    """Their mean."""
    std: float
    """Sample standard deviation (ddof 1), which estimates the spread of seeds that were not tried."""
    population_std: float
    """Population standard deviation (ddof 0): the spread of these seeds, which the paper prints after ±."""
    low: float
    """Low end of Student's t interval of the mean; exact for normal noise."""
    high: float
    """Its high end."""
    bootstrap_low: float
    """Low end of the BCa bootstrap interval of the mean over the seeds; NaN below ten, where it is too short."""
    bootstrap_high: float
    """Its high end."""


class PairedTest(NamedTuple):
    """Difference of a point to the baseline, over their common seeds, and its test."""

    n: int
    """Seeds that both have."""
    mean: float
    """Mean difference."""
    error: float
    """Standard error of the mean difference (ddof 1)."""
    p: float
    """Two-sided sign-flip test, see `paired.sign_flip_p`; NaN without a common seed."""
    p_holm: float
    """The same after Holm's correction over all points compared."""
    smallest_p: float
    """The smallest p that n pairs can reach at all."""
    smallest_p_holm: float
    """The smallest p_holm that n pairs can reach: smallest_p times the number of comparisons, at most 1."""


def spread(values: Sequence[float]) -> Spread:
    """Returns mean, standard deviations and intervals at `CONFIDENCE` over the seeds; NaN values are left out.

    t interval: mean ± t(n−1)·s/√n. Bootstrap, from `FEWEST_SEEDS` on: bias-corrected and accelerated (Efron 1987) with
    9,999 resamples of a fixed generator. One value has no spread: std and intervals are NaN. Equal values have the
    spread 0, and every interval is that value, which says nothing about seeds that were not tried.

    >>> one = spread([1.0, 2.0, 3.0])
    >>> one.n, one.mean, one.std, round(one.low, 3), round(one.high, 3)
    (3, 2.0, 1.0, -0.484, 4.484)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[~np.isnan(finite)]
    n = len(finite)
    if n < 2:
        mean = float(finite[0]) if n else math.nan
        return Spread(n, mean, math.nan, 0.0 if n else math.nan, *4 * (math.nan,))
    mean = float(finite.mean())
    # The bootstrap's acceleration is 0/0 for equal values.
    if np.ptp(finite) <= RELATIVE_ZERO * np.abs(finite).max():
        return Spread(n, mean, 0.0, 0.0, *4 * (mean,))
    # Divided by the largest one, because squares and cubes of tiny values underflow.
    unit = float(np.abs(finite).max())
    std, population = (unit * float((finite / unit).std(ddof=ddof)) for ddof in (1, 0))
    half = student_quantile((1 + CONFIDENCE) / 2, n - 1) * std / math.sqrt(n)
    return Spread(n, mean, std, population, mean - half, mean + half, *_bca(finite, mean, std))


def within_errors(scores: np.ndarray) -> np.ndarray:
    """Returns the standard errors [K] of the means of points [K, R] within seeds; NaN below two seeds or two points.

    Without what seeds add to all points alike, which no comparison of points sees: s/√n of the scores minus their
    seed's effect (Cousineau 2005), times √(K/(K − 1)), as removing the effects makes them too short (Morey 2008).

    >>> within_errors(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])).round(3).tolist()
    [0.0, 0.0]
    """
    left = residual_table(scores)
    counts, points = (~np.isnan(left)).sum(axis=1), int((~np.isnan(left)).any(axis=1).sum())
    if points < 2:
        return np.full(len(scores), math.nan)
    squares = np.nansum(left**2, axis=1) * points / (points - 1)
    return np.where(counts > 1, np.sqrt(squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1)), math.nan)


def _bca(values: np.ndarray, mean: float, std: float) -> tuple[float, float]:
    if len(values) < FEWEST_SEEDS:
        return math.nan, math.nan
    from scipy.stats import bootstrap

    # Of the standardised values, because squares and cubes of tiny ones underflow: it moves and stretches with them.
    drawn = bootstrap(((values - mean) / std,), np.mean, confidence_level=CONFIDENCE, rng=np.random.default_rng(SEED))
    low, high = (mean + std * float(edge) for edge in drawn.confidence_interval)
    return low, high


def against(scores: np.ndarray, baseline: Sequence[float]) -> tuple[PairedTest, ...]:
    """Compares every point [K, R] with one baseline [R] (such as ε = 0), paired by seed; in the order of the rows.

    Holm's correction counts the points that share a seed with the baseline, so the baseline's own row must be left out.
    With few seeds no p can be small: look at `smallest_p_holm` before reading a large p as "no difference".

    >>> one, two = against(np.array([[2.0, 3.0, 5.0], [1.0, 0.0, 3.0]]), [0.0, 1.0, 2.0])
    >>> one.n, round(one.mean, 3), one.p, one.p_holm, one.smallest_p, one.smallest_p_holm
    (3, 2.333, 0.25, 0.5, 0.25, 0.5)
    """
    gaps = np.asarray(scores, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    finite = [row[~np.isnan(row)] for row in gaps]
    raw = [sign_flip_p(row.tolist()) if len(row) else math.nan for row in finite]
    compared = sum(len(row) > 0 for row in finite)
    return tuple(_against(row, p, p_holm, compared) for row, p, p_holm in zip(finite, raw, holm(raw), strict=True))


def probability_best(scores: np.ndarray) -> np.ndarray:
    """Returns [K], which sums to 1: the share of bootstrap resamples in which each point [K, R] has the highest mean.

    Every resample draws the same seeds for all points; in a tie the points share the resample. Where cells are missing,
    means are compared as in `racing.adjusted_means`: by differences to the leader on common seeds. In a resample
    without any of those, a point cannot win. A point without a seed in common with the leader gets 0.

    This is the share of resamples, not the probability that the point is truly the best: below `FEWEST_SEEDS` it is
    much too high for the winner, so verdicts and reports do not use it there. With one seed it is 1 for whichever point
    happened to be first.

    >>> probability_best(np.array([[1.0, 4.0], [2.0, 2.0], [0.0, 0.0]])).tolist()
    [0.75, 0.25, 0.0]
    """
    gaps = differences_to_leader(scores)
    if not gaps.size:
        return np.zeros(len(gaps))
    counts, weights = resamples(gaps.shape[1])
    present = ~np.isnan(gaps)
    drawn = counts @ present.T
    with np.errstate(invalid="ignore"):
        means = np.where(drawn > 0, (counts @ np.where(present, gaps, 0.0).T) / drawn, -np.inf)
    top = means.max(axis=1, keepdims=True)
    # With slack, so that equal means tie although their sums were rounded differently.
    slack = RELATIVE_ZERO * np.abs(np.where(present, gaps, 0.0)).max(initial=0.0)
    first = np.isfinite(means) & (means >= top - slack)
    voted = first.any(axis=1)
    shares = first[voted] / first[voted].sum(axis=1, keepdims=True)
    total = weights[voted].sum()
    return weights[voted] @ shares / total if total > 0 else np.zeros(len(gaps))


def share_of_luck(points: int) -> float:
    """Returns the share of resamples that the best of equal points has by `probability_best`, with many seeds.

    The means of a resample deviate from those of the seeds as these do from the truth: `DRAWS` of a fixed generator.

    >>> share_of_luck(1), round(share_of_luck(11), 1)
    (1.0, 0.4)
    """
    first, again = np.random.default_rng([SEED, points]).standard_normal((2, DRAWS, points))
    return float((first.argmax(axis=1) == (first + again).argmax(axis=1)).mean())


def _against(row: np.ndarray, p: float, p_holm: float, compared: int) -> PairedTest:
    n = len(row)
    smallest = smallest_sign_flip_p(n) if n else math.nan
    return PairedTest(n, *mean_estimate(row), p, p_holm, smallest, min(1.0, compared * smallest) if n else math.nan)
