"""The hull of the values at which a quadratic curve may be highest: the rule of the strategy `interval-ci`.

Searches are resumed by replay, so it stays as it was for the first of them. The answer of a search has another model
(`results.statistics.confidence_set`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from results.statistics.anova import lack_of_fit
from results.statistics.curve import FEWEST_POINTS, SeedFit, fit_by_seed
from results.statistics.paired import CONFIDENCE
from results.statistics.racing import adjusted_means
from results.statistics.slope_tests import Open, neighbours, open_rivals, open_slopes

MISFIT = 0.05
"""A curve over all points is rejected when the p-value of the lack-of-fit test is below this."""

MISFIT_WINDOW = 0.25
"""The same for a window. It is larger, because the window was chosen after a wider one had failed: a curve that just
passes would deviate by about its own standard error."""


class _LocalFit(NamedTuple):
    """A quadratic curve over a window of tried values."""

    fit: SeedFit
    rows: np.ndarray
    """[K] bool: the rows of the table that it is fitted to."""
    low: float
    """The smallest of their values."""
    high: float
    """The largest of them."""
    whole: bool
    """Whether these are all values with a score."""


def confidence_hull(x: Sequence[float], scores: np.ndarray, low: float, high: float) -> tuple[float, float] | None:
    """Returns the hull of the open values on [low, high] for x [K] and scores [K, R], or None without a curve.

    A quadratic curve is fitted over all values if it fits them, else over a window around the best. Open are the values
    that a test of the slope does not exclude, and the tried values beyond the window that are not significantly below
    the top of the curve. Beyond a window the hull extends to the next tried values, as the curve says nothing there.
    """
    points, table = np.asarray(x, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    ends = (float(low), float(high))
    local = _local_fit(points, table)
    if local is None:
        return None
    hull = _of_the_curve(points, table, ends, local)
    return hull.low, hull.high


def _of_the_curve(x: np.ndarray, scores: np.ndarray, ends: tuple[float, float], local: _LocalFit) -> Open:
    """Returns the open values by the curve, and those beyond its window."""
    scored = x[~np.isnan(scores).all(axis=1)]
    # Beyond the window only as far as the next tried values: a fitted parabola may not be extrapolated further.
    reach = neighbours(scored, local.low, local.high, ends)
    hull = open_slopes(local.fit, *reach, ends, CONFIDENCE)
    hull = hull if local.whole else hull.to_neighbours(scored, ends)
    # The top that `open_slopes` includes may lie beyond the window; the best within it belongs to the set, too.
    best = local.fit.best(local.low, local.high)
    hull = hull.joined(Open(best, best, False, False, 0.0))
    return hull.joined(open_rivals(local.fit, best, x, scores, ~local.rows, ends, CONFIDENCE))


def _local_fit(x: np.ndarray, scores: np.ndarray) -> _LocalFit | None:
    """Returns the curve over the widest window that passes the lack-of-fit test, if any does.

    x [K], scores [K, R]. All rows with a score are tried first; then the rows farthest from the best one are left out
    in steps, a quarter of them each time, down to `FEWEST_POINTS` distinct x.
    """
    rows = np.flatnonzero(~np.isnan(scores).all(axis=1))
    if not len(rows):
        return None
    best = x[rows[int(np.nanargmax(adjusted_means(scores[rows])))]]
    # By distance, not by rank, so that the window stays centred on the best value on an uneven grid.
    nearest = rows[np.argsort(np.abs(x[rows] - best), kind="stable")]
    for count in _counts(len(rows)):
        part = np.sort(nearest[:count])
        fit = fit_by_seed(x[part], scores[part])
        if fit is None:
            continue
        p, whole = lack_of_fit(x[part], scores[part], fit), count == len(rows)
        # NaN: where the test has no degree of freedom left, nothing speaks against the curve.
        if not p < (MISFIT if whole else MISFIT_WINDOW):
            return _LocalFit(fit, np.isin(np.arange(len(x)), part), float(x[part].min()), float(x[part].max()), whole)
    return None


def _counts(most: int) -> list[int]:
    """Returns the sizes of windows to try: `most`, then a quarter fewer each time, at last `FEWEST_POINTS`.

    >>> _counts(11)
    [11, 8, 6, 4]
    """
    sizes = [most]
    while sizes[-1] > FEWEST_POINTS:
        sizes.append(max(FEWEST_POINTS, sizes[-1] * 3 // 4))
    return sizes
