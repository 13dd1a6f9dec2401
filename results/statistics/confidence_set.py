"""The confidence set of the best value of one hyperparameter.

From a few paired seeds. A quadratic curve is fitted (`results.statistics.curve`) over all tried values if it fits them,
else over a window around the best. The confidence set contains the values that a test of the slope does not exclude,
and the tried values beyond the window that are not significantly below the top of the curve.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from results.statistics.anova import no_difference
from results.statistics.bootstrap import resamples, weighted_quantile
from results.statistics.paired import CONFIDENCE, RELATIVE_ZERO
from results.statistics.racing import leader
from results.statistics.slope_tests import NOTHING, Open, bends, neighbours, open_points, open_rivals, open_slopes
from results.statistics.window import LocalFit, Window, local_fits


class Maximum(NamedTuple):
    """The confidence set of the maximiser, as its hull, and the curve behind it. In units of x and of the score."""

    low: float
    """Low end of the hull."""
    high: float
    """High end of the hull."""
    at_low: bool
    """Whether the low end of the searched interval is itself open. Where nothing was tried between it and the next open
    value, `low` reaches it although it is closed."""
    at_high: bool
    """The same for the high end."""
    worse_ends: tuple[bool, bool]
    """Whether the value at the low or high end is itself significantly worse, though those near it may be best: one
    with another formula (ε = 0) than the curve's top, or, without a curve, one beside which nothing was tried. Then an
    open end means "arbitrarily close to it", not the end itself."""
    best: float
    """Where the curve is highest over its window; without a curve the best tried value, NaN without a score."""
    bootstrap_low: float
    """Low end of the percentile interval of the maximiser under resampling of the seeds. With few seeds this interval
    is too short, so [low, high] is the one to rely on. NaN without a curve."""
    bootstrap_high: float
    """Its high end."""
    window: Window | None
    """The values that the curve is fitted to; None without a curve: one seed, fewer than four values, or no window that
    a parabola fits."""
    fitted: tuple[float, ...]
    """[K] the curve at x; NaN outside the window."""
    seeds: int
    """Seeds with a score."""
    effective_seeds: float
    """Seeds that the t quantile counts: fewer than `seeds` where some trained only a few values."""
    seeds_needed: float
    """The least number of seeds that would close both ends with a probability of one half, if the measured curve is the
    true one; infinite where the measured curve does not exclude them at all, or does not bend down significantly
    (without a curve: where an analysis of variance finds no difference)."""


def best_interval(
    x: Sequence[float],
    scores: np.ndarray,
    low: float,
    high: float,
    *,
    apart: Collection[int] = (),
) -> Maximum:
    """Returns the confidence set of the maximum on [low, high] for x [K] and scores [K, R], at `CONFIDENCE`.

    x      on a scale on which the curve resembles a parabola: pass the logarithm of a learning rate
    apart  indices of x with another formula (ε = 0 is A-GEM): never part of the curve; each of them extends the set to
           itself unless it is significantly below the top of the curve

    With a curve: see `slope_tests.open_slopes`; where a curve over all values is in doubt, the set is joined with that
    of a window (`window.local_fits`); tried values outside its window are excluded by a one-sided t test of
    the paired differences to the curve's top. If the curve fits only a window, the set extends to the next tried values
    on both sides, because the curve says nothing beyond. Without a curve: see `slope_tests.open_points`, with the same
    extension. With one seed everything is open.

    Raises ValueError for shapes that do not match, x outside [low, high], or unless low < high.
    """
    points, table = _checked(x, scores, low, high)
    ends = (float(low), float(high))
    local, hull = _search(points, table, ends, apart, careful=True)
    first, seeds = leader(table), int((~np.isnan(table)).any(axis=0).sum())
    if local is None:
        return Maximum(
            *hull[:4],
            # Reached, as nothing was tried between, but not open.
            (hull.low <= ends[0] and not hull.at_low, hull.high >= ends[1] and not hull.at_high),
            math.nan if first is None else float(points[first]),
            *(math.nan, math.nan),
            window=None,
            fitted=(math.nan,) * len(x),
            seeds=seeds,
            effective_seeds=float(seeds),
            seeds_needed=_in_seeds(hull, seeds, seeds, no_difference(table) <= 1 - CONFIDENCE),
        )
    fit, window = local.fit, local.window
    return Maximum(
        *hull[:4],
        _worse_ends(points, table, local, ends, apart),
        fit.best(window.low, window.high),
        *_bootstrap(points[_usual(table, apart)], local, ends),
        window=window,
        fitted=tuple(np.where(local.rows, fit.at(points), math.nan).tolist()),
        seeds=seeds,
        effective_seeds=fit.effective_seeds,
        seeds_needed=_in_seeds(hull, seeds, fit.effective_seeds, bends(fit, CONFIDENCE)),
    )


def confidence_hull(x: Sequence[float], scores: np.ndarray, low: float, high: float) -> tuple[float, float] | None:
    """Returns the hull of a set like `best_interval`'s, or None without a curve.

    It decides what `interval-ci` tries next. Searches are resumed by replay, so it stays as it was for the first of
    them: it neither leaves failed members out of the test of fit nor adds a window where that test is in doubt.
    """
    points, table = _checked(x, scores, low, high)
    local, hull = _search(points, table, (float(low), float(high)), (), careful=False)
    return None if local is None else (hull.low, hull.high)


def _search(
    x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], apart: Collection[int], careful: bool
) -> tuple[LocalFit | None, Open]:
    """Returns the curve, if any, and the set of open values; careful: see `local_fits`."""
    usual, hull = _usual(scores, apart), NOTHING
    fits = tuple(local_fits(x, scores, usual, careful))
    for local in fits:
        hull = hull.joined(_of_the_curve(x, scores, ends, local, usual))
    if not fits:
        hull = open_points(x, scores, ends, CONFIDENCE)
        # A best value that lies apart has no neighbours: the next values follow another formula.
        near = {hull.low, hull.high} - {*x[list(apart)].tolist()}
        hull = hull.to_neighbours(_scored(x, scores), ends) if near else hull
    return next(iter(fits), None), hull


def _of_the_curve(
    x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], local: LocalFit, usual: np.ndarray
) -> Open:
    """Returns the open values by one curve, and those beyond its window."""
    window = local.window
    # Beyond the window only as far as the next tried values: a fitted parabola may not be extrapolated further.
    reach = neighbours(x[usual], window.low, window.high, ends)
    hull = open_slopes(local.fit, *reach, ends, CONFIDENCE)
    hull = hull if window.whole else hull.to_neighbours(_scored(x, scores), ends)
    # The top that `open_slopes` includes may lie beyond the window; the best within it belongs to the set, too.
    best = local.fit.best(window.low, window.high)
    hull = hull.joined(Open(best, best, False, False, 0.0))
    return hull.joined(_rivals(x, scores, local, ~local.rows, ends))


def _scored(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns those of x that have a score."""
    return np.asarray(x[~np.isnan(scores).all(axis=1)])


def _in_seeds(hull: Open, seeds: int, effective: float, shown: bool) -> float:
    """Returns the needed seeds in real seeds: the tests count effective ones, and one more than now is the least.

    shown: whether there is a difference at all, for the seeds to be counted that would tell where it lies.
    """
    if not hull.seeds_needed:
        return 0.0
    if not shown or math.isinf(hull.seeds_needed):
        return math.inf
    # With slack, so that a product such as 7·(1 + 2⁻⁵²) does not need an eighth seed by rounding.
    return float(max(math.ceil(hull.seeds_needed * seeds / effective - 1e-9), seeds + 1))


def _rivals(x: np.ndarray, scores: np.ndarray, local: LocalFit, rows: np.ndarray, ends: tuple[float, float]) -> Open:
    best = local.fit.best(local.window.low, local.window.high)
    return open_rivals(local.fit, best, x, scores, rows, ends, CONFIDENCE)


def _worse_ends(
    x: np.ndarray,
    scores: np.ndarray,
    local: LocalFit,
    ends: tuple[float, float],
    apart: Collection[int],
) -> tuple[bool, bool]:
    measured = ~np.isnan(scores).all(axis=1) & ~_usual(scores, apart)
    low, high = (
        bool((measured & (x == end)).any()) and _rivals(x, scores, local, measured & (x == end), ends) == NOTHING
        for end in ends
    )
    return low, high


def _bootstrap(usual: np.ndarray, local: LocalFit, ends: tuple[float, float]) -> tuple[float, float]:
    """Returns the ends of the percentile interval of the maximiser (Efron & Tibshirani 1993, ch. 13)."""
    fit, (counts, weights) = local.fit, resamples(len(local.fit.seeds))
    reach = neighbours(usual, local.window.low, local.window.high, ends)
    tops = fit.highest(fit.resampled(counts), *reach)
    there = ~np.isnan(tops)  # a resample of too few different seeds may not determine a curve
    low, high = (
        weighted_quantile(tops[there], weights[there], tail) for tail in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    return low, high


def _usual(scores: np.ndarray, apart: Collection[int]) -> np.ndarray:
    """Returns bool [K]: values that have a score and the usual formula."""
    return np.asarray(~np.isnan(scores).all(axis=1) & ~np.isin(np.arange(len(scores)), list(apart)))


def _checked(x: Sequence[float], scores: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns x and scores as arrays. Raises ValueError as `best_interval` promises."""
    points, table = np.asarray(x, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if points.ndim != 1 or table.ndim != 2 or len(points) != len(table):
        raise ValueError(f"x must be [K] and scores [K, R], got shapes {points.shape} and {table.shape}")
    if not low < high:
        raise ValueError(f"low must be < high, got {low} and {high}")
    slack = RELATIVE_ZERO * max(abs(low), abs(high))  # logarithms of the ends may be rounded to just outside
    if len(points) and not (low - slack <= points.min() and points.max() <= high + slack):
        raise ValueError(f"x must lie in [{low}, {high}], got {points.min()} to {points.max()}")
    return np.clip(points, low, high), table
