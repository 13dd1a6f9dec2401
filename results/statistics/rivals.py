"""The points [K, R], paired by seed, that are significantly below the best of them, and those that are not."""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.anova import no_difference
from results.statistics.paired import mean_estimate, student_tail
from results.statistics.racing import adjusted_means, differences_to_leader, leader
from results.statistics.slope_tests import seeds_needed


class Rivals(NamedTuple):
    """The leader of several points and its rivals, which are not significantly below it."""

    best: int | None
    """Row of the leader; None without a score."""
    worse: np.ndarray
    """[K] bool: rows significantly below the leader."""
    rivals: tuple[int, ...]
    """The other rows that have a score."""
    seeds_needed: float
    """About how many seeds would separate the row that is easiest to separate."""


def rivals(scores: np.ndarray, level: float) -> Rivals:
    """Compares every other point with the leader by a one-sided t test of the paired differences.

    Each test has the error rate (1 − level)/(K − 1). So, whichever point leads, the truly best one is the leader or a
    rival with probability `level`. Holm's correction would not guarantee that, because the same data chose the leader.
    For the same reason these tests alone would find a difference among 12 equal points in one search of five; so they
    count only if the analysis of variance (`no_difference`) rejects that all points are equal, which happens in at most
    1 − level of the searches with equal points.
    """
    best, worse = leader(scores) if len(scores) else None, np.zeros(len(scores), dtype=bool)
    if best is None:
        return Rivals(None, worse, (), math.inf)
    gaps = -differences_to_leader(scores)
    others = [int(k) for k in np.flatnonzero(~np.isnan(adjusted_means(scores))) if k != best]
    n = [int((~np.isnan(gaps[k])).sum()) for k in others]
    ratios = [mean_estimate(gaps[k]).ratio for k in others]
    share = 1 - (1 - level) / max(1, len(others))
    if no_difference(scores) <= 1 - level:
        worse[others] = [student_tail(ratio, c - 1) <= 1 - share for ratio, c in zip(ratios, n, strict=True)]
    needed = min((seeds_needed(r, c, share) for r, c in zip(ratios, n, strict=True)), default=math.inf)
    return Rivals(best, worse, tuple(k for k in others if not worse[k]), needed)
