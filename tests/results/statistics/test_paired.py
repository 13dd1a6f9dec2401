from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.statistics.paired import paired, sign_flip_p, smallest_sign_flip_p


def test_paired_uses_common_measured_seeds_only() -> None:
    pair = paired({0: 3.0, 1: 5.0, 2: 4.0, 3: math.nan, 9: 1.0}, {0: 1.0, 1: 2.0, 2: 5.0, 3: 0.0})
    assert pair.differences == (2.0, 3.0, -1.0)
    assert pair.mean == pytest.approx(4 / 3)
    assert pair.error == pytest.approx(np.std([2, 3, -1], ddof=1) / math.sqrt(3))
    assert (pair.n, pair.wins) == (3, 2)
    assert math.isnan(paired({0: 1.0}, {0: 0.0}).error)
    assert paired({0: 1.0}, {1: 0.0}).n == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=7))
def test_sign_flip_against_enumeration(differences: list[int]) -> None:
    observed = abs(sum(differences))
    flips = [
        abs(sum(s * d for s, d in zip(f, differences, strict=True))) for f in product((1, -1), repeat=len(differences))
    ]
    assert sign_flip_p(differences) == pytest.approx(sum(f >= observed for f in flips) / len(flips))


def test_five_seeds_cannot_reach_five_percent() -> None:
    assert sign_flip_p([1, 2, 3, 4, 5]) == smallest_sign_flip_p(5) == 0.0625
    assert sign_flip_p([1, 2, 3, 4, 5, 6]) == smallest_sign_flip_p(6) < 0.05
    with pytest.raises(ValueError, match="must be >= 1, got 0"):
        sign_flip_p([])


def test_many_pairs_are_counted_exactly_too() -> None:
    # Of n ones the sum is binomial: the p-value of k positive ones is known.
    for n, k in ((17, 12), (24, 17), (36, 26)):
        exact = 2 * sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n
        assert sign_flip_p([1.0] * k + [-1.0] * (n - k)) == pytest.approx(exact, rel=1e-12)
    assert sign_flip_p([0.1] * 20 + [-0.1] * 20) == 1.0, "whatever the rounding"
    assert sign_flip_p([0.1 * i for i in range(1, 21)]) == smallest_sign_flip_p(20) == 2 / 2**20


def test_beyond_that_flips_are_drawn() -> None:
    n, k = 60, 38
    exact = 2 * sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n  # 0.052
    values = [1.0] * k + [-1.0] * (n - k)
    assert sign_flip_p(values) == pytest.approx(exact, abs=5 * math.sqrt(exact / 1e5))
    assert sign_flip_p(values) == sign_flip_p(values)
    assert sign_flip_p([1.0] * 60) == smallest_sign_flip_p(60) == 1e-5
