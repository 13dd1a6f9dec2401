"""Numbers as they are printed: nothing that is told may be wrong by rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest

from results.labels import epsilon_text, estimate_text, outwards
from search_spaces.interval import Grid, Interval


@pytest.mark.parametrize("log", [False, True])
def test_a_told_interval_contains_the_estimated_one_and_is_hardly_wider(log: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        middle, width = rng.uniform(0, 1), 10 ** rng.uniform(-9, 0)
        low, high = sorted(rng.uniform(max(0, middle - width), min(1, middle + width), 2))
        low, high = (10 ** (6 * low - 5), 10 ** (6 * high - 5)) if log else (low, high)
        told = tuple(map(float, outwards(low, high)))
        assert told[0] <= low * (1 + 1e-11) and high * (1 - 1e-11) <= told[1]
        # Two digits of the width, or of the end where that is finer: at most a tenth more at each side.
        assert told[1] - told[0] <= 1.2 * (high - low) * (1 + 1e-9) + 1e-11 * high
        assert Interval(*told).width > 0, "it can be searched again"
        between = estimate_text((low + high) / 2, (low, high))
        assert told[0] <= float(between) <= told[1]


def test_ends_of_a_search_stay_as_they_are() -> None:
    assert outwards(0.0, 1.0) == ("0", "1") and outwards(0.0678, 0.9) == ("0.0678", "0.9")
    assert outwards(0.34561, 0.34639) == ("0.34561", "0.34639")
    assert outwards(0.25, 0.25) == ("0.25", "0.25")
    assert outwards(math.nan, math.nan) == ("nan", "nan")


def test_points_of_a_narrow_grid_are_told_apart() -> None:
    texts = [epsilon_text(value) for value in Grid.over(Interval(0.3456101, 0.3456111), 11).coordinates]
    assert texts[:2] == ["0.3456101", "0.3456102"] and len(set(texts)) == 11
