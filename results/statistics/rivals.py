"""Which of several settings [K, R], seeds paired, are surely below the best of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from results.statistics.anova import no_difference
from results.statistics.paired import student_tail
from results.statistics.racing import adjusted_means, differences_to_leader, leader
from results.statistics.slope_tests import mean_estimate, seeds_needed


class Rivals(NamedTuple):
    """best: row of the leader, None without a score. worse [K] bool: rows surely below it. rivals: the other rows that
    have a score. seeds_needed: about how many would separate the easiest of all rows.
    """

    best: int | None
    worse: np.ndarray
    rivals: tuple[int, ...]
    seeds_needed: float


def rivals(scores: np.ndarray, level: float) -> Rivals:
    """Every other setting against the leader by a one-sided t test of the paired differences at (1 − level)/(K − 1).

    Whichever setting leads, the truly best one is the leader or a rival with probability `level`. Holm's steps would
    not keep that, because the leader was chosen by the same data. For the same reason these tests alone would find some
    difference among 12 equal settings in one search of five; so they count only where the analysis of variance
    (`no_difference`) finds the settings unequal, which equal ones pass in at most 1 − level of the searches.
    """
    best, worse = leader(scores) if len(scores) else None, np.zeros(len(scores), dtype=bool)
    if best is None:
        return Rivals(None, worse, (), math.inf)
    gaps = -differences_to_leader(scores)
    others = [int(k) for k in np.flatnonzero(~np.isnan(adjusted_means(scores))) if k != best]
    n = [int((~np.isnan(gaps[k])).sum()) for k in others]
    ratios = [_ratio(gaps[k]) for k in others]
    share = 1 - (1 - level) / max(1, len(others))
    if no_difference(scores) <= 1 - level:
        worse[others] = [student_tail(ratio, c - 1) <= 1 - share for ratio, c in zip(ratios, n, strict=True)]
    needed = min((seeds_needed(r, c, share) for r, c in zip(ratios, n, strict=True)), default=math.inf)
    return Rivals(best, worse, tuple(k for k in others if not worse[k]), needed)


def _ratio(gaps: np.ndarray) -> float:
    """t ratio of the mean; 0 where there is none."""
    mean = mean_estimate(gaps)
    if mean is None:
        return 0.0
    return mean.value / mean.error if mean.error > 0 else (math.inf if mean.value > 0 else 0.0)
