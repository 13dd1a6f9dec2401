"""The window of tried values, around the best, over which a quadratic curve fits the scores."""

from typing import NamedTuple

import numpy as np

from results.statistics.anova import lack_of_fit
from results.statistics.curve import FEWEST_POINTS, SeedFit, fit_by_seed
from results.statistics.racing import adjusted_means

MISFIT = 0.05
"""A curve over all points is rejected when the p-value of the lack-of-fit test is below this."""

MISFIT_WINDOW = 0.25
"""The same for a window. It is larger, because the window was chosen after a wider one had failed: a curve that just
passes would deviate by about its own standard error."""


class Window(NamedTuple):
    """The tried values that the curve is fitted to."""

    low: float
    """The smallest of them."""
    high: float
    """The largest of them."""
    points: int
    """Their number."""
    whole: bool
    """Whether these are all values that the curve may use."""
    lack_of_fit_p: float
    """p-value of the lack-of-fit test of the curve over this window; NaN where it cannot be tested."""


class LocalFit(NamedTuple):
    """A curve over a window."""

    fit: SeedFit
    """The curve."""
    rows: np.ndarray
    """[K] bool: the rows of the table that it is fitted to."""
    window: Window
    """The values of these rows."""


def local_fit(x: np.ndarray, scores: np.ndarray, curve: np.ndarray) -> LocalFit | None:
    """Returns the curve over the widest window that passes the lack-of-fit test; None where none does.

    x [K], scores [K, R], curve bool [K]: the rows that it may use. All rows are tried first; then the rows farthest
    from the best one are left out in steps, a quarter of them each time, down to `FEWEST_POINTS` distinct x.
    """
    rows = np.flatnonzero(curve)
    if not len(rows):
        return None
    best = x[rows[int(np.nanargmax(adjusted_means(scores[rows])))]]
    # By distance, not by rank, so that the window stays centred on the best value on an uneven grid.
    nearest = rows[np.argsort(np.abs(x[rows] - best), kind="stable")]
    for count in _counts(len(rows)):
        part = np.sort(nearest[:count])
        fit, whole = fit_by_seed(x[part], scores[part]), count == len(rows)
        if fit is None:
            continue
        p = lack_of_fit(x[part], scores[part], fit)
        # NaN: where the test has no degree of freedom left, nothing speaks against the curve.
        if not p < (MISFIT if whole else MISFIT_WINDOW):
            window = Window(float(x[part].min()), float(x[part].max()), count, whole, p)
            return LocalFit(fit, np.isin(np.arange(len(x)), part), window)
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
