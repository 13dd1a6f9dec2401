"""Equivalence tests against scipy's Welch test, figures by hand, and their own error rates."""

import math

import numpy as np
import pytest
from scipy import stats

from results.statistics.equivalence import OPEN, OUTSIDE, SPREADS, WITHIN, equivalence, seeds_needed


@pytest.mark.parametrize("margin", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("shift", [-2.0, -0.6, 0.0, 0.9, 2.5])
def test_p_and_intervals_are_those_of_scipy(margin, shift):
    """Both one-sided tests, and Welch's intervals, from means, deviations and numbers alone."""
    scores, printed, deviation, n = np.array([70.1, 71.4, 69.8, 72.0, 70.7]) + shift, 70.9, 0.87, 10
    found = equivalence(scores, printed, SPREADS["sd"](deviation, n), n, margin)
    ours, tests = (scores.mean(), scores.std(ddof=1), len(scores)), []
    for edge, side in ((-margin, "greater"), (margin, "less")):
        tests.append(
            stats.ttest_ind_from_stats(*ours, printed + edge, deviation, n, equal_var=False, alternative=side).pvalue
        )
    assert found.p == pytest.approx(max(tests), rel=1e-9)
    samples = stats.norm.ppf((np.arange(n) + 0.5) / n)  # any sample with that mean and deviation
    other = printed + deviation * (samples - samples.mean()) / samples.std(ddof=1)
    test = stats.ttest_ind(scores, other, equal_var=False)
    for confidence in (0.9, 0.95):
        assert found.interval(confidence) == pytest.approx(tuple(test.confidence_interval(confidence)), rel=1e-9)
    assert (found.answer == WITHIN) == (max(tests) < 0.05)
    low, high = test.confidence_interval(0.95)
    assert (found.answer == OUTSIDE) == (low > margin or high < -margin)


def test_a_printed_mean_without_a_spread_is_exact():
    scores = np.array([72.4, 73.4, 74.4])
    found = equivalence(scores, 72.0, 0.0, 1, 2.0)
    test = stats.ttest_1samp(scores, 72.0)
    assert found.df == 2 and found.error == pytest.approx(1 / math.sqrt(3))
    assert found.interval(0.95) == pytest.approx(np.array(test.confidence_interval(0.95)) - 72.0)
    assert found.p == pytest.approx(stats.t.sf((2.0 - 1.4) / (1 / math.sqrt(3)), 2))


def test_spreads_by_hand():
    """Of the values 1, 2, 3, 6: mean 3, sums of squares 14."""
    error = math.sqrt(14 / 3 / 4)
    assert SPREADS["sd"](math.sqrt(14 / 3), 4) == pytest.approx(error)
    assert SPREADS["population sd"](math.sqrt(14 / 4), 4) == pytest.approx(error)
    assert SPREADS["se"](error, 4) == error


def test_few_and_equal_values():
    one = equivalence([70.0], 70.0, 0.3, 10, 1.0)
    assert one.answer == OPEN and one.p == 1 and seeds_needed(one, 1, 0.3, 10) == 2
    assert [equivalence([x, x], 70.0, 0.0, 1, 1.0).answer for x in (70.9, 71.0, 71.1)] == [WITHIN, OPEN, OUTSIDE]
    edge = equivalence([71.0, 71.0], 70.0, 0.0, 1, 1.0)
    assert edge.p == 1 and seeds_needed(edge, 2, 0.0, 1) is None
    theirs = equivalence([70.0, 70.0], 70.0, 0.1, 5, 1.0)
    assert theirs.df == 4 and theirs.answer == WITHIN


def draws(difference, seeds, n, size=20_000):
    """Answers of many tests: ours with a deviation of 1, print with one of 0.5 and its mean and deviation estimated."""
    rng = np.random.default_rng(7)
    ours, theirs = rng.normal(difference, 1.0, (size, seeds)), rng.normal(0.0, 0.5, (size, n))
    means, errors = theirs.mean(1), theirs.std(1, ddof=1) / math.sqrt(n)
    # As the class has it, for all tests at once.
    own = ours.var(1, ddof=1) / seeds
    df = (own + errors**2) ** 2 / (own**2 / (seeds - 1) + errors**4 / (n - 1))
    return ours.mean(1) - means, np.sqrt(own + errors**2), df


@pytest.mark.parametrize(("seeds", "n"), [(5, 10), (10, 5), (20, 20)])
def test_error_rates(seeds, n):
    """At the margin itself, the worst case: within at most 5 %, outside at most 2.5 %, with a Monte Carlo error."""
    margin = 3.0
    difference, error, df = draws(margin, seeds, n)
    within = (np.abs(difference) + stats.t.ppf(0.95, df) * error < margin).mean()
    outside = (np.abs(difference) - stats.t.ppf(0.975, df) * error > margin).mean()
    assert 0.04 < within < 0.055 and 0.018 < outside < 0.03
    # The class agrees with the formulas, test by test.
    rng = np.random.default_rng(7)
    ours, theirs = rng.normal(margin, 1.0, (20_000, seeds))[:300], rng.normal(0.0, 0.5, (20_000, n))[:300]
    errors = theirs.std(1, ddof=1) / math.sqrt(n)
    for k in range(300):
        found = equivalence(ours[k], theirs[k].mean(), errors[k], n, margin)
        assert (found.difference, found.error, found.df) == pytest.approx((difference[k], error[k], df[k]))


@pytest.mark.parametrize(("difference", "margin"), [(0.3, 1.0), (2.0, 1.0)], ids=["within", "outside"])
def test_the_seeds_that_are_needed_give_an_answer(difference, margin):
    """Four times in five, where difference and spread are the true ones; with few seeds fewer than half."""
    deviation, error, n = 1.0, 0.1, 20
    scores = difference + deviation * np.array([-1.0, 0.0, 1.0])  # mean and deviation are exact
    found = equivalence(scores, 0.0, error, n, margin)
    assert found.answer == OPEN
    needed = seeds_needed(found, 3, error, n)
    wanted = WITHIN if difference < margin else OUTSIDE

    def rate(seeds):
        rng = np.random.default_rng(3)
        tests = (
            equivalence(rng.normal(difference, deviation, seeds), rng.normal(0.0, error), error, n, margin).answer
            for _ in range(1500)
        )
        return np.mean([answer == wanted for answer in tests])

    assert 0.75 < rate(needed) < 0.87 and rate(needed // 3) < 0.5


def test_no_number_of_seeds_makes_up_for_a_printed_error():
    found = equivalence([70.0, 71.0, 72.0], 70.5, 0.8, 5, 1.0)
    assert found.answer == OPEN and seeds_needed(found, 3, 0.8, 5) is None


@pytest.mark.parametrize(("difference", "margin"), [(0.0, 1.0), (0.0, 0.6), (0.3, 1.0), (2.0, 1.0)])
def test_so_many_seeds_tell_four_times_in_five(difference, margin):
    """Also near a difference of 0, where both one-sided tests may fail to reject."""
    scores = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    scores = scores / scores.std(ddof=1) + difference
    needed = seeds_needed(equivalence(scores, 0.0, 0.0, 1, margin), 5, 0.0, 1)
    draws = np.random.default_rng(0).normal(difference, 1.0, (4000, needed))
    told = np.mean([equivalence(row, 0.0, 0.0, 1, margin).answer != "cannot tell" for row in draws])
    assert 0.77 < told < 0.9
