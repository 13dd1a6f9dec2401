"""What so many seeds can and cannot tell apart, before they are spent."""

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

LEVEL = 0.05
LEAST_FOR_A_TEST = next(n for n in range(2, 20) if smallest_sign_flip_p(n) < LEVEL)


class Resolution(NamedTuple):
    """For a comparison of two values on the same seeds.

    smallest_p   of the exact two-sided sign-flip test, one comparison
    noise        standard deviation of a paired difference of A_T, fraction; NaN where nothing has been measured yet
    half_width   of the 95 % t interval of their mean, in standard deviations of a paired difference; inf with one seed
    inert        whether all values measured so far score the same bit for bit, so that there is no noise to measure
    """

    seeds: int
    smallest_p: float
    noise: float
    half_width: float
    inert: bool = False

    @property
    def points(self) -> float:
        """Half width in percentage points of A_T; NaN where the noise is not known."""
        return 100 * self.noise * self.half_width


def resolution(seeds: int, scores: NDArray[np.float64]) -> Resolution:
    """scores: A_T [K, R] in [0, 1] of what has been measured on this stream, NaN where it has not; may be empty."""
    from scipy.stats import t

    half = float(t.ppf(1 - LEVEL / 2, seeds - 1)) / math.sqrt(seeds) if seeds > 1 else math.inf
    inert = all_equal(scores)
    return Resolution(seeds, smallest_sign_flip_p(seeds), math.nan if inert else paired_noise(scores), half, inert)


def paired_noise(scores: NDArray[np.float64]) -> float:
    """√2 times the standard deviation of what seed and value leave unexplained (two-way table [K, R], complete rows).

    NaN below two complete rows or two seeds.

    >>> paired_noise(np.array([[0.1, 0.2], [0.2, 0.3]]))
    0.0
    """
    table = scores[~np.isnan(scores).any(axis=1)] if scores.size else scores.reshape(0, 0)
    points, seeds = table.shape
    if points < 2 or seeds < 2:
        return math.nan
    noise = residuals(table)
    return round(math.sqrt(2 * noise.pure / noise.spare), 12)


def in_words(found: Resolution) -> Iterator[str]:
    """Sentences."""
    if found.inert:
        yield "All values tried so far score the same bit for bit: more seeds would show no difference."
        return
    if found.seeds < 2:
        yield "One seed gives no measure of noise: no difference can be detected."
        return
    seeds = count_text(found.seeds, "seed")
    if found.smallest_p >= LEVEL:
        yield (
            f"{seeds} cannot reach p < {LEVEL} in an exact two-sided paired test, however large the difference "
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
