"""What so many seeds can tell apart."""

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from results.statistics.power import LEAST_FOR_A_TEST, in_words, paired_noise, resolution

NOTHING = np.zeros((0, 5))


def test_the_smallest_p_is_that_of_all_signs_alike():
    assert [resolution(seeds, NOTHING).smallest_p for seeds in (1, 2, 5, 6)] == [1.0, 0.5, 0.0625, 0.03125]
    assert LEAST_FOR_A_TEST == 6
    assert "5 seeds cannot reach p < 0.05" in " ".join(in_words(resolution(5, NOTHING)))
    assert "6 seeds can reach p = 0.03125" in " ".join(in_words(resolution(6, NOTHING)))
    assert list(in_words(resolution(1, NOTHING))) == [
        "One seed gives no measure of noise: no difference can be detected."
    ]


def test_the_half_width_is_that_of_a_paired_t_interval():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 7))
    interval = ttest_rel(one, other).confidence_interval(0.95)
    found = resolution(7, NOTHING).half_width * np.std(one - other, ddof=1)
    assert found == pytest.approx((interval.high - interval.low) / 2)
    assert resolution(7, NOTHING).half_width == pytest.approx(t.ppf(0.975, 6) / math.sqrt(7))


def test_the_noise_of_two_values_is_the_spread_of_their_differences():
    table = np.random.default_rng(2).normal(0.8, 0.01, (2, 50)) + np.linspace(0, 0.1, 50)
    assert paired_noise(table) == pytest.approx(np.std(table[0] - table[1], ddof=1))
    table = np.vstack([table, np.full((1, 50), np.nan)])  # a value that is not complete plays no part
    assert paired_noise(table) == pytest.approx(np.std(table[0] - table[1], ddof=1))


def test_without_two_values_and_seeds_it_is_unknown():
    assert math.isnan(paired_noise(NOTHING)) and math.isnan(paired_noise(np.ones((3, 1))))
    assert "not measured yet" in " ".join(in_words(resolution(5, NOTHING)))
    known = resolution(5, np.random.default_rng(3).normal(0.8, 0.01, (6, 5)))
    assert known.points == pytest.approx(100 * known.noise * known.half_width) and known.points > 0
    assert "percentage points" in " ".join(in_words(known))
