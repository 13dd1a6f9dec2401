"""The stretch of tried values, around the best, over which a quadratic curve suits the scores."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from results.statistics.curve import FEWEST_POINTS, SeedFit, fit_by_seed
from results.statistics.lack_of_fit import lack_of_fit
from results.statistics.racing import adjusted_means

MISFIT = 0.05
"""A curve over all points is given up when the lack-of-fit test rejects it at this level."""

MISFIT_WINDOW = 0.25
"""A window must do better than that: it was chosen because a wider one failed, so a bare pass would leave a curve
that is off by about its own error."""


class Window(NamedTuple):
    """Tried values that the curve is fitted to."""

    low: float
    high: float
    points: int
    whole: bool
    """Whether these are all the points that the curve could have."""
    lack_of_fit_p: float
    """Of the curve over this window; NaN where it cannot be tested."""


class LocalFit(NamedTuple):
    """A curve and the rows [K] of the table that it rests on."""

    fit: SeedFit
    rows: np.ndarray
    window: Window


def local_fit(x: np.ndarray, scores: np.ndarray, curve: np.ndarray) -> LocalFit | None:
    """The widest curve that the lack-of-fit test lets pass: x [K], scores [K, R], curve bool [K] = rows it may use.

    All rows first; then the rows farthest from the best one are left out step by step (a quarter of them each time)
    down to `FEWEST_POINTS` distinct x. None where no curve can be fitted, or none passes.
    """
    rows = np.flatnonzero(curve)
    if not len(rows):
        return None
    best = x[rows[int(np.nanargmax(adjusted_means(scores[rows])))]]
    nearest = rows[np.argsort(np.abs(x[rows] - best), kind="stable")]
    for count in _counts(len(rows)):
        part = np.sort(nearest[:count])
        fit = fit_by_seed(x[part], scores[part])
        if fit is None:
            continue
        p = lack_of_fit(x[part], scores[part], fit)
        whole = count == len(rows)
        if math.isnan(p) or p >= (MISFIT if whole else MISFIT_WINDOW):
            window = Window(float(x[part].min()), float(x[part].max()), count, whole, p)
            return LocalFit(fit, np.isin(np.arange(len(x)), part), window)
    return None


def _counts(most: int) -> list[int]:
    """Sizes to try: most, then a quarter fewer each time, at last `FEWEST_POINTS`.

    >>> _counts(11)
    [11, 8, 6, 4]
    """
    sizes = [most]
    while sizes[-1] > FEWEST_POINTS:
        sizes.append(max(FEWEST_POINTS, sizes[-1] * 3 // 4))
    return sizes
