"""Which values may still be the best one: by the slope of a curve, against its top, or against the best tried value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from results.statistics.curve import Estimate, SeedFit
from results.statistics.paired import student_quantile
from results.statistics.racing import differences_to_leader, leader

MOST_SEEDS = 1000
"""Needs beyond so many seeds count as infinite."""

AT_THE_TOP, TO_AN_END = 0.8, 0.2
"""Parts of the error rate that the test of the slope takes, and the comparison with either end."""

HUGE = 1e8
"""Stands in for an infinite t quantile, whose product with an error of 0 would be NaN."""


class Open(NamedTuple):
    """A hull of values that are open, whether the ends of the searched interval are, and seeds to close those."""

    low: float
    high: float
    at_low: bool
    """Whether the low end is itself open: the hull may reach it only because nothing between was tried."""
    at_high: bool
    seeds_needed: float
    """0 where no end is open."""

    def joined(self, other: Open) -> Open:
        """The hull of both."""
        return Open(
            min(self.low, other.low),
            max(self.high, other.high),
            self.at_low or other.at_low,
            self.at_high or other.at_high,
            max(self.seeds_needed, other.seeds_needed),
        )

    def to_neighbours(self, x: np.ndarray, ends: tuple[float, float]) -> Open:
        """The hull as far as the next values of x [K] beyond it: between tried values nothing is known."""
        low, high = max(x[x < self.low], default=ends[0]), min(x[x > self.high], default=ends[1])
        return self._replace(low=float(low), high=float(high))


NOTHING = Open(math.inf, -math.inf, False, False, 0.0)


def open_slopes(fit: SeedFit, low: float, high: float, ends: tuple[float, float], level: float) -> Open:
    """The x in [low, high] where the fitted curve may be highest; never empty.

    Inverts two t tests over x. At the top of a curve the slope is 0, at an end it does not point inwards (Fieller 1954;
    for a turning point Buonaccorsi & Iyer 1984). And no end lies higher than the top: from x to an end a parabola rises
    by the slope half-way between them times the distance. The second test alone closes the low values of a curve that
    climbs to a plateau, whose slope at the very beginning is ill determined. The first takes `AT_THE_TOP` of the error
    rate, the second `TO_AN_END` for each end: 0.8 in all where the ends lie clearly below the top, at most 1.2 where
    the curve is all but flat. With a surely positive curvature nothing between the ends is open.
    """
    tests = _Tests.of(fit, low, high, level)
    kept = [x for x in (low, high) if tests.open_end(x)]
    at_low, at_high = (end in kept for end in ends)
    bend = fit.curvature()
    if bend.value <= tests.at_top * bend.error:
        cuts = sorted({low, high, *(x for x in tests.boundaries() if low < x < high)})
        kept += [x for pair in pairwise(cuts) if tests.open_inside(sum(pair) / 2) for x in pair]
        kept.append(fit.best(low, high))
    needed = (tests.seeds_to_close(end, level) for end in ends if end in kept and end in (low, high))
    return Open(min(kept), max(kept), at_low, at_high, max(needed, default=0.0))


class _Tests(NamedTuple):
    """The two tests on [low, high], with their t quantiles."""

    fit: SeedFit
    low: float
    high: float
    at_top: float
    to_end: float

    @classmethod
    def of(cls, fit: SeedFit, low: float, high: float, level: float) -> _Tests:
        shares = _shares(level)
        return cls(fit, low, high, *(_quantile(share, fit.effective_seeds) for share in shares))

    def rise(self, x: float, end: float) -> Estimate:
        """The mean slope from x towards an end."""
        slope = self.fit.slope((x + end) / 2)
        return slope if end > x else _minus(slope)

    def inwards(self, end: float) -> Estimate:
        """The slope at an end, away from it."""
        return self.fit.slope(end) if end == self.low else _minus(self.fit.slope(end))

    def open_end(self, end: float) -> bool:
        slope, other = self.inwards(end), self.high if end == self.low else self.low
        return slope.value <= self.at_top * slope.error and self._below(self.rise(end, other))

    def open_inside(self, x: float) -> bool:
        slope = self.fit.slope(x)
        flat = abs(slope.value) <= self.at_top * slope.error
        return flat and all(self._below(self.rise(x, end)) for end in (self.low, self.high))

    def boundaries(self) -> list[float]:
        """Where either test changes its answer."""
        half_way = _roots(self.fit, self.to_end)
        return [*_roots(self.fit, self.at_top), *(2 * x - end for x in half_way for end in (self.low, self.high))]

    def seeds_to_close(self, end: float, level: float) -> float:
        """Of an open end: whichever test needs fewer."""
        other = self.high if end == self.low else self.low
        estimates = (self.inwards(end), self.rise(end, other))
        found = zip(estimates, _shares(level), strict=True)
        return min(_most([one], self.fit.effective_seeds, share) for one, share in found)

    def _below(self, rise: Estimate) -> bool:
        return rise.value <= self.to_end * rise.error


def _shares(level: float) -> tuple[float, float]:
    """Shares of Student's distribution that the two tests take: two-sided at the top, one-sided to either end."""
    error = 1 - level
    return 1 - AT_THE_TOP * error / 2, 1 - TO_AN_END * error


def open_rivals(
    fit: SeedFit,
    best: float,
    x: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    ends: tuple[float, float],
    level: float,
) -> Open:
    """Those of the tried values rows [K] that are not surely below the curve's top at `best`; `NOTHING` if none.

    One-sided t test each: if one of them is truly the best, it is excluded with probability 1 − level, so no
    correction for their number is due. Values with fewer than two seeds stay open.
    """
    scored, found = ~np.isnan(scores).all(axis=1), NOTHING
    for k in np.flatnonzero(rows & scored):
        gap = fit.below_curve(best, scores[k])
        n = min(float((~np.isnan(scores[k])).sum()), fit.effective_seeds)
        if gap is None or gap.value <= _quantile(level, n) * gap.error:
            found = found.joined(_one(x[scored], float(x[k]), ends, gap, n, level))
    return found


def open_points(x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], level: float) -> Open:
    """Without a curve: the tried values that are not surely below the best tried one.

    One-sided t tests of paired differences at (1 − level)/(K − 1), so that the best tried value is open with
    probability `level` whichever of the others looks best. Everything is open below two seeds.
    """
    first = leader(scores)
    gaps = -differences_to_leader(scores)
    scored = np.flatnonzero(~np.isnan(scores).all(axis=1))
    if first is None or (~np.isnan(scores[first])).sum() < 2:
        return Open(*ends, True, True, math.inf)
    share = 1 - (1 - level) / max(1, len(scored) - 1)
    found = NOTHING
    for k in scored:
        n, gap = int((~np.isnan(gaps[k])).sum()), mean_estimate(gaps[k])
        if gap is None or gap.value <= _quantile(share, n) * gap.error:
            found = found.joined(_one(x[scored], float(x[k]), ends, gap, n, share))
    return found


def seeds_needed(ratio: float, n: float, share: float) -> float:
    """Seeds at which a t ratio, measured with n, would reach Student's quantile `share`: the smallest m with
    ratio·√(m/n) >= t(m − 1). Infinite beyond `MOST_SEEDS`. Even odds, if the measured ratio is the true one.

    >>> seeds_needed(2.0, 5, 0.975), seeds_needed(-1.0, 5, 0.975)
    (8.0, inf)
    """
    if not ratio > 0:
        return math.inf
    fits = (m for m in range(2, MOST_SEEDS + 1) if ratio * math.sqrt(m / n) >= student_quantile(share, m - 1))
    return float(next(fits, math.inf))


def mean_estimate(gaps: np.ndarray) -> Estimate | None:
    """Mean of the values [R] that are not NaN and its standard error; None below two."""
    kept = gaps[~np.isnan(gaps)]
    return Estimate(float(kept.mean()), float(kept.std(ddof=1) / math.sqrt(len(kept)))) if len(kept) > 1 else None


def _most(estimates: Iterable[Estimate | None], n: float, share: float) -> float:
    """Seeds needed to make all of them significantly positive."""
    ratios = [e.value / e.error if e is not None and e.error > 0 else 0.0 for e in estimates]
    return max((seeds_needed(ratio, n, share) for ratio in ratios), default=0.0)


def _roots(fit: SeedFit, t: float) -> list[float]:
    """x at which the slope is exactly t standard errors from 0."""
    b1, b2 = fit.beta.tolist()
    (v11, v12), (_, v22) = (fit.covariance() * t * t).tolist()
    a, b, c = b2 * b2 - v22, b1 * b2 - v12, (b1 * b1 - v11) / 4  # a z² + b z + c = 0
    inside = b * b - 4 * a * c
    if inside < 0 or (a == 0 and b == 0):
        return []
    # The root that adds equal signs first: the other way loses all digits where a is small.
    q = -(b + math.copysign(math.sqrt(inside), b)) / 2
    zs = ([q / a] if a != 0 else []) + ([c / q] if q != 0 else [])
    return [fit.centre + fit.scale * z for z in zs]


def _one(x: np.ndarray, at: float, ends: tuple[float, float], gap: Estimate | None, n: float, share: float) -> Open:
    """One open value among those with a score, x; if it is the last, so is everything up to the end of the interval."""
    at_low, at_high = bool(at <= x.min()), bool(at >= x.max())
    needed = _most([gap], n, share) if at_low or at_high else 0.0
    return Open(ends[0] if at_low else at, ends[1] if at_high else at, at_low, at_high, needed)


def _minus(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, estimate.error)


def _quantile(share: float, seeds: float) -> float:
    return min(HUGE, student_quantile(share, seeds - 1))
