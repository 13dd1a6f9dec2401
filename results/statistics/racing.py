"""Racing: fair rankings of unequal seeds, and significantly worse points.

Scores are [K, R], one row a point and one column a seed, paired by seed; NaN marks a member that was not trained or
diverged. In a race all points get the first two seeds, and only those not yet `separated` from the best get the next.
"""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.anova import Residuals, left_out, residuals
from results.statistics.paired import RELATIVE_ZERO, Estimate, mean_estimate, student_quantile

# The error rate of a whole race where the noise is equal for all: small enough for that promised for unequal noise.
ERROR_RATE = 0.02


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


def adjusted_means(scores: np.ndarray, over: int | None = None) -> np.ndarray:
    """Returns means [K] as if every point had the leader's seeds, so that points with few seeds rank fairly.

    over: of how many seeds, the first, the leader's mean is, so that tables in which leaders have different numbers of
    seeds can be compared; all that it has if left out.

    The leader's mean over these seeds plus the mean paired difference to it on the common seeds: whether the first
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
    means = float(np.nanmean(scores[first, :over])) + np.nansum(gaps, axis=1) / np.maximum(shared, 1)
    return np.where(shared > 0, means, math.nan)


class Gap(NamedTuple):
    """Distance of a row of a table below another row, or below a curve."""

    row: int
    """The row."""
    below: Estimate
    """The mean paired difference, positive where the row is lower; in the unit of the scores."""
    seeds: float
    """Seeds that it is known from."""
    df: float
    """Degrees of freedom of its error."""


def gaps_to_leader(scores: np.ndarray) -> list[Gap]:
    """Returns how far each row with a score lies below the `leader`, which is one of them.

    A row that has fewer seeds than the leader, as a race leaves it, may have two, from which no error can be told. Its
    error is the larger one of its own and that of the two-way analysis of variance (point + seed), and it has the
    degrees of freedom of the latter where these are more.
    """
    gaps, noise = -differences_to_leader(scores), left_out(scores)
    shared, scored = (~np.isnan(gaps)).sum(axis=1), np.flatnonzero(~np.isnan(scores).all(axis=1))
    found = [Gap(int(k), mean_estimate(gaps[k]), float(shared[k]), float(shared[k]) - 1) for k in scored]
    return [gap if gap.seeds == shared.max() else _with_noise_of_all(gap, noise) for gap in found]


def _with_noise_of_all(gap: Gap, all_cells: Residuals) -> Gap:
    df = all_cells.df + 1.0
    if not gap.seeds or df <= gap.df or math.isnan(all_cells.noise):
        return gap
    error = math.sqrt(2 / gap.seeds) * all_cells.noise
    return gap._replace(below=Estimate(gap.below.value, max(error, np.nan_to_num(gap.below.error))), df=df)


def separated(scores: np.ndarray, looks: int, starters: int | None = None) -> np.ndarray:
    """Returns bool [K]: the points that are significantly worse than the present best; they get no further seed.

    looks     how often this function is called in the whole race: once with two seeds, once with three, …
    starters  how many points began the race; the rows of the table if left out

    A point without a score for the latest seed (the last column with any) has been dropped before, and stays dropped.
    The others are compared with the best of them by one-sided t tests of the paired differences, with Bonferroni's
    correction for starters − 1 comparisons at each of the looks. The standard error of a difference is that of the pair
    itself or, where it is larger, that of all points, from the residuals of their two-way analysis of variance (point +
    seed); each has its own degrees of freedom. A look gets a share of the error rate in proportion to seeds − 1, as the
    last looks can use it best.

    If the noise is normal, independent and equal for all points, the probability that the truly best point is ever
    dropped is at most ERROR_RATE: whichever point leads, starters − 1 comparisons at each look can drop it. A common
    effect of the seed does no harm. If the noise is not equal, or not independent, the error rate is higher. It was
    measured (docs/strategies.md): at most 5 % where the best point is up to three times as noisy as the others.

    Below two seeds nothing is separated. Without any noise every smaller mean is. Raises ValueError for looks < 1, or
    fewer starters than rows.
    """
    if looks < 1:
        raise ValueError(f"looks must be >= 1, got {looks}")
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
        seen = seeds.shape[1]
        level = ERROR_RATE * (seen - 1) / (looks * (looks + 1) / 2)
        out[inside] = _worse(race, level / (began - 1))
    return out


def _worse(race: np.ndarray, alpha: float) -> np.ndarray:
    """Returns bool [K]: the rows of a complete table that are below the best by one-sided tests of level alpha."""
    means, noise, seeds = race.mean(axis=1), residuals(race), race.shape[1]
    error = math.sqrt(2 * noise.pure / noise.spare / seeds)
    own = (race - race[np.argmax(means)]).std(axis=1, ddof=1) / math.sqrt(seeds)
    of_pair, of_all = student_quantile(1 - alpha, seeds - 1), student_quantile(1 - alpha, noise.spare)
    allowed = np.where(own > error, of_pair * own, of_all * error)
    slack = RELATIVE_ZERO * float(np.abs(race).max())  # without noise, equal means must not differ by rounding
    return np.asarray(means.max() - means > allowed + slack)
