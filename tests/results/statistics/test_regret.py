from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from results.statistics.regret import best_constant, best_of_others, regret, smallest_visible

NAN = math.nan


def test_orders_are_the_units() -> None:
    """Two orders of three seeds: the mean of 2 and 5, with one degree of freedom, whatever the seeds do."""
    best = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    result = regret(best, np.zeros((2, 3)))
    assert (result.mean, result.units, result.of_orders, result.by_order) == (3.5, 2, True, (2.0, 5.0))
    half = stats.t.ppf(0.975, 1) * np.std([2, 5], ddof=1) / math.sqrt(2)
    assert (result.low, result.high) == pytest.approx((3.5 - half, 3.5 + half))
    assert result.deviation == pytest.approx(np.std([2, 5], ddof=1))


def test_more_seeds_do_not_narrow_the_interval() -> None:
    table = np.array([[1.0, 3.0], [4.0, 6.0], [0.0, 1.0]])
    few, many = (regret(np.tile(table, times), np.zeros((3, 2 * times))) for times in (1, 10))
    assert (few.low, few.high, few.visible) == pytest.approx((many.low, many.high, many.visible))


def test_orders_weigh_the_same_where_members_are_missing() -> None:
    best = np.array([[1.0, 3.0, 5.0], [7.0, NAN, NAN], [NAN, NAN, NAN]])
    result = regret(best, np.zeros((3, 3)))
    assert (result.mean, result.units) == (5.0, 2)
    assert result.by_order[:2] == (3.0, 7.0) and math.isnan(result.by_order[2])


def test_with_one_order_seeds_are_the_units() -> None:
    values = [1.0, 2.0, 6.0]
    result = regret(np.array([values]), np.zeros((1, 3)))
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (result.units, result.of_orders) == (3, False)
    assert (result.mean, result.low, result.high) == pytest.approx((3.0, low, high))
    # Also where the other orders have no result yet.
    unfinished = regret(np.array([values, [NAN] * 3]), np.zeros((2, 3)))
    assert not unfinished.of_orders and unfinished[:5] == pytest.approx(result[:5])


@pytest.mark.parametrize(("table", "mean"), [([[2.0]], 2.0), ([[NAN]], NAN), ([[NAN, NAN], [NAN, NAN]], NAN)])
def test_fewer_than_two_units_have_no_interval(table: list[list[float]], mean: float) -> None:
    result = regret(np.array(table), np.zeros_like(table))
    assert result.mean == pytest.approx(mean, nan_ok=True)
    assert all(math.isnan(one) for one in (result.low, result.high, result.deviation, result.visible))


@pytest.mark.parametrize("units", [2, 3, 5, 10, 40])
def test_the_smallest_visible_regret_against_statsmodels(units: int) -> None:
    size = smallest_visible(1.7, units)
    assert size == pytest.approx(1.7 * smallest_visible(1.0, units))
    if units > 2:  # where its noncentral t overflows
        solved = TTestPower().solve_power(nobs=units, alpha=0.05, power=0.8, alternative="two-sided")
        assert size / 1.7 == pytest.approx(solved, rel=1e-4)


@pytest.mark.slow
def test_the_smallest_visible_regret_is_found_in_four_of_five_studies() -> None:
    rng = np.random.default_rng(1)
    for orders in (2, 5):
        tables = smallest_visible(1.0, orders) + rng.normal(size=(4000, orders, 1))
        result = [regret(table, np.zeros((orders, 1))) for table in tables]
        share = np.mean([one.low > 0 or one.high < 0 for one in result])
        assert share == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / 4000))


@pytest.mark.parametrize(("deviation", "units"), [(0.0, 5), (1.0, 1), (NAN, 5)])
def test_without_a_spread_nothing_is_said_about_visibility(deviation: float, units: int) -> None:
    assert math.isnan(smallest_visible(deviation, units))


def test_the_best_constant_has_no_missing_member() -> None:
    scores = np.array([[[1.0, 1.0]], [[3.0, 1.0]], [[2.0, 2.0]], [[9.0, NAN]]])
    assert best_constant(scores) == 1
    assert best_constant(scores[3:]) is None and best_constant(np.empty((0, 1, 2))) is None


def test_the_constant_of_an_order_is_chosen_on_the_others() -> None:
    """The second value is best over all, by its luck in the last order alone."""
    scores = np.array([[[5.0, 5.0], [4.0, 6.0], [5.0, 5.0]], [[4.0, 4.0], [4.0, 4.0], [9.0, 9.0]]])
    assert best_constant(scores) == 1
    assert best_of_others(scores).tolist() == [[4.0, 4.0], [4.0, 4.0], [5.0, 5.0]]
    assert np.isnan(best_of_others(scores[:, :2])).all()
    lost = np.concatenate([scores, np.full((1, 3, 2), NAN)])
    assert best_of_others(lost).tolist() == best_of_others(scores).tolist()
    assert np.isnan(best_of_others(lost[2:])).all()


def drawn(rng: np.random.Generator, gap: float, values: int, orders: int, seeds: int = 3) -> np.ndarray:
    """A_T of `values` constants, of which the first is better than the others by `gap`."""
    level = np.zeros((values, 1, 1))
    level[0] = gap
    by_order = rng.normal(size=(1, orders, 1)) + rng.normal(size=(values, orders, 1))
    return level + by_order + rng.normal(size=(values, orders, seeds))


@pytest.mark.slow
@pytest.mark.parametrize("orders", [3, 5, 10])
def test_coverage_where_one_constant_stands_out(orders: int) -> None:
    rng, hits = np.random.default_rng(orders), np.zeros(2)
    draws = 1000
    for _ in range(draws):
        scores = drawn(rng, 9.0, 6, orders)
        best = scores[best_constant(scores) or 0]
        both = regret(best, scores[-1]), regret(best_of_others(scores), scores[-1])
        hits += [one.low <= 9.0 <= one.high for one in both]
    # Four standard errors of 95 %.
    assert hits / draws == pytest.approx([0.95, 0.95], abs=4 * math.sqrt(0.95 * 0.05 / draws))


@pytest.mark.slow
def test_only_the_best_in_hindsight_is_lucky_where_all_are_level() -> None:
    """The true regret is 0: to the best in hindsight it comes out too large, to that of other orders it does not."""
    rng, means = np.random.default_rng(0), []
    for _ in range(600):
        scores = drawn(rng, 0.0, 11, 5)
        best = scores[best_constant(scores) or 0]
        means.append((regret(best, scores[-1]).mean, regret(best_of_others(scores), scores[-1]).mean))
    (lucky, fair), error = np.mean(means, axis=0), np.std(means, axis=0) / math.sqrt(len(means))
    assert lucky > 0.5 > 20 * error[0] and abs(fair) < 4 * error[1]
