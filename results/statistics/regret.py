"""The regret of choices to the best constant value, with orders of tasks as the units.

Scores are [K, orders, seeds] for K constant values, and [orders, seeds] for what was chosen, in points of A_T; NaN
where a member is missing or diverged.
"""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.paired import ALPHA, mean_estimate, student_quantile

POWER = 0.8
"""Share of studies in which the smallest visible regret is found."""
FEWEST_ORDERS = 3
"""Fewest orders with which a constant is chosen on the other ones: of two, one alone would choose."""


class Regret(NamedTuple):
    """How far a choice lies below a constant value, in points; below 0 it is better."""

    mean: float
    """Mean over the units; NaN where nothing can be compared."""
    low: float
    """Low end of the 95 % interval; NaN below two units."""
    high: float
    """Its high end."""
    deviation: float
    """Sample standard deviation (ddof 1) over the units; NaN below two."""
    units: int
    """Independent units: orders with a result, or where there is one, its seeds."""
    of_orders: bool
    """Whether the units are orders."""
    visible: float
    """The smallest regret that this design could have seen, see `smallest_visible`."""
    by_order: tuple[float, ...]
    """Mean over the seeds of each order; NaN for one without a result."""


def regret(best: np.ndarray, choices: np.ndarray) -> Regret:
    """Returns the regret of choices [orders, seeds] to a constant [orders, seeds], paired by order and seed.

    The mean over orders of the mean over an order's seeds, with Student's t interval mean ± t(n−1)·s/√n over the n
    means of orders: seeds of an order say nothing about other orders. With one order over its seeds, and then about
    that order alone. Exact for normal means of orders. Every order has the same seeds, so the interval is about these
    seeds: what a seed adds to the difference in all orders alike is not in it.

    >>> one = regret(np.array([[3.0, 5.0], [2.0, 4.0]]), np.array([[2.0, 2.0], [2.0, 4.0]]))
    >>> one.mean, one.units, one.of_orders, one.by_order
    (1.0, 2, True, (2.0, 0.0))
    """
    differences = best - choices
    by_order = np.array([mean_estimate(row).value for row in differences], dtype=np.float64)
    of_orders = int((~np.isnan(by_order)).sum()) > 1
    values = by_order if of_orders else differences.ravel()
    values = values[~np.isnan(values)]
    mean, error = mean_estimate(values)
    half = student_quantile(1 - ALPHA / 2, len(values) - 1) * error
    deviation = error * math.sqrt(len(values))
    visible = smallest_visible(deviation, len(values))
    return Regret(mean, mean - half, mean + half, deviation, len(values), of_orders, visible, tuple(by_order.tolist()))


def best_constant(constants: np.ndarray) -> int | None:
    """Returns the position of the constant with the highest mean over all units, the first of equal ones.

    Only constants without a missing or diverged member [K, orders, seeds] can be it; None where there is none. It is
    chosen by the same units that its mean is of, so that its mean is too high by luck, and each regret to it too large.

    >>> best_constant(np.array([[[1.0, 2.0]], [[2.0, 2.0]], [[9.0, math.nan]]]))
    1
    """
    if not constants.size:
        return None
    means = _means(constants).mean(axis=1)
    return None if np.isnan(means).all() else int(np.nanargmax(means))


def best_of_others(constants: np.ndarray) -> np.ndarray:
    """Returns in each order the scores [orders, seeds] of the constant with the highest mean over all *other* orders.

    Cross-validation that leaves one order out: no constant gains by luck, as the order that measures has not chosen.
    The expected regret to it is that to the best constant, or smaller where few orders choose a worse one. Its t
    interval is exact where one constant stands out; where several are level it is too short, as the choices share
    orders (Bengio & Grandvalet 2004, "No unbiased estimator of the variance of k-fold cross-validation"). NaN below
    `FEWEST_ORDERS`, and where no constant is complete.

    >>> best_of_others(np.array([[[1.0], [2.0], [9.0]], [[3.0], [3.0], [3.0]]])).tolist()
    [[1.0], [2.0], [3.0]]
    """
    _, orders, seeds = constants.shape
    by_order = _means(constants)
    if orders < FEWEST_ORDERS or np.isnan(by_order).all():
        return np.full((orders, seeds), math.nan)
    others = [np.delete(by_order, order, axis=1).mean(axis=1) for order in range(orders)]
    return np.array([constants[int(np.nanargmax(means)), order] for order, means in enumerate(others)])


def smallest_visible(deviation: float, units: int) -> float:
    """Returns the smallest mean of `units` differences that a two-sided t test at 5 % finds with a power of 80 %.

    deviation: their standard deviation, taken as the true one; the result is in its unit. It is δ·s/√n, where
    noncentral t with n − 1 degrees of freedom and noncentrality δ exceeds the critical value of t with probability 0.8;
    the far tail is left out, whose probability is below 1e-4 (Owen 1965, "The power of Student's t-test", JASA 60). NaN
    below two units, and without any spread, which is no measure of noise.

    >>> round(smallest_visible(1.0, 10), 3), smallest_visible(0.0, 10)
    (0.996, nan)
    """
    from scipy.special import nctdtrinc

    if units < 2 or not deviation > 0:
        return math.nan
    critical = student_quantile(1 - ALPHA / 2, units - 1)
    return float(nctdtrinc(units - 1, 1 - POWER, critical)) * deviation / math.sqrt(units)


def _means(constants: np.ndarray) -> np.ndarray:
    """Returns the means [K, orders] of constants over seeds; NaN in all orders for one that is not complete."""
    if not constants.size:
        return np.full(constants.shape[:2], math.nan)
    complete = ~np.isnan(constants).any(axis=(1, 2))
    return np.where(complete[:, None], constants.mean(axis=2), math.nan)
