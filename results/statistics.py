"""What a comparison of a few seeds can bear: paired differences, an exact test, a parabola."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

MOST_FLIPS = 16
"""Largest number of pairs whose 2^n sign flips are enumerated."""


class Paired(NamedTuple):
    """Differences first − second over the seeds both have."""

    mean: float
    error: float
    """Standard error of the mean: sample standard deviation (ddof 1) / √n; NaN below two pairs."""
    differences: tuple[float, ...]

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.differences)

    @property
    def wins(self) -> int:
        """Pairs in which the first is strictly larger."""
        return sum(d > 0 for d in self.differences)


class Parabola(NamedTuple):
    """y = curvature·(x − vertex)² + peak, fitted by plain least squares over [low, high]."""

    curvature: float
    vertex: float
    peak: float
    r_squared: float
    low: float
    high: float
    n: int

    @property
    def inside(self) -> bool:
        """Whether the vertex lies within the fitted points."""
        return self.low <= self.vertex <= self.high

    def at(self, x: float) -> float:
        """The fitted value at x."""
        return self.curvature * (x - self.vertex) ** 2 + self.peak


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Compare two settings by seed; seeds that one of them lacks (or where it is NaN) are left out.

    >>> paired({0: 2.0, 1: 4.0, 2: 9.0}, {0: 1.0, 1: 1.0})
    Paired(mean=2.0, error=1.0, differences=(1.0, 3.0))
    """
    common = sorted(set(first) & set(second))
    differences = [first[s] - second[s] for s in common]
    kept = [float(d) for d in differences if not math.isnan(d)]
    mean = float(np.mean(kept)) if kept else math.nan
    error = float(np.std(kept, ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
    return Paired(mean, error, tuple(kept))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Exact two-sided p-value of "the sign of every paired difference is a fair coin", statistic |Σ d|.

    Between one and `MOST_FLIPS` differences; ValueError otherwise.

    >>> sign_flip_p([1.0, 2.0, 3.0])
    0.25
    """
    n = len(differences)
    if not 1 <= n <= MOST_FLIPS:
        raise ValueError(f"the number of differences must be in [1, {MOST_FLIPS}], got {n}")
    values = np.asarray(differences, dtype=np.float64)
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    sums = np.abs((1 - 2 * bits) @ values)
    # A flip that gives the same sum in another order of addition must count as equal.
    slack = 1e-12 * np.abs(values).sum()
    return float(np.mean(sums >= abs(values.sum()) - slack))


def smallest_sign_flip_p(n: int) -> float:
    """The smallest p-value n pairs can reach in `sign_flip_p`: 2/2^n.

    >>> smallest_sign_flip_p(5)
    0.0625
    """
    return min(1.0, 2.0 / 2.0**n)


def fit_parabola(x: Sequence[float], y: Sequence[float]) -> Parabola | None:
    """Plain least squares through the points; None below four distinct x (three fit exactly) or where the fit
    is a line.

    >>> fit = fit_parabola([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 1.0, -2.0])
    >>> round(fit.vertex, 6), round(fit.peak, 6), round(fit.r_squared, 6)
    (1.0, 2.0, 1.0)
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(xs)) < 4:
        return None
    centre, scale = xs.mean(), np.ptp(xs)
    a, b, c = np.polyfit((xs - centre) / scale, ys, 2)
    if abs(a) <= 1e-12 * max(1.0, float(np.abs(ys).max())):
        return None
    vertex = centre - scale * b / (2 * a)
    residual = ys - np.polyval([a, b, c], (xs - centre) / scale)
    total = float(((ys - ys.mean()) ** 2).sum())
    r_squared = 1.0 - float((residual**2).sum()) / total if total > 0 else math.nan
    peak = c - b * b / (4 * a)
    return Parabola(
        float(a / scale**2), float(vertex), float(peak), r_squared, float(xs.min()), float(xs.max()), len(xs)
    )
