"""The points [K, R], paired by seed, that are significantly below the best of them, and those that are not."""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.anova import no_difference
from results.statistics.paired import student_tail
from results.statistics.racing import gaps_to_leader, leader
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
    """The least number of seeds that would separate the row that is easiest to separate; infinite where the analysis of
    variance finds no difference, so that the easiest one is the luck of many."""


def rivals(scores: np.ndarray, level: float) -> Rivals:
    """Compares every other point with the leader by a one-sided t test (`racing.gaps_to_leader`).

    Each test has the error rate (1 − level)/(K − 1). So, whichever point leads, the truly best one is the leader or a
    rival with probability `level`. Holm's correction would not guarantee that, because the same data chose the leader.
    For the same reason these tests alone would find a difference among 12 equal points in one search of five; so they
    count only if the analysis of variance (`no_difference`) rejects that all points are equal, which happens in at most
    1 − level of the searches with equal points.
    """
    best, worse = leader(scores) if len(scores) else None, np.zeros(len(scores), dtype=bool)
    if best is None:
        return Rivals(None, worse, (), math.inf)
    gaps = [gap for gap in gaps_to_leader(scores) if gap.row != best and gap.seeds]
    share, differ = 1 - (1 - level) / max(1, len(gaps)), no_difference(scores) <= 1 - level
    if differ:
        worse[[gap.row for gap in gaps]] = [student_tail(gap.below.ratio, gap.df) <= 1 - share for gap in gaps]
    needed = min((seeds_needed(gap.below.ratio, gap.seeds, share) for gap in gaps), default=math.inf)
    others = tuple(gap.row for gap in gaps if not worse[gap.row])
    return Rivals(best, worse, others, needed if differ else math.inf)
