"""Tests of the values that may be the best.

By the slope of a curve, against its top, or against the best tried value.
"""

import math
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from results.statistics.anova import no_difference
from results.statistics.curve import SeedFit
from results.statistics.paired import Estimate, student_quantile, student_tail
from results.statistics.racing import Gap, gaps_to_leader, leader

MOST_SEEDS = 1000
"""A need of more seeds counts as infinite."""

AT_THE_TOP, TO_AN_END = 0.8, 0.2
"""Parts of the error rate for the test of the slope, and for the comparison with each end."""

HUGE = 1e8
"""Replaces an infinite t quantile, whose product with an error of 0 would be NaN."""


class Open(NamedTuple):
    """The hull of the open values, which may be the best: no test excludes them."""

    low: float
    """Its low end."""
    high: float
    """Its high end."""
    at_low: bool
    """Whether the low end of the searched interval is itself open: the hull may also reach it because nothing between
    was tried."""
    at_high: bool
    """The same for the high end."""
    seeds_needed: float
    """About how many seeds would close the open ends; 0 where no end is open."""

    def joined(self, other: "Open") -> "Open":
        """Returns the hull of both."""
        return Open(
            min(self.low, other.low),
            max(self.high, other.high),
            self.at_low or other.at_low,
            self.at_high or other.at_high,
            max(self.seeds_needed, other.seeds_needed),
        )

    def to_neighbours(self, x: np.ndarray, ends: tuple[float, float]) -> "Open":
        """Returns the hull extended to the next values of x [K] beyond it: between tried values nothing is known."""
        low, high = neighbours(x, self.low, self.high, ends)
        return self._replace(low=low, high=high)


def neighbours(x: np.ndarray, low: float, high: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Returns the next of the values x [K] below low and above high; an end of the interval where there is none."""
    return float(max(x[x < low], default=ends[0])), float(min(x[x > high], default=ends[1]))


NOTHING = Open(math.inf, -math.inf, False, False, 0.0)
"""No open value; neutral for `joined`."""


def open_slopes(fit: SeedFit, low: float, high: float, ends: tuple[float, float], level: float) -> Open:
    """Returns the x in [low, high] where the fitted curve may be highest; never empty, and without `seeds_needed`.

    Inverts two t tests over x. First, the slope at the top of a curve is 0, and at an end it does not point inwards
    (Fieller 1954; for a turning point Buonaccorsi & Iyer 1984). Second, no end is higher than the top: from x to an end
    a parabola rises by the slope half-way between them times the distance. Only the second test closes the low values
    of a curve that rises to a plateau, because the slope at its very beginning is poorly determined.

    The first test has `AT_THE_TOP` of the error rate, the second `TO_AN_END` for each end: 0.8 in all if the ends are
    clearly below the top, at most 1.2 if the curve is almost flat. If the curvature is significantly positive, nothing
    between the ends is open.
    """
    tests = _Tests(fit, low, high, *(_quantile(share, fit.effective_seeds) for share in _shares(level)))
    kept = [x for x in (low, high) if tests.open_end(x)]
    at_low, at_high = (end in kept for end in ends)
    # A curve that certainly bends upwards has no top inside.
    if fit.curvature().not_above_zero(tests.at_top):
        # Both tests change only at their roots, so one x between two neighbouring roots decides for all between them.
        cuts = sorted({low, high, *(x for x in tests.boundaries() if low < x < high)})
        kept += [x for pair in pairwise(cuts) if tests.open_inside(sum(pair) / 2) for x in pair]
        kept.append(fit.best(low, high))
    return Open(min(kept), max(kept), at_low, at_high, 0.0)


class _Tests(NamedTuple):
    """The two tests on [low, high], with their t quantiles."""

    fit: SeedFit
    low: float
    high: float
    at_top: float
    """Quantile of the test of the slope."""
    to_end: float
    """Quantile of the comparison with an end."""

    def rise(self, x: float, end: float) -> Estimate:
        """Returns the mean slope from x towards an end."""
        slope = self.fit.slope((x + end) / 2)
        return slope if end > x else slope.negative()

    def inwards(self, end: float) -> Estimate:
        """Returns the slope at an end, pointing inwards."""
        return self.fit.slope(end) if end == self.low else self.fit.slope(end).negative()

    def open_end(self, end: float) -> bool:
        """Returns whether an end is open: neither test says that something inside, or the other end, is higher."""
        slope, other = self.inwards(end), self.high if end == self.low else self.low
        return slope.not_above_zero(self.at_top) and self.rise(end, other).not_above_zero(self.to_end)

    def open_inside(self, x: float) -> bool:
        """Returns whether an x between the ends is open."""
        slope = self.fit.slope(x)
        flat = abs(slope.value) <= self.at_top * slope.error
        return flat and all(self.rise(x, end).not_above_zero(self.to_end) for end in (self.low, self.high))

    def boundaries(self) -> list[float]:
        """Returns the x at which either test changes its answer."""
        half_way = _roots(self.fit, self.to_end)
        return [*_roots(self.fit, self.at_top), *(2 * x - end for x in half_way for end in (self.low, self.high))]


def _shares(level: float) -> tuple[float, float]:
    """Returns the shares of Student's distribution for the two tests: two-sided at the top, one-sided to an end."""
    return 1 - AT_THE_TOP * (1 - level) / 2, 1 - TO_AN_END * (1 - level)


def open_rivals(
    fit: SeedFit,
    best: float,
    x: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    ends: tuple[float, float],
    level: float,
) -> Open:
    """Returns those of the tried values, rows [K], that are not significantly below the curve's top at `best`.

    One-sided t tests: if one of the values is truly the best, it is excluded with probability 1 − level, so their
    number needs no correction. Values with fewer than two seeds stay open. `NOTHING` if none is open.
    """
    counts = (~np.isnan(scores)).sum(axis=1)
    tried = [(int(k), min(float(counts[k]), fit.effective_seeds)) for k in np.flatnonzero(rows & (counts > 0))]
    gaps = [Gap(k, fit.below_curve(best, scores[k]), n, n - 1) for k, n in tried]
    return _open_gaps(np.where(counts > 0, x, math.nan), gaps, ends, level)


def open_points(x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], level: float) -> Open:
    """Returns, without a curve, the tried values that are not significantly below the best tried one.

    One-sided t tests (`racing.gaps_to_leader`) with the error rate (1 − level)/(K − 1), so that the truly best of the
    tried values is open with probability `level` whichever of them leads. Below two seeds everything is open.
    """
    first = leader(scores)
    if first is None or (~np.isnan(scores[first])).sum() < 2:  # without a measure of noise no test is possible
        return Open(*ends, True, True, math.inf)
    gaps = gaps_to_leader(scores)
    share = 1 - (1 - level) / max(1, len(gaps) - 1)
    return _open_gaps(np.where(np.isnan(scores).all(axis=1), math.nan, x), gaps, ends, share)


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


def _open_gaps(x: np.ndarray, gaps: Iterable[Gap], ends: tuple[float, float], share: float) -> Open:
    """Returns the hull of those values whose gap to the top is not significant; `NOTHING` if none is open.

    x      [K] the tried values, NaN without a score: the outermost one, if open, opens everything up to the end of the
           interval
    gaps   those to test
    share  of Student's distribution, for the quantile of the test
    """
    hull = NOTHING
    for gap in gaps:
        if gap.below.not_above_zero(_quantile(share, gap.df + 1)):
            at = float(x[gap.row])
            at_low, at_high = bool(at <= np.nanmin(x)), bool(at >= np.nanmax(x))
            needed = seeds_needed(gap.below.ratio, gap.seeds, share) if at_low or at_high else 0.0
            hull = hull.joined(Open(ends[0] if at_low else at, ends[1] if at_high else at, at_low, at_high, needed))
    return hull


def seeds_needed(ratio: float, n: float, share: float) -> float:
    """Returns the seeds at which a t ratio, measured with n, would reach Student's quantile `share`.

    The smallest m with ratio·√(m/n) >= t(m − 1); infinite beyond `MOST_SEEDS`. If the measured ratio is the true one, m
    seeds reach the quantile with a probability of one half.

    >>> seeds_needed(2.0, 5, 0.975), seeds_needed(-1.0, 5, 0.975)
    (8.0, inf)
    """
    if not ratio > 0:
        return math.inf
    enough = np.flatnonzero(ratio * np.sqrt(np.arange(2, MOST_SEEDS + 1) / n) >= _quantiles(share))
    return float(enough[0] + 2) if len(enough) else math.inf


@cache
def _quantiles(share: float) -> np.ndarray:
    """Returns the quantiles of Student's t for 2 … `MOST_SEEDS` seeds; read-only, as a search asks for them often."""
    found = np.array([student_quantile(share, m - 1) for m in range(2, MOST_SEEDS + 1)])
    found.setflags(write=False)
    return found


def _roots(fit: SeedFit, t: float) -> list[float]:
    """Returns the x at which the slope is exactly t standard errors from 0."""
    b1, b2 = fit.beta.tolist()
    (v11, v12), (_, v22) = (fit.covariance() * t * t).tolist()
    a, b, c = b2 * b2 - v22, b1 * b2 - v12, (b1 * b1 - v11) / 4  # a z² + b z + c = 0
    inside = b * b - 4 * a * c
    if inside < 0 or (a == 0 and b == 0):
        return []
    # The root that adds numbers of equal sign comes first: the usual formula loses all digits where a is small.
    q = -(b + math.copysign(math.sqrt(inside), b)) / 2
    zs = ([q / a] if a != 0 else []) + ([c / q] if q != 0 else [])
    return [fit.centre + fit.scale * z for z in zs]


def _quantile(share: float, seeds: float) -> float:
    """Returns the quantile of Student's t with seeds − 1 degrees of freedom, finite even for one seed."""
    return min(HUGE, student_quantile(share, seeds - 1))
