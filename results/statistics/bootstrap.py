"""Bootstrap resamples of the seeds: all, or a fixed random draw."""

import math
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from results.statistics.paired import SEED

MOST_ENUMERATED = 7
"""Largest number of seeds whose resamples are enumerated: C(13, 7) = 1,716 of them."""

DRAWS = 4000
"""Resamples drawn where there are more seeds: the Monte Carlo error of a share is at most 0.8 %."""


FEWEST_SEEDS = 10
"""With fewer seeds nothing that rests on resamples is reported, see docs/coverage.md."""


@cache
def resamples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns draws of n out of n with replacement (Efron & Tibshirani 1993, ch. 6), and their probabilities.

    counts   [B, n]: how often a resample draws each seed; rows sum to n
    weights  [B]: the probability of each resample; sums to 1

    Both are read-only. Exact up to `MOST_ENUMERATED`: every multiset once, weighted by its multinomial probability
    n!/(∏ cᵢ!)/nⁿ. For more seeds `DRAWS` equally likely resamples of a fixed generator. Raises ValueError for n < 1.

    >>> [array.tolist() for array in resamples(2)]
    [[[2, 0], [1, 1], [0, 2]], [0.25, 0.5, 0.25]]
    """
    if n < 1:
        raise ValueError(f"the number of seeds must be >= 1, got {n}")
    if n > MOST_ENUMERATED:
        counts = np.random.default_rng([SEED, n]).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        weights = np.full(DRAWS, 1 / DRAWS)
    else:
        # Multisets, not sequences: for seven seeds 1,716 of them stand for 823,543 sequences.
        counts = np.array([np.bincount(drawn, minlength=n) for drawn in combinations_with_replacement(range(n), n)])
        ways = [math.factorial(n) / math.prod(map(math.factorial, row)) for row in counts.tolist()]
        weights = np.array(ways) / n**n
    # The result is cached and shared, so nobody may change it.
    for array in (counts, weights):
        array.setflags(write=False)
    return counts, weights


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Returns the smallest of the values [B] at or below which lies at least `share` of the weights [B].

    NaN without values.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.25, 0.5]), 0.5)
    2.0
    """
    if not len(values):
        return math.nan
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    # With some slack, so that a sum such as 0.1 + 0.2 does not miss the share 0.3 by rounding.
    return float(values[order][np.searchsorted(total, share * total[-1] * (1 - 1e-12))])
