"""Points with unequal numbers of seeds: a fair ranking, and which of them need no further seed.

Scores are [K, R], one row a point and one column a seed, paired by seed; NaN marks a member that was not trained or
diverged. In a race all points get the first two seeds, and only those not yet `separated` from the best get the next.
"""

import math

import numpy as np

from results.statistics.anova import residuals
from results.statistics.paired import RELATIVE_ZERO, student_quantile


def leader(scores: np.ndarray) -> int | None:
    """Returns the row with the highest mean among those with the most seeds; the first of equals, None if all are NaN.

    >>> leader(np.array([[9.0, np.nan], [1.0, 2.0], [2.0, 2.0]]))
    2
    """
    counts = (~np.isnan(scores)).sum(axis=1)
    if not counts.any():
        return None
    means = np.nansum(scores, axis=1) / np.maximum(counts, 1)
    return int(np.argmax(np.where(counts == counts.max(), means, -np.inf)))


def differences_to_leader(scores: np.ndarray) -> np.ndarray:
    """Returns scores − those of the `leader`, seed by seed [K, R]; NaN where either is missing."""
    first = leader(scores)
    return np.full(scores.shape, math.nan) if first is None else scores - scores[first]


def adjusted_means(scores: np.ndarray) -> np.ndarray:
    """Returns means [K] as if every point had the leader's seeds, so that points with few seeds rank fairly.

    The leader's mean over all its seeds plus the mean paired difference to it on the common seeds: whether the first
    seeds were easy or hard cancels out. For a complete table these are the plain means. NaN without a seed in common
    with the leader.

    >>> adjusted_means(np.array([[5.0, 5.0, 1.0], [4.0, 5.0, np.nan]])).round(3).tolist()  # plain: 3.667 and 4.5
    [3.667, 3.167]
    """
    first = leader(scores)
    if first is None:
        return np.full(len(scores), math.nan)
    gaps = differences_to_leader(scores)
    shared = (~np.isnan(gaps)).sum(axis=1)
    means = float(np.nanmean(scores[first])) + np.nansum(gaps, axis=1) / np.maximum(shared, 1)
    return np.where(shared > 0, means, math.nan)


def separated(scores: np.ndarray, looks: int, level: float = 0.05, starters: int | None = None) -> np.ndarray:
    """Returns bool [K]: the points that are significantly worse than the present best; they get no further seed.

    looks     how often this function is called in the whole race
    level     the error rate of the whole race
    starters  how many points began the race; the rows of the table if left out

    A point without a score for the latest seed (the last column with any) has been dropped before, and stays dropped.
    The others are compared with the best of them by a one-sided t test with the residual variance of their two-way
    analysis of variance (point + seed), with Bonferroni's correction for starters − 1 comparisons at each of the looks.

    If the noise is normal, independent and equal for all points, the probability that the truly best point is ever
    dropped is at most `level`: whichever point leads, each of the (starters − 1)·looks comparisons drops the true best
    with probability at most level/((starters − 1)·looks). With fewer rows than points that began the race, the
    correction needs `starters`. A common effect of the seed does no harm. If the noise of some points is larger than
    that of others, the error rate may be higher.

    Below two seeds nothing is separated. Without any noise every smaller mean is. Raises ValueError for looks < 1, a
    level outside (0, 1), or fewer starters than rows.
    """
    if looks < 1 or not 0 < level < 1:
        raise ValueError(f"looks must be >= 1 and level in (0, 1), got {looks} and {level}")
    began = len(scores) if starters is None else starters
    if began < len(scores):
        raise ValueError(f"starters must be >= the {len(scores)} points of the table, got {began}")
    seeds = scores[:, ~np.isnan(scores).all(axis=0)]
    # Only points still in the race have a score of the latest seed.
    inside = ~np.isnan(seeds[:, -1]) if seeds.size else np.zeros(len(scores), dtype=bool)
    # A member that diverged leaves its row incomplete: the analysis of variance uses the seeds that all rows have.
    race = seeds[inside]
    race = race[:, ~np.isnan(race).any(axis=0)]
    out = ~inside
    if min(race.shape) >= 2:
        out[inside] = _worse(race, level / ((began - 1) * looks))
    return out


def _worse(race: np.ndarray, alpha: float) -> np.ndarray:
    """Returns bool [K]: the rows of a complete table that are below the best by a one-sided test of level alpha."""
    means, noise = race.mean(axis=1), residuals(race)
    error = math.sqrt(2 * noise.pure / noise.spare / race.shape[1])
    slack = RELATIVE_ZERO * float(np.abs(race).max())  # without noise, equal means must not differ by rounding
    return np.asarray(means.max() - means > student_quantile(1 - alpha, noise.spare) * error + slack)
