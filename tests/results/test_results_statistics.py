from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.statistics import fit_parabola, paired, sign_flip_p, smallest_sign_flip_p


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
    with pytest.raises(ValueError, match="must be in"):
        sign_flip_p([])


def test_parabola_finds_a_known_vertex_among_clustered_points() -> None:
    x = np.r_[np.linspace(0.1, 1, 10), 0.12 + np.linspace(-1e-3, 1e-3, 30)]
    fit = fit_parabola(x.tolist(), (92 - 25 * (x - 0.12) ** 2).tolist())
    assert fit is not None and fit.inside and fit.n == 40
    assert (fit.vertex, fit.peak, fit.curvature) == pytest.approx((0.12, 92, -25))
    assert fit.at(0.5) == pytest.approx(92 - 25 * 0.38**2)
    assert fit.r_squared == pytest.approx(1)


def test_no_parabola_through_three_points_or_a_line() -> None:
    assert fit_parabola([0, 1, 2, 2], [1, 2, 1, 1]) is None
    assert fit_parabola([0, 1, 2, 3], [0, 1, 2, 3]) is None
    assert fit_parabola([0, 1, 2, 3], [5, 5, 5, 5]) is None
    outside = fit_parabola([0, 1, 2, 3], [1, 4, 9, 16.5])
    assert outside is not None and not outside.inside
