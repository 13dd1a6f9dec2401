"""The confidence set of the best value of one hyperparameter, from a few paired seeds.

One model says where the curve is highest, how it runs, and where its top may lie: a Gaussian process through all scores
(`results.statistics.gaussian_process`). The set has most places of the top in joint draws of the curve, and every tried
value that a paired test does not put below the best tried one.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from results.statistics.anova import lack_of_fit, no_difference
from results.statistics.curve import FEWEST_POINTS, fit_by_seed
from results.statistics.gaussian_process import SAME, Process
from results.statistics.outliers import outliers, without
from results.statistics.paired import CONFIDENCE, RELATIVE_ZERO, mean_estimate, student_quantile
from results.statistics.racing import adjusted_means, gaps_to_leader, leader
from results.statistics.slope_tests import HUGE, MOST_SEEDS, Open, open_points

PLACES = 100
"""Steps of the axis, at whose ends the curve is computed, beside the tried values."""

TICKS = 1000
"""Steps of the axis among which the top is sought: the values that a search can name."""

DRAWS = 2048
"""Joint draws of the curve."""

DRAWN = 0.95
"""Share of the draws whose tops the set has, in the middle; see docs/coverage.md for what it then covers."""


class Curve(NamedTuple):
    """The curve through all scores, in the unit of the score, at places of the axis."""

    places: np.ndarray
    """[C] ascending."""
    mean: np.ndarray
    """[C] expected score of a point with every seed."""
    error: np.ndarray
    """[C] standard error of the paired score: the effects of the seeds, which all places share, are not in it."""
    best_share: np.ndarray
    """[C] share of the draws in which the curve is highest there."""
    largest_difference: float
    """By how much the highest value is above the lowest one at most, with `CONFIDENCE`."""
    largest_loss: float
    """By how much the highest value is above any in the set at most, with `CONFIDENCE`."""


class Maximum(NamedTuple):
    """The confidence set of the maximiser, as its hull, and the curve behind it. In units of x and of the score."""

    low: float
    """Low end of the hull."""
    high: float
    """High end of the hull."""
    at_low: bool
    """Whether the low end of the searched interval, or values arbitrarily close to it, may be the best. Without a curve
    `low` may reach that end although it is closed, as nothing was tried between it and the next open value."""
    at_high: bool
    """The same for the high end."""
    worse_ends: tuple[bool, bool]
    """Whether the value at the low or high end is itself significantly worse, though those near it may be best: one
    with another formula (ε = 0) than the curve's top, or, without a curve, one beside which nothing was tried. Then an
    open end means "arbitrarily close to it", not the end itself."""
    best: float
    """Where the curve is highest among `eligible` places; without one the best tried value, NaN without a score."""
    seeds: int
    """Seeds with a score."""
    seeds_needed: float
    """About how many seeds would close both ends, if the measured curve is the true one; 0 where both are closed,
    infinite where the measured curve does not exclude them at all."""
    share: float = 1.0
    """Part of the searched interval that the hull takes."""
    curve: Curve | None = None
    """None without a curve: one seed, or too few values."""
    parabola_p: float = math.nan
    """p-value of the test that a parabola runs through the means of all usual values; NaN where it cannot be tested."""


def best_interval(
    x: Sequence[float],
    scores: np.ndarray,
    low: float,
    high: float,
    *,
    apart: Collection[int] = (),
) -> Maximum:
    """Returns the confidence set of the maximum on [low, high] for x [K] and scores [K, R], at `CONFIDENCE`.

    x: ascending.
    apart: indices of x with another formula (ε = 0 is A-GEM), which are no part of the curve; each of them extends the
    set to itself where it may be the best. Members that lie far off, which may have failed, do not count for the curve.
    Without a curve: see `slope_tests.open_points`, extended to the next tried values on both sides. With one seed
    everything is open.

    Raises ValueError for shapes that do not match, x outside [low, high], or unless low < high.
    """
    points, table = _checked(x, scores, low, high)
    ends = (float(low), float(high))
    scored = ~np.isnan(table).all(axis=1)
    others = np.isin(np.arange(len(table)), list(apart)) & scored
    usual, seeds = scored & ~others, int((~np.isnan(table)).any(axis=0).sum())
    process = fit_curve((points[usual, None] - ends[0]) / (ends[1] - ends[0]), table[usual])
    if process is None:
        return _without_curve(points, table, ends, others, seeds)
    return _of_curve(process, points, table, ends, usual, others)


def fit_curve(x: np.ndarray, scores: np.ndarray) -> Process | None:
    """Returns the curve through scores [K, R] at places x [K, d] of [0, 1]^d; None where they determine none.

    There must be `FEWEST_POINTS` with a score for each axis, and two seeds. Members that lie far off do not count.
    """
    scored = ~np.isnan(scores)
    if len(np.unique(x[scored.any(axis=1)], axis=0)) < FEWEST_POINTS * x.shape[1] or scored.any(axis=0).sum() < 2:
        return None
    return Process.fit(x, without(scores, outliers(scores)))


def not_below(scores: np.ndarray) -> np.ndarray:
    """Returns bool [K]: the rows that no one-sided paired t test puts below the `leader`, which is one of them."""
    open_rows = np.zeros(len(scores), dtype=bool)
    for gap in gaps_to_leader(scores):
        open_rows[gap.row] = gap.below.not_above_zero(min(HUGE, student_quantile(CONFIDENCE, gap.df)))
    return open_rows


def eligible(tried: np.ndarray, open_rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns bool [C]: the places that can be named for tried values [K], ascending, and which of these are open.

    Not a tried value that a paired test puts below the best one, nor any place between two such: beside a cliff the
    curve, which is smooth, is highest where every measurement was worse. All places where no value is open.
    """
    if not open_rows.any():
        return np.ones(len(places), dtype=bool)
    right = np.searchsorted(tried, places).clip(max=len(tried) - 1)
    left = np.where(tried[right] == places, right, (right - 1).clip(min=0))
    return np.asarray(open_rows[left] | open_rows[right])


def _of_curve(
    process: Process, x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], usual: np.ndarray, apart: np.ndarray
) -> Maximum:
    """Returns the set by the curve and the paired tests."""
    tried, width = x[usual], ends[1] - ends[0]

    def on_axis(places: np.ndarray) -> np.ndarray:
        return (places[:, None] - ends[0]) / width

    places = np.unique(np.concatenate([np.linspace(*ends, PLACES + 1), tried]))
    drawn = process.draws(on_axis(places), DRAWS)
    tops, ticks = drawn.argmax(axis=0), _ticks(ends, tried)
    tested = not_below(scores)
    places_to_name = ticks[eligible(tried, tested[usual], ticks)]
    best = float(places_to_name[int(np.argmax(process.mean(on_axis(places_to_name)).round(SAME)))])
    hull = _hull(tried, _central(places[tops]), [best, *x[tested].tolist()], ends, x[apart])
    inside, highest = drawn[(places >= hull.low) & (places <= hull.high)], drawn.max(axis=0)
    level, loss = (float(np.quantile(highest - some.min(axis=0), CONFIDENCE)) for some in (drawn, inside))
    far, above = _far_apart(scores, usual, apart), drawn - drawn[np.searchsorted(places, tried)].mean(axis=0)
    quadratic, seeds = fit_by_seed(tried, scores[usual]), int((~np.isnan(scores)).any(axis=0).sum())
    to_close = (
        _seeds_to_close(process, on_axis(np.array([best, end])), seeds)
        for end, is_open in zip(ends, (hull.at_low, hull.at_high), strict=True)
        if is_open
    )
    # Of an end that the set does not reach there is nothing to leave out.
    worse = (
        bool(reached and (apart & (x == end)).any() and not tested[apart & (x == end)].any())
        for end, reached in zip(ends, (hull.low <= ends[0], hull.high >= ends[1]), strict=True)
    )
    return Maximum(
        *hull[:4],
        worse_ends=(next(worse), next(worse)),
        best=best,
        seeds=seeds,
        seeds_needed=max(to_close, default=0.0),
        share=(hull.high - hull.low) / width,
        curve=Curve(
            places,
            process.mean(on_axis(places)),
            above.std(axis=1),
            np.bincount(tops, minlength=len(places)) / len(tops),
            max(level, far),
            max(loss, far if any(tested[apart]) else 0.0),
        ),
        parabola_p=math.nan if quadratic is None else lack_of_fit(tried, scores[usual], quadratic),
    )


def _ticks(ends: tuple[float, float], tried: np.ndarray) -> np.ndarray:
    """Returns the values that a search can name, ascending: tried ones, and thousandths of the axis between them.

    With twelve digits: a thousand times a thousandth may not be 1.
    """
    even = [float(f"{ends[0] + (ends[1] - ends[0]) * number / TICKS:.12g}") for number in range(TICKS + 1)]
    ticks = np.unique(np.concatenate([even, tried]))
    return np.asarray(ticks[(ticks >= tried.min()) & (ticks <= tried.max())])


def _hull(
    tried: np.ndarray,
    central: tuple[float, float],
    values: Sequence[float],
    ends: tuple[float, float],
    apart: np.ndarray,
) -> Open:
    """Returns the hull of open values, and of the central interval of the tops.

    Where an end of that interval lies between two tried values only the model speaks for it: the hull has the whole
    gap. A gap up to a value with another formula, one of `apart`, does not open that value.
    """
    low = min(*values, max(tried[tried <= central[0]], default=ends[0]))
    high = max(*values, min(tried[tried >= central[1]], default=ends[1]))
    at_low = low <= ends[0] and (ends[0] not in apart or min(*values, central[0]) <= ends[0])
    at_high = high >= ends[1] and (ends[1] not in apart or max(*values, central[1]) >= ends[1])
    return Open(float(low), float(high), bool(at_low), bool(at_high), 0.0)


def _central(tops: np.ndarray) -> tuple[float, float]:
    """Returns the ends of the central interval with the share `DRAWN` of the tops [n]."""
    tail = math.floor((1 - DRAWN) / 2 * len(tops))
    low, high = np.sort(tops)[[tail, -1 - tail]].tolist()
    return low, high


def _far_apart(scores: np.ndarray, usual: np.ndarray, apart: np.ndarray) -> float:
    """Returns how far a value apart is from the best usual one at most, by its paired t interval; 0 without any."""
    best = np.flatnonzero(usual)[int(np.nanargmax(adjusted_means(scores[usual])))]
    gaps = [mean_estimate(scores[best] - scores[row]) for row in np.flatnonzero(apart)]
    counts = [int((~np.isnan(scores[best] - scores[row])).sum()) for row in np.flatnonzero(apart)]
    quantiles = [min(HUGE, student_quantile((1 + CONFIDENCE) / 2, count - 1)) for count in counts]
    return max((abs(gap.value) + q * gap.error for gap, q in zip(gaps, quantiles, strict=True)), default=0.0)


def _seeds_to_close(process: Process, at: np.ndarray, seeds: int) -> float:
    """Returns about how many seeds would put the second of two places below the first; infinite if it is no lower."""
    (top, other), covariance = process.mean(at), process.covariance(at)
    error = math.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0.0))
    if top - other <= RELATIVE_ZERO * abs(top):
        return math.inf
    needed = seeds * (student_quantile((1 + DRAWN) / 2, math.inf) * error / (top - other)) ** 2
    return float(max(math.ceil(needed), seeds + 1)) if needed <= MOST_SEEDS else math.inf


def _without_curve(
    x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], apart: np.ndarray, seeds: int
) -> Maximum:
    """Returns the set by paired tests alone."""
    first, hull = leader(scores), open_points(x, scores, ends, CONFIDENCE)
    # A best value that lies apart has no neighbours: the next values follow another formula.
    if {hull.low, hull.high} - {*x[apart].tolist()}:
        hull = hull.to_neighbours(x[~np.isnan(scores).all(axis=1)], ends)
    shown = no_difference(scores) <= 1 - CONFIDENCE
    return Maximum(
        *hull[:4],
        # Reached, as nothing was tried between, but not open.
        worse_ends=(hull.low <= ends[0] and not hull.at_low, hull.high >= ends[1] and not hull.at_high),
        best=math.nan if first is None else float(x[first]),
        seeds=seeds,
        seeds_needed=_in_seeds(hull, seeds) if shown or not hull.seeds_needed else math.inf,
    )


def _in_seeds(hull: Open, seeds: int) -> float:
    """Returns the needed seeds, one more than now at least where an end is open."""
    return max(hull.seeds_needed, seeds + 1.0) if hull.seeds_needed else 0.0


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
