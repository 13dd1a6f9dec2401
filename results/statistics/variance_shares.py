"""Shares of the variance of a number between orders of tasks, seeds and the rest.

A table [orders, seeds] of one number a cell, as the A_T of one setting, or a paired difference of two: number = mean +
order + seed + rest, all three drawn at random. The rest has what an order and a seed do only together.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from results.labels import count_text, number_text
from results.statistics.paired import CONFIDENCE, RELATIVE_ZERO, SEED

DRAWS = 20_000
"""Draws of the generalized pivots: the Monte Carlo error of the level of an end is 0.1 %."""


class VarianceShares(NamedTuple):
    """Parts of the variance, each as (order, seed, rest). NaN where all cells are equal, so that there is none."""

    deviations: tuple[float, float, float]
    """Standard deviations, in the unit of the table; 0 where the estimate of the variance is negative."""
    shares: tuple[float, float, float]
    """Variances divided by their sum, in [0, 1]."""
    intervals: tuple[tuple[float, float], ...]
    """Interval of each share at `CONFIDENCE`, within [0, 1]."""
    orders: int
    """Orders of the table that was used."""
    seeds: int
    """Its seeds."""
    left_out: tuple[int, int]
    """Orders and seeds left out, because cells were missing."""


def variance_shares(table: np.ndarray) -> VarianceShares | None:
    """Returns the shares of the variance of a table [orders, seeds], NaN where a run diverged.

    Estimates: method of moments from the two-way analysis of variance without replication (Searle, Casella & McCulloch
    1992, ch. 4). Intervals: generalized confidence intervals (Tsui & Weerahandi 1989; Weerahandi 1993). A sum of
    squares divided by chi-squared of its degrees of freedom stands for its expected mean square; the interval has the
    middle of the shares that follow, cut off at 0 and 1 only as shares: components cut off at 0 before would cover a
    rest of 100 % too rarely. Exact pivots for normal effects. What `complete` leaves out is left out. None with fewer
    than two orders or two seeds.

    >>> found = variance_shares(np.array([[1.0, 2.0], [5.0, 4.0]]))
    >>> [round(share, 3) for share in found.shares], found.deviations[1]
    ([0.8, 0.0, 0.2], 0.0)
    """
    used = complete(table)
    orders, seeds = (int(mask.sum()) for mask in used)
    if min(orders, seeds) < 2:
        return None
    squares = _sums_of_squares(table[np.ix_(*used)])
    sizes = (orders, seeds)
    means = squares / _degrees(*sizes)
    parts = [max(float(means[0] - means[2]) / seeds, 0.0), max(float(means[1] - means[2]) / orders, 0.0), means[2]]
    total = float(sum(parts))
    ends = _intervals(squares, *sizes) if total > 0 else ((math.nan, math.nan),) * 3
    order, seed, rest = (float(part) for part in parts)
    return VarianceShares(
        (math.sqrt(order), math.sqrt(seed), math.sqrt(rest)),
        (order / total, seed / total, rest / total) if total > 0 else (math.nan, math.nan, math.nan),
        ends,
        orders,
        seeds,
        (len(used[0]) - orders, len(used[1]) - seeds),
    )


def sentence(variance: VarianceShares, name: str = "A_T", unit: str = "points") -> str:
    """Returns the shares in a sentence for people.

    name, unit: of the numbers of the table, as people see them.
    """
    size = f"{count_text(variance.orders, 'order')} × {count_text(variance.seeds, 'seed')}"
    counted = zip(variance.left_out, ("order", "seed"), strict=True)
    gaps = " and ".join(count_text(number, noun) for number, noun in counted if number)
    without = f" Left out, as runs are missing or diverged: {gaps}." if gaps else ""
    if math.isnan(variance.shares[0]):
        return f"{name} is the same in all runs of {size}: it has no variance to divide.{without}"
    order, seed, rest = (
        f"{100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"
        for share, (low, high) in zip(variance.shares, variance.intervals, strict=True)
    )
    first, second, third = (number_text(deviation, 2) for deviation in variance.deviations)
    return (
        f"Of the variance of {name}, {order} lies between orders of tasks, {seed} between seeds and {rest} in the rest "
        f"(in brackets {100 * CONFIDENCE:.0f} % intervals); standard deviations {first}, {second} and {third} {unit}, "
        f"from {size}.{without}"
    )


def complete(table: np.ndarray) -> list[np.ndarray]:
    """Returns a mask [n] for each axis of a table: what stays, so that no cell of the rest is missing.

    One by one it leaves out the whole row, column or layer of which the largest share is missing, and so the fewest
    cells that are not.

    >>> [mask.tolist() for mask in complete(np.array([[1, 2, 3], [4, math.nan, 6]]))]
    [[True, True], [True, False, True]]
    """
    missing = ~np.isfinite(table)
    used = [np.ones(size, dtype=bool) for size in table.shape]
    axes = range(table.ndim)
    while (left := missing[np.ix_(*used)]).any():
        shares = [left.mean(axis=tuple(other for other in axes if other != axis)) for axis in axes]
        axis = max(axes, key=lambda axis: float(shares[axis].max()))
        used[axis][np.flatnonzero(used[axis])[shares[axis].argmax()]] = False
    return used


def _sums_of_squares(table: np.ndarray) -> np.ndarray:
    """Returns the sums of squares [3] of orders, seeds and rest; 0 for what is rounding."""
    centred = table - table.mean()
    by_order, by_seed = centred.mean(axis=1, keepdims=True), centred.mean(axis=0, keepdims=True)
    parts = (by_order + 0 * centred, by_seed + 0 * centred, centred - by_order - by_seed)
    squares = np.array([float((part**2).sum()) for part in parts])
    return np.where(squares > table.size * (RELATIVE_ZERO * np.abs(table).max()) ** 2, squares, 0.0)


def _degrees(orders: int, seeds: int) -> tuple[int, int, int]:
    """Returns the degrees of freedom of orders, seeds and rest."""
    return orders - 1, seeds - 1, (orders - 1) * (seeds - 1)


@cache
def _chi_squared(orders: int, seeds: int) -> np.ndarray:
    """Returns draws [3, DRAWS] of chi-squared for orders, seeds and rest, of a fixed generator; read-only."""
    drawn = np.random.default_rng(SEED).chisquare(np.array(_degrees(orders, seeds))[:, None], (3, DRAWS))
    drawn.setflags(write=False)
    return drawn


def _intervals(squares: np.ndarray, orders: int, seeds: int) -> tuple[tuple[float, float], ...]:
    """Returns the interval of each share, from sums of squares [3] of which one is positive."""
    by_order, by_seed, rest = squares[:, None] / _chi_squared(orders, seeds)
    variances = np.array([(by_order - rest) / seeds, (by_seed - rest) / orders, rest])
    # Their sum, from terms that are not negative: rounding must not turn its sign.
    total = by_order / seeds + by_seed / orders + rest * (1 - 1 / seeds - 1 / orders)
    with np.errstate(divide="ignore"):  # 2 × 2 without differences between orders and seeds: the rest is everything
        shares = np.clip(variances / total, 0, 1)
    low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=1)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))
