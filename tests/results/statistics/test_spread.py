from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import bootstrap, t
from statsmodels.stats.multitest import multipletests

from results.statistics.bootstrap import DRAWS, resamples, weighted_quantile
from results.statistics.paired import holm, sign_flip_p
from results.statistics.spread import against, probability_best, share_of_luck, spread

NAN = math.nan


def test_spread_against_scipy() -> None:
    values = np.random.default_rng(1).normal(0.9, 0.01, 12)
    found = spread([*values, NAN])
    assert found[:4] == pytest.approx((12, values.mean(), values.std(ddof=1), values.std()))
    assert (found.low, found.high) == pytest.approx(t.interval(0.95, 11, values.mean(), values.std(ddof=1) / 12**0.5))
    # Another generator and twenty times the resamples: only the Monte Carlo error is left.
    reference = bootstrap((values,), np.mean, n_resamples=200_000, batch=10_000, rng=np.random.default_rng(2))
    width = found.bootstrap_high - found.bootstrap_low
    assert (found.bootstrap_low, found.bootstrap_high) == pytest.approx(reference.confidence_interval, abs=width / 30)
    assert spread(values.tolist()) == found == spread(values.tolist())


def test_spread_where_there_is_none() -> None:
    assert spread([0.3, 0.3, 0.1 + 0.2]) == (3, *(pytest.approx(v) for v in (0.3, 0, 0, 0.3, 0.3, 0.3, 0.3)))
    assert spread([2.0, NAN])[:2] == (1, 2.0) and all(math.isnan(v) for v in (spread([2.0]).std, spread([2.0]).low))
    assert spread([]).n == 0 and math.isnan(spread([]).mean)
    tiny = spread([1e-200, 2e-200, 4e-200] * 4)
    assert 0 < tiny.bootstrap_low < tiny.mean < tiny.bootstrap_high < 1e-199


def test_few_seeds_are_not_resampled() -> None:
    values = np.random.default_rng(2).normal(size=10)
    assert spread(values.tolist()).bootstrap_low < spread(values.tolist()).bootstrap_high
    assert all(math.isnan(v) for v in spread(values[:9].tolist())[-2:])


@pytest.mark.slow
def test_the_best_of_equal_points_wins_many_resamples() -> None:
    draws = (probability_best(np.random.default_rng(seed).normal(size=(11, 30))) for seed in range(100))
    # Margin: three standard errors of the mean of 100 shares, whose standard deviation is about 0.2.
    assert np.mean([shares.max() for shares in draws]) == pytest.approx(share_of_luck(11), abs=0.06)
    assert share_of_luck(2) > share_of_luck(11) > share_of_luck(50) > 1 / 11


@pytest.mark.slow
def test_holm_against_an_independent_implementation() -> None:
    rng = np.random.default_rng(3)
    for m in (1, 2, 7, 30):
        p = rng.random(m) ** 3
        p[m // 2 :] = p[0]  # ties
        assert holm(p.tolist()) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([0.01, NAN, 0.04]) == pytest.approx((0.02, NAN, 0.04), nan_ok=True)
    assert holm([]) == ()


def test_every_setting_against_the_baseline_over_the_seeds_both_have() -> None:
    baseline = [1.0, 2.0, 3.0, 4.0, NAN]
    rows = np.array([[2.0, 4.0, 6.0, 8.0, 9.0], [0.0, NAN, 4.0, NAN, 1.0], [NAN, NAN, NAN, NAN, 3.0]])
    one, two, nothing = against(rows, baseline)
    assert (one.n, one.mean, one.error) == (4, 2.5, pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2))
    assert (one.p, one.smallest_p) == (sign_flip_p([1, 2, 3, 4]), 0.125) and one.p == 0.125
    assert (one.p_holm, one.smallest_p_holm) == (0.25, 0.25)  # two settings share a seed with the baseline
    assert (two.n, two.mean, two.p, two.smallest_p_holm) == (2, 0.0, 1.0, 1.0)
    assert nothing.n == 0 and all(math.isnan(value) for value in nothing[1:])


def test_twenty_seeds_are_tested_as_well_as_five() -> None:
    rows = np.array([np.linspace(0.1, 1, 20), np.linspace(-1, 1, 20), np.r_[1.0, np.full(19, NAN)]])
    first, second, short = against(rows, np.zeros(20).tolist())
    assert first.p == first.smallest_p == 2 / 2**20 and second.p == 1.0 and short.p == 1.0
    assert first.smallest_p_holm == 3 * 2 / 2**20 and first.p_holm == 3 * first.p


def test_resamples_are_all_there_are_or_a_fixed_draw() -> None:
    for n in (1, 3, 5):
        counts, weights = resamples(n)
        assert len(counts) == math.comb(2 * n - 1, n) and weights.sum() == pytest.approx(1)
        drawn = [tuple(np.bincount(one, minlength=n)) for one in product(range(n), repeat=n)]
        shares = [drawn.count(tuple(row)) / n**n for row in counts.tolist()]
        assert weights == pytest.approx(shares)
    many, _ = resamples(9)
    assert many.shape == (DRAWS, 9) and (many.sum(axis=1) == 9).all()
    assert many.mean(axis=0) == pytest.approx(np.ones(9), abs=0.1)  # 6 standard errors
    with pytest.raises(ValueError, match="must be >= 1"):
        resamples(0)


def test_weighted_quantile_is_where_the_weight_reaches_the_share() -> None:
    values, weights = np.array([5.0, 1.0, 3.0]), np.array([0.2, 0.3, 0.5])
    assert [weighted_quantile(values, weights, q) for q in (0.0, 0.3, 0.31, 0.8, 0.81, 1.0)] == [1, 1, 3, 3, 5, 5]
    assert math.isnan(weighted_quantile(np.empty(0), np.empty(0), 0.5))


def test_probability_best_by_drawing_seeds_one_by_one() -> None:
    scores = np.random.default_rng(4).integers(0, 3, (4, 4)).astype(float)  # whole numbers, so that there are ties
    shares = np.zeros(4)
    for drawn in product(range(4), repeat=4):
        sums = scores[:, drawn].sum(axis=1)
        shares += (sums == sums.max()) / (sums == sums.max()).sum() / 4**4
    assert probability_best(scores) == pytest.approx(shares)
    shifted = probability_best(scores * 0.1 + 1e3 * np.arange(4))  # an effect of the seed changes nothing but rounding
    assert shifted == pytest.approx(shares)


def test_probability_best_of_tables_with_holes() -> None:
    scores = np.array([[3.0, 3.0, 1.0, 2.0], [2.0, 4.0, NAN, NAN], [1.0, 1.0, 0.0, 0.0], [NAN, NAN, NAN, NAN]])
    shares = np.zeros(4)
    for drawn in product(range(4), repeat=4):
        seen = [scores[1, s] - scores[0, s] for s in drawn if s < 2]
        gap = np.mean(seen) if seen else -1.0
        shares += np.array([gap < 0, gap > 0, 0, 0]) / 4**4 + np.array([0.5, 0.5, 0, 0]) * (gap == 0) / 4**4
    assert probability_best(scores) == pytest.approx(shares)
    assert probability_best(np.full((2, 3), NAN)).tolist() == [0, 0]
    assert probability_best(np.array([[1.0], [1.0]])).tolist() == [0.5, 0.5]


def test_many_seeds_are_drawn_at_random() -> None:
    scores = np.stack([np.r_[np.ones(4), np.zeros(5)], np.full(9, 0.5)])
    # P(more than half of 9 draws with chance 4/9) for the first; the Monte Carlo error is 0.8 %.
    exact = sum(math.comb(9, k) * (4 / 9) ** k * (5 / 9) ** (9 - k) for k in range(5, 10))
    assert probability_best(scores) == pytest.approx([exact, 1 - exact], abs=0.025)
