"""Whether the best value of a hyperparameter moves with the order of tasks.

Scores are [values, orders, seeds], NaN where a run is missing or diverged. `complete` leaves out whole values, orders
or seeds, those of which the largest share is missing first, until no cell is.
"""

import math
from itertools import permutations, product

import numpy as np

from results.labels import count_text, epsilon_text
from results.statistics.paired import ALPHA, RELATIVE_ZERO, SEED
from results.statistics.variance_shares import complete

DRAWS = 9_999
"""Most permutations that are all counted, and how many are drawn where there are more."""


def best_values(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns the value [orders] with the highest mean over the seeds of an order, of values [values].

    The first of equal ones. NaN for an order that is left out, and where all values have the same mean.

    >>> best_values(np.array([0.0, 0.5]), np.array([[[1.0, 2.0], [5.0, 3.0]], [[2.0, 3.0], [3.0, 3.0]]])).tolist()
    [0.5, 0.0]
    """
    used = complete(scores)
    best = np.full(scores.shape[1], math.nan)
    means = scores[np.ix_(*used)].mean(axis=2) if all(mask.any() for mask in used) else np.empty((0, 0))
    for order, mean in zip(np.flatnonzero(used[1]), means.T, strict=False):
        if np.ptp(mean) > RELATIVE_ZERO * np.abs(mean).max():
            best[order] = values[used[0]][mean.argmax()]
    return best


def order_effect_p(scores: np.ndarray) -> float | None:
    """Returns the p-value of "the curve over the values does not depend on the order"; None below two orders or seeds.

    Statistic: sum of squares of the interaction value × order, of scores without the mean of their unit (order and
    seed) and that of their value. Under the null the curves of a seed are exchangeable over the orders, whatever a seed
    does to its curves: the orders are permuted within each seed, independently (Anderson & ter Braak 2003). Exact up to
    `DRAWS` permutations that differ, else (1 + hits)/(1 + `DRAWS`) of a fixed generator (Phipson & Smyth 2010). Levels
    that move with the order are no effect, noise that does may be taken for one.

    >>> order_effect_p(np.array([[[9.0, 9.1, 9.2], [0.0, 0.1, 0.3]], [[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]]))
    0.25
    """
    used = complete(scores)
    table = scores[np.ix_(*used)]
    values, orders, seeds = table.shape
    if min(orders, seeds) < 2 or not values:
        return None
    # The mean of a value is the same for every permutation: without it rounding stays small.
    left = table - table.mean(axis=0) - table.mean(axis=(1, 2), keepdims=True) + table.mean()
    curves = left.transpose(2, 1, 0).reshape(seeds * orders, values)
    # The statistic is a sum of products of curves that stand for one order: no permutation has to look at the values.
    inner = curves @ curves.T
    measured = _interaction(inner, np.arange(orders)[None, None] + np.zeros((1, seeds, 1), dtype=int))[0]
    # A permutation that gives the same sum in another order of addition must count as equal.
    slack = RELATIVE_ZERO * (np.abs(inner).sum() + float(np.abs(table).max()) ** 2 * table.size)
    exact = _count(orders, seeds) <= DRAWS
    drawn = _all(orders, seeds) if exact else _draw(orders, seeds)
    hits = int(np.count_nonzero(_interaction(inner, drawn) >= measured - slack))
    return hits / len(drawn) if exact else (1 + hits) / (1 + len(drawn))


def smallest_p(orders: int, seeds: int) -> float:
    """Returns the smallest p that `order_effect_p` can reach.

    >>> smallest_p(2, 5), smallest_p(10, 5)
    (0.0625, 0.0001)
    """
    return max(1 / _count(orders, seeds), 1 / (1 + DRAWS))


def sentence(values: np.ndarray, scores: np.ndarray, name: str = "ε") -> str | None:
    """Returns where the best value lies, and whether it moves with the order; None for fewer than two orders.

    values: [values]; name: of the hyperparameter, as people write it.
    """
    best = best_values(values, scores)
    orders = int((~np.isnan(best)).sum())
    if orders < 2:
        return None
    low, high = (epsilon_text(float(end)) for end in (np.nanmin(best), np.nanmax(best)))
    where = f"is {low} in all {orders} orders" if low == high else f"lies between {low} and {high} in {orders} orders"
    text = f"The best {name} {where}"
    used = complete(scores)
    p, least = order_effect_p(scores), smallest_p(int(used[1].sum()), int(used[2].sum()))
    if p is None:
        return f"{text}; whether it moves with the order cannot be tested with one seed."
    if p < ALPHA:
        return f"{text}; the curve over {name} depends on the order (p = {p:.2g})."
    limit = f"; {count_text(int(used[2].sum()), 'seed')} cannot reach {ALPHA:g}" if least >= ALPHA else ""
    return f"{text}; that it moves with the order is not shown (p = {p:.2g}{limit})."


def _interaction(inner: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns the statistic [B], up to what all permutations have in common, divided by 2.

    inner: [seeds · orders, seeds · orders] products of curves; places: [B, seeds, orders], which order of a seed stands
    for each order.
    """
    seeds, orders = places.shape[1:]
    rows = places + orders * np.arange(seeds)[None, :, None]
    total = np.zeros(len(places))
    for one, other in zip(*np.triu_indices(seeds, 1), strict=True):
        total += inner[rows[:, one], rows[:, other]].sum(axis=1)
    return total


def _count(orders: int, seeds: int) -> int:
    """Returns how many permutations differ: that of the first seed stays, as names of orders do not matter."""
    return math.prod([math.factorial(orders)] * (seeds - 1))


def _all(orders: int, seeds: int) -> np.ndarray:
    """Returns the `_count` permutations that differ, [B, seeds, orders]."""
    others = product(permutations(range(orders)), repeat=seeds - 1)
    return np.array([(tuple(range(orders)), *permutation) for permutation in others])


def _draw(orders: int, seeds: int) -> np.ndarray:
    """Returns `DRAWS` random permutations [DRAWS, seeds, orders] of a fixed generator."""
    return np.random.default_rng(SEED).permuted(np.tile(np.arange(orders), (DRAWS, seeds, 1)), axis=2)
