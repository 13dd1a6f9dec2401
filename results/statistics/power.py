"""The differences that a number of seeds can detect, before they are trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from results.inert import all_equal
from results.labels import count_text, number_text
from results.statistics.anova import residuals
from results.statistics.paired import MOST_FLIPS, smallest_sign_flip_p

ALPHA = 0.05
"""Error rate of the tests and intervals."""
LEAST_FOR_A_TEST = next(n for n in range(2, 20) if smallest_sign_flip_p(n) < ALPHA)
"""Fewest seeds with which the sign-flip test can reach that level."""


class Resolution(NamedTuple):
    """The resolution of a comparison of two values on the same seeds."""

    seeds: int
    """Number of seeds."""
    smallest_p: float
    """Smallest p of the two-sided sign-flip test, for one comparison."""
    noise: float
    """Standard deviation of a paired difference of A_T, fraction; NaN where nothing has been measured yet."""
    half_width: float
    """Half of the 95 % t interval of the mean difference, in standard deviations of a paired difference; infinite with
    one seed."""
    inert: bool = False
    """Whether all values measured so far score the same bit for bit, so that there is no noise to measure."""

    @property
    def points(self) -> float:
        """The half width in percentage points of A_T; NaN where the noise is not known."""
        return 100 * self.noise * self.half_width


def resolution(seeds: int, scores: NDArray[np.float64]) -> Resolution:
    """Returns the resolution for scores A_T [K, R] in [0, 1] that were measured on this stream so far.

    NaN where a score has not been measured; the array may be empty.
    """
    from scipy.stats import t

    half = float(t.ppf(1 - ALPHA / 2, seeds - 1)) / math.sqrt(seeds) if seeds > 1 else math.inf
    inert = all_equal(scores)
    return Resolution(seeds, smallest_sign_flip_p(seeds), math.nan if inert else paired_noise(scores), half, inert)


def paired_noise(scores: NDArray[np.float64]) -> float:
    """Returns the standard deviation of a paired difference: √2 times that of the residual of value + seed.

    Only complete rows of the scores [K, R] are used; NaN below two of them or two seeds.

    >>> paired_noise(np.array([[0.1, 0.2], [0.2, 0.3]]))
    0.0
    """
    # Complete rows only: in a race, points with few seeds are not a random part of all points.
    table = scores[~np.isnan(scores).any(axis=1)] if scores.size else scores.reshape(0, 0)
    points, seeds = table.shape
    if points < 2 or seeds < 2:
        return math.nan
    noise = residuals(table)
    return round(math.sqrt(2 * noise.pure / noise.spare), 12)  # a rounding error of equal scores is no noise


def in_words(found: Resolution) -> Iterator[str]:
    """Yields the sentences about a resolution."""
    if found.inert:
        yield "All values tried so far score the same bit for bit: more seeds would show no difference."
        return
    if found.seeds < 2:
        yield "One seed gives no measure of noise: no difference can be detected."
        return
    seeds = count_text(found.seeds, "seed")
    if found.smallest_p >= ALPHA:
        yield (
            f"{seeds} cannot reach p < {ALPHA} in an exact two-sided paired test, however large the difference "
            f"(smallest p = {found.smallest_p:.4g}); {LEAST_FOR_A_TEST} seeds can."
        )
    else:
        kind = "an exact two-sided" if found.seeds <= MOST_FLIPS else "a two-sided"
        yield f"{seeds} can reach p = {found.smallest_p:.4g} in {kind} paired test of one comparison."
    half = f"{number_text(found.half_width, 2)} standard deviations of a paired difference"
    if math.isnan(found.noise):
        yield f"Differences of A_T below {half} are within the 95 % interval of chance; the noise is not measured yet."
    else:
        yield (
            f"Differences of A_T below {number_text(found.points, 2)} percentage points are within the 95 % interval "
            f"of chance ({half}; one is {number_text(100 * found.noise, 2)} percentage points in the runs of this "
            "study so far)."
        )
