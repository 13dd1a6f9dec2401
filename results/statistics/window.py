"""The window of tried values that a quadratic curve fits."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from results.statistics.anova import lack_of_fit
from results.statistics.curve import FEWEST_POINTS, SeedFit, fit_by_seed
from results.statistics.outliers import outliers, without
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


def local_fits(x: np.ndarray, scores: np.ndarray, curve: np.ndarray, careful: bool) -> Iterator[LocalFit]:
    """Yields the curve over the widest window that passes the lack-of-fit test, if any does.

    careful: failed members do not hide a misfit; and after a curve over all values that passes at `MISFIT` but not at
    `MISFIT_WINDOW` comes that over the widest window that does: the first one is in doubt, but not refuted.

    x [K], scores [K, R], curve bool [K]: the rows that it may use. All rows are tried first; then the rows farthest
    from the best one are left out in steps, a quarter of them each time, down to `FEWEST_POINTS` distinct x.
    """
    rows = np.flatnonzero(curve)
    if not len(rows):
        return
    # A failed member is part of its value's mean, but as noise it would hide any misfit.
    clean = without(scores, outliers(scores)) if careful else scores
    best = x[rows[int(np.nanargmax(adjusted_means(scores[rows])))]]
    # By distance, not by rank, so that the window stays centred on the best value on an uneven grid.
    nearest = rows[np.argsort(np.abs(x[rows] - best), kind="stable")]
    for count in _counts(len(rows)):
        part = np.sort(nearest[:count])
        fit, tested = (fit_by_seed(x[part], some[part]) for some in (scores, clean))
        if fit is None or tested is None:
            continue
        p, whole = lack_of_fit(x[part], clean[part], tested), count == len(rows)
        # NaN: where the test has no degree of freedom left, nothing speaks against the curve.
        if not p < (MISFIT if whole else MISFIT_WINDOW):
            window = Window(float(x[part].min()), float(x[part].max()), count, whole, p)
            yield LocalFit(fit, np.isin(np.arange(len(x)), part), window)
            if not (careful and p < MISFIT_WINDOW):
                return


def _counts(most: int) -> list[int]:
    """Returns the sizes of windows to try: `most`, then a quarter fewer each time, at last `FEWEST_POINTS`.

    >>> _counts(11)
    [11, 8, 6, 4]
    """
    sizes = [most]
    while sizes[-1] > FEWEST_POINTS:
        sizes.append(max(FEWEST_POINTS, sizes[-1] * 3 // 4))
    return sizes
