"""Equivalence of a measured mean and a printed one: two one-sided tests with a margin, by Welch's t.

Schuirmann 1987 (two one-sided tests), Welch 1947 and Satterthwaite 1946 (degrees of freedom).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from results.statistics.paired import ALPHA, CONFIDENCE, student_quantile, student_tail

WITHIN, OUTSIDE, OPEN = "within", "outside", "cannot tell"
ANSWERS = (WITHIN, OUTSIDE, OPEN)
"""Answers of the test."""
POWER = 0.8
"""Probability of an answer with the number of seeds that `seeds_needed` returns."""
MOST_SEEDS = 10_000
"""More seeds than anybody trains."""
SPREADS: dict[str, Callable[[float, int], float]] = {
    "sd": lambda spread, n: spread / math.sqrt(n),
    "population sd": lambda spread, n: spread / math.sqrt(n - 1),
    "se": lambda spread, n: spread,
}
"""Kind of a printed spread -> (spread, n > 1) -> standard error of the printed mean.

A population standard deviation divides by n, not by n − 1.
"""


class Equivalence(NamedTuple):
    """Difference of a measured mean from a printed one, in their unit."""

    difference: float
    """Measured − printed."""
    error: float
    """Its standard error; NaN with one measured value."""
    df: float
    """Degrees of freedom; infinite without any spread."""
    margin: float
    """Differences below this one count as none; > 0."""

    def interval(self, confidence: float) -> tuple[float, float]:
        """Returns the interval of the difference at a confidence; NaN where the error is unknown."""
        half = student_quantile((1 + confidence) / 2, self.df) * self.error if self.error else 0.0
        return self.difference - half, self.difference + half

    @property
    def p(self) -> float:
        """The larger p-value of the two one-sided tests, of a difference ≤ −margin and of one ≥ margin."""
        room = self.margin - abs(self.difference)
        if self.error == 0:
            return float(room <= 0)
        return 1.0 if math.isnan(self.error) else student_tail(room / self.error, self.df)

    @property
    def answer(self) -> str:
        """One of ANSWERS.

        WITHIN where both one-sided tests reject at ALPHA, so that the interval at 1 − 2·ALPHA lies inside the margin;
        OUTSIDE where the interval at CONFIDENCE lies wholly beyond it; else OPEN.
        """
        low, high = self.interval(1 - 2 * ALPHA)
        if -self.margin < low and high < self.margin:
            return WITHIN
        low, high = self.interval(CONFIDENCE)
        return OUTSIDE if low > self.margin or high < -self.margin else OPEN


def equivalence(
    scores: Sequence[float] | np.ndarray, printed: float, error: float, n: int, margin: float
) -> Equivalence:
    """Returns the difference of the mean of scores [seeds] from a printed mean.

    error: standard error of the printed mean from n runs, 0 for a mean that is taken as exact; n is not used then.

    >>> equivalence([90.0, 91.0, 92.0], 91.5, 0.0, 1, 5.0).answer
    'within'
    """
    values = np.asarray(scores, dtype=np.float64)
    ours = float(values.var(ddof=1)) / len(values) if len(values) > 1 else math.nan
    return _compare(float(values.mean()) - printed, ours, len(values), (error, n), margin)


def seeds_needed(result: Equivalence, seeds: int, error: float, n: int) -> int | None:
    """Returns how many seeds the test would need for an answer with probability POWER, as the next to come.

    Takes the measured difference and spread as the true ones. None where more than MOST_SEEDS would not do: the printed
    mean itself is not known well enough, or the difference is the margin. found: of so many seeds; error, n: as before.
    """
    if math.isnan(result.error):
        return 2
    variance = max(result.error**2 - error**2, 0.0) * seeds
    room, inside = result.margin - abs(result.difference), abs(result.difference) < result.margin
    # To be within, both one-sided tests must reject; far beyond the margin one of them is all.
    rooms = (room, result.margin + abs(result.difference)) if inside else (-room,)
    level = 1 - ALPHA if inside else (1 + CONFIDENCE) / 2

    def enough(count: int) -> bool:
        then = _compare(result.difference, variance / count, count, (error, n), result.margin)
        if not then.error or room == 0:
            return room != 0
        critical = student_quantile(level, then.df)
        return 1 - sum(student_tail(distance / then.error - critical, then.df) for distance in rooms) >= POWER

    if not enough(MOST_SEEDS):
        return None
    few, many = 1, MOST_SEEDS  # `many` is enough, `few` is not
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def _compare(difference: float, ours: float, seeds: int, printed: tuple[float, int], margin: float) -> Equivalence:
    """Returns the difference with its error; ours: squared error of our mean; printed: error of the other, and n."""
    theirs = printed[0] ** 2
    parts = (ours**2 / (seeds - 1) if seeds > 1 else 0.0) + (theirs**2 / (printed[1] - 1) if theirs else 0.0)
    df = (ours + theirs) ** 2 / parts if parts else math.inf
    return Equivalence(difference, math.sqrt(ours + theirs), df, margin)
