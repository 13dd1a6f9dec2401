"""Paired comparisons of a few seeds, with an exact test."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

ALPHA = 0.05
"""Error rate of the tests: p-values below this are significant."""

CONFIDENCE = 0.95
"""Confidence of the intervals and sets."""

SEED = 20_250_117
"""Of all random draws of the statistics, so that a report is the same every time."""

MOST_FLIPS = 36
"""Largest number of pairs whose 2^n sign flips are all counted, which takes a few hundredths of a second."""

DRAWN_FLIPS = 99_999
"""Sign flips drawn where there are more pairs: with the measured one they are 100,000, so that p has five digits."""

RELATIVE_ZERO = 1e-12
"""Differences below this share of the largest magnitude are rounding errors."""


class Estimate(NamedTuple):
    """An estimate with its standard error, in the unit of the values. NaN where there are too few values."""

    value: float
    """The estimate."""
    error: float
    """Its standard error; of a fit, by the jackknife over seeds."""

    @property
    def ratio(self) -> float:
        """The t ratio; NaN for an unknown error, and without noise infinite for a positive value, else 0."""
        if self.error != 0:
            return self.value / self.error
        return math.inf if self.value > 0 else 0.0

    def not_above_zero(self, quantile: float) -> bool:
        """Returns whether no one-sided t test shows that the value is positive; true where the error is unknown."""
        return not self.value > quantile * self.error

    def negative(self) -> "Estimate":
        """Returns the estimate of the negative value."""
        return Estimate(-self.value, self.error)


UNKNOWN = Estimate(math.nan, math.nan)
"""Of too few values."""


def mean_estimate(values: Sequence[float] | np.ndarray) -> Estimate:
    """Returns the mean of the values [n] that are not NaN; its error is sample standard deviation (ddof 1) / √n.

    >>> mean_estimate([1.0, math.nan, 3.0])
    Estimate(value=2.0, error=1.0)
    """
    kept = np.asarray(values, dtype=np.float64)
    kept = kept[~np.isnan(kept)]
    mean = float(kept.mean()) if len(kept) else math.nan
    return Estimate(mean, float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan)


class Paired(NamedTuple):
    """Differences first − second over the seeds that both have, in the unit of the values."""

    mean: float
    """Mean of the differences; NaN without a pair."""
    error: float
    """Standard error of the mean: sample standard deviation (ddof 1) / √n; NaN below two pairs."""
    differences: tuple[float, ...]
    """One for each pair, in the order of the seeds."""

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.differences)

    @property
    def wins(self) -> int:
        """Pairs in which the first is strictly larger."""
        return sum(d > 0 for d in self.differences)


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Returns the comparison of two points, seed -> value; a seed that one of them lacks, or has as NaN, is left out.

    >>> paired({0: 2.0, 1: 4.0, 2: 9.0}, {0: 1.0, 1: 1.0})
    Paired(mean=2.0, error=1.0, differences=(1.0, 3.0))
    """
    differences = (first[s] - second[s] for s in sorted(first.keys() & second.keys()))
    kept = tuple(float(d) for d in differences if not math.isnan(d))
    return Paired(*mean_estimate(kept), kept)


def rounding_noise(differences: Sequence[float]) -> float:
    """Returns the standard deviation of one run, from differences between two runs; 0 without any.

    >>> rounding_noise([0.02, 0.02])
    0.01414213562373095
    """
    return math.sqrt(sum(d**2 for d in differences) / (2 * len(differences))) if differences else 0.0


def largest_difference(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the largest absolute difference of two arrays of one shape; infinite where only one of two values is NaN.

    >>> largest_difference(np.array([0.5, np.nan]), np.array([0.75, np.nan]))
    0.25
    """
    if not np.array_equal(np.isnan(first), np.isnan(second)):
        return float("inf")
    return float(np.nanmax(np.abs(first - second), initial=0.0))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Returns the two-sided p-value of "the sign of every paired difference is a fair coin", statistic |Σ d|.

    Exact up to `MOST_FLIPS` differences. For more, `DRAWN_FLIPS` flips of a fixed generator: if b of B drawn sums are
    at least as far from 0 as the measured one, p = (b + 1)/(B + 1), which keeps the level (Phipson & Smyth 2010).
    Raises ValueError without a difference.

    >>> sign_flip_p([1.0, 2.0, 3.0])
    0.25
    """
    values = np.asarray(differences, dtype=np.float64)
    if not len(values):
        raise ValueError("the number of differences must be >= 1, got 0")
    # A flip that gives the same sum in another order of addition must count as equal.
    bound = abs(float(values.sum())) - RELATIVE_ZERO * float(np.abs(values).sum())
    if bound <= 0:
        return 1.0
    if len(values) <= MOST_FLIPS:
        return 2 * _flips_from(values, bound) / 2.0 ** len(values)
    # Σ ±d = 2 Σ₊d − Σd, so the drawn signs can be 0 and 1 instead of −1 and 1.
    signs = np.random.default_rng(SEED).integers(0, 2, (DRAWN_FLIPS, len(values)), dtype=np.int8)
    sums = 2 * (signs @ values) - values.sum()
    return float(1 + np.count_nonzero(np.abs(sums) >= bound)) / (DRAWN_FLIPS + 1)


def _flips_from(values: np.ndarray, bound: float) -> int:
    """Returns how many of the 2^n flips have a sum >= bound."""
    # Every sum is a sum of the first half plus one of the second: 2·2^(n/2) sums and a binary search, not 2^n sums.
    first, second = (_signed_sums(half) for half in np.array_split(values, 2))
    second.sort()
    return int((len(second) - np.searchsorted(second, bound - np.sort(first))).sum())


def _signed_sums(values: np.ndarray) -> np.ndarray:
    """Returns the sums [2^n] of n values under all signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def smallest_sign_flip_p(n: int) -> float:
    """Returns the smallest p-value that n pairs can reach in `sign_flip_p`: 2/2^n, or 1/(B + 1) for drawn flips.

    >>> smallest_sign_flip_p(5), smallest_sign_flip_p(50)
    (0.0625, 1e-05)
    """
    return min(1.0, 2.0 / 2.0**n) if n <= MOST_FLIPS else 1 / (DRAWN_FLIPS + 1)


def sign_flip_name(n: int) -> str:
    """Returns the name of the test that `sign_flip_p` makes of n pairs.

    >>> sign_flip_name(5), sign_flip_name(50)
    ('exact two-sided sign-flip test', 'two-sided sign-flip test (99,999 random flips)')
    """
    return (
        "exact two-sided sign-flip test"
        if n <= MOST_FLIPS
        else f"two-sided sign-flip test ({DRAWN_FLIPS:,} random flips)"
    )


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Returns p-values adjusted so that the chance of any false rejection stays at the level (Holm 1979).

    The i-th smallest of m becomes the running maximum of (m − i + 1)·pᵢ, at most 1. NaN stays NaN and is not counted.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    adjusted = np.full(len(values), math.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(len(order), 0, -1) * values[order]))
    return tuple(adjusted.tolist())


def student_quantile(share: float, df: float) -> float:
    """Returns the quantile of Student's t; infinite for df <= 0, where nothing can be concluded.

    >>> round(student_quantile(0.975, 4), 3)
    2.776
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, share)) if df > 0 else math.inf


def student_tail(t: float, df: float) -> float:
    """Returns the probability that Student's t exceeds t; 1 for df <= 0, where nothing can be concluded.

    >>> round(student_tail(2.776, 4), 3)
    0.025
    """
    from scipy.special import stdtr

    return float(stdtr(df, -t)) if df > 0 else 1.0
