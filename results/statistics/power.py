"""The smallest differences that a number of seeds can detect."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from results.inert import all_equal
from results.labels import count_text, number_text
from results.metrics import METRICS
from results.statistics.anova import residuals
from results.statistics.paired import ALPHA, MOST_FLIPS, smallest_sign_flip_p, student_quantile

DIGITS = METRICS["A_T"].digits
FEWEST = 2
"""Fewest seeds, and fewest values, that have a spread."""
LEAST_FOR_A_TEST = next(n for n in range(FEWEST, MOST_FLIPS) if smallest_sign_flip_p(n) < ALPHA)
"""Fewest seeds with which the sign-flip test can reach an error rate of `ALPHA`."""


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
    inert = all_equal(scores)
    noise = math.nan if inert else paired_noise(scores)
    half = student_quantile(1 - ALPHA / 2, seeds - 1) / math.sqrt(seeds)
    return Resolution(seeds, smallest_sign_flip_p(seeds), noise, half, inert)


def paired_noise(scores: NDArray[np.float64]) -> float:
    """Returns the standard deviation of a paired difference: √2 times that of the residual of value + seed.

    Only complete rows of the scores [K, R] are used; NaN below two of them or two seeds.

    >>> paired_noise(np.array([[0.1, 0.2], [0.2, 0.3]]))
    0.0
    """
    # Complete rows only: in a race, points with few seeds are not a random part of all points.
    table = scores[~np.isnan(scores).any(axis=1)] if scores.size else scores.reshape(0, 0)
    if min(table.shape) < FEWEST:
        return math.nan
    noise = residuals(table)
    # A difference has the variance of two values. A rounding error of equal scores is no noise.
    return round(math.sqrt(2 * noise.pure / noise.spare), 12)


def in_words(resolution: Resolution, objective: str = "A_T", unit: str = "seed") -> tuple[str, ...]:
    """Returns the sentences about a resolution; objective: what is compared; unit: what its seeds are."""
    if resolution.inert:
        return (f"All values tried so far score the same bit for bit: more {unit}s would show no difference.",)
    if resolution.seeds < FEWEST:
        return (f"One {unit} gives no measure of noise: no difference can be detected.",)
    return _of_the_test(resolution, unit), _of_the_interval(resolution, objective)


def in_brief(resolution: Resolution, unit: str = "seed") -> str:
    """Returns whether the sign-flip test can reach `ALPHA`, and the differences that are within chance, in a line."""
    if resolution.inert or resolution.seeds < FEWEST:
        return in_words(resolution, unit=unit)[0]
    seeds, test = count_text(resolution.seeds, unit), "sign-flip test"
    reach = f"{test}: {seeds} can reach p = {resolution.smallest_p:.2g}"
    if resolution.smallest_p >= ALPHA:
        reach = f"{test}: {seeds} cannot reach p < {ALPHA}, {LEAST_FOR_A_TEST} can"
    if math.isnan(resolution.noise):
        return reach
    return f"{reach}; 95 % interval: ± {number_text(resolution.points, DIGITS)} points"


def _of_the_test(resolution: Resolution, unit: str) -> str:
    seeds, smallest = count_text(resolution.seeds, unit), f"{resolution.smallest_p:.4g}"
    if resolution.smallest_p >= ALPHA:
        return (
            f"{seeds} cannot reach p < {ALPHA} in an exact two-sided paired test, however large the difference "
            f"(smallest p = {smallest}); {count_text(LEAST_FOR_A_TEST, unit)} can."
        )
    kind = "an exact two-sided" if resolution.seeds <= MOST_FLIPS else "a two-sided"
    return f"{seeds} can reach p = {smallest} in {kind} paired test of one comparison."


def _of_the_interval(resolution: Resolution, objective: str) -> str:
    half = f"{number_text(resolution.half_width, DIGITS)} standard deviations of a paired difference"
    if math.isnan(resolution.noise):
        return (
            f"Differences of {objective} below {half} are within the 95 % interval of chance; the noise is not "
            "measured yet."
        )
    return (
        f"Differences of {objective} below {number_text(resolution.points, DIGITS)} percentage points are within the "
        f"95 % interval of chance ({half}; one is {number_text(100 * resolution.noise, DIGITS)} percentage points in "
        "the runs of this study so far)."
    )
