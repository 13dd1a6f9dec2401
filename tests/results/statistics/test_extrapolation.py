"""A_T after more tasks than were seen: exact on matrices of the model's own form, wider the farther it looks."""

import numpy as np
import pytest

from results.statistics import extrapolation
from results.statistics.extrapolation import Extrapolation

X = np.linspace(0, 1, 6)[:, None]


def lost(age, b, c, p):
    """What the model says is lost on the scale of the logarithm, by a loop-free form of its own: none at age 0."""
    return 0.0 if age == 0 else b + c * ((age**p - 1) / p if p else np.log(age))


def matrix(k, level, b, c, p, rng=None, noise=0.0):
    """a [k, k] of the model's own form; what is above the diagonal is not measured."""
    a = np.full((k, k), np.nan)
    for i in range(k):
        for j in range(i + 1):
            a[i, j] = level * np.exp(-lost(i - j, b, c, p) + (rng.normal(0, noise) if rng else 0.0))
    return a


def final(tasks, level, b, c, p):
    return np.mean([level * np.exp(-lost(age, b, c, p)) for age in range(tasks)])


def members(k, p, seeds=3, noise=0.0):
    """(accuracies [6, S, k, k], coefficients): the first values learn more, and forget more from task to task."""
    rng = np.random.default_rng(0)
    coefficients = [(0.95 - 0.02 * x, 0.01 + 0.01 * x, 0.03 - 0.02 * x) for x in X[:, 0]]
    return np.array([[matrix(k, *one, p, rng, noise) for _ in range(seeds)] for one in coefficients]), coefficients


@pytest.mark.parametrize("p", extrapolation.POWERS)
def test_matrices_of_its_own_form_are_continued_exactly(p):
    a, coefficients = members(5, p)
    forecast = Extrapolation.fit(X, a, 17)
    expected = [final(17, *one, p) for one in coefficients]
    np.testing.assert_allclose(forecast.mean, expected, atol=2e-5)
    np.testing.assert_allclose(forecast.seen, [np.mean(a[row, 0, -1]) for row in range(6)], atol=2e-5)
    assert forecast.choice == int(np.argmax(expected))


def test_three_tasks_leave_the_power_to_its_prior():
    a, coefficients = members(3, 1.0)
    forecast = Extrapolation.fit(X, a, 17)
    # Of the power, only what of three tasks is the same by all of them: the loss at age 2.
    same = [[final(17, level, b, c / ((2**p - 1) / p), p) for p in (1.0, -1.0)] for level, b, c in coefficients]
    assert all(low < mean < high for mean, (low, high) in zip(forecast.mean, same, strict=True))
    np.testing.assert_allclose(forecast.seen, [np.mean(a[row, 0, -1]) for row in range(6)], atol=2e-5)


def test_a_case_by_hand():
    """0.9 when learned, 0.8 ever after: nothing is lost by later tasks, so that A_T = (0.9 + 0.8 (T − 1))/T."""
    a = np.array([[0.9, np.nan, np.nan], [0.8, 0.9, np.nan], [0.8, 0.8, 0.9]])
    forecast = Extrapolation.fit(np.zeros((1, 1)), np.array([[a, a]]), 10)
    assert forecast.mean == pytest.approx([(0.9 + 9 * 0.8) / 10])
    assert forecast.seen == pytest.approx([(0.9 + 2 * 0.8) / 3])
    assert forecast.choice == 0 and forecast.behind_low == forecast.behind_high == [0.0] and forecast.resolved()


def test_a_value_that_forgets_slowly_wins_on_many_tasks_alone():
    """The first value is the best one of three tasks, the last one of seventeen."""
    a, _ = members(5, 1.0)
    assert int(np.argmax(a[:, 0, 2, :3].mean(axis=1))) == 0
    assert Extrapolation.fit(X, a, 17).choice == 5


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5])
def test_intervals_widen_with_the_number_of_tasks(k):
    a, _ = members(k, 0.75, noise=0.003)
    widths = [one.high - one.low for one in (Extrapolation.fit(X, a, tasks) for tasks in (k, 8, 12, 17, 30))]
    assert np.all(np.diff(widths, axis=0) > 0)
    ends = [one.behind_high - one.behind_low for one in (Extrapolation.fit(X, a, tasks) for tasks in (8, 17))]
    assert np.nansum(ends[1]) > np.nansum(ends[0])


def test_seeds_narrow_the_interval():
    few, many = (members(5, 0.75, seeds=seeds, noise=0.01)[0] for seeds in (3, 12))
    a, b = (Extrapolation.fit(X, one, 6) for one in (few, many))
    assert np.median(b.high - b.low) < np.median(a.high - a.low)


@pytest.mark.slow
def test_one_seed_says_nothing_about_others():
    forecast = Extrapolation.fit(X, members(5, 0.75, seeds=1, noise=0.01)[0], 17)
    assert (forecast.low == 0).all() and (forecast.high == 1).all() and np.isfinite(forecast.mean).all()
    assert np.isfinite(forecast.behind_low).all()


def of_tasks(difficulty, k, seeds=3, noise=0.003):
    """Accuracies [6, S, k, k] of tasks that differ by factors [S, k]; every column is a task."""
    return members(k, 0.75, seeds, noise)[0] * difficulty[None, :, None, :]


def test_tasks_that_seeds_share_widen_the_level_and_change_no_choice():
    k, rng = 8, np.random.default_rng(3)
    own = np.exp(rng.normal(0, 0.1, (3, k)))
    shared = np.broadcast_to(own[0], own.shape)
    alike, other, same = (Extrapolation.fit(X, of_tasks(one, k), k + 1) for one in (np.ones((3, k)), own, shared))
    width = np.median(same.high - same.low)
    assert width > 3 * np.median(alike.high - alike.low)
    learned = 0.95 * own[0]
    expected = (
        2 * 2.365 * learned.std(ddof=1) * np.sqrt(1 / k + 1 / (k + 1))
    )  # Student's t with seven degrees of freedom
    assert width == pytest.approx(expected, rel=0.1)
    assert extrapolation._of_tasks(own, k + 1) < 0.6 * extrapolation._of_tasks(shared, k + 1), "seeds have it already"
    np.testing.assert_allclose(same.behind_low, alike.behind_low, atol=0.01)
    assert same.choice == alike.choice and np.isfinite(other.low).all()


@pytest.mark.slow
def test_the_level_of_tasks_to_come_is_covered_where_seeds_share_them():
    """Of 200 streams of other tasks: the interval of a mean of k tasks that are drawn with those to come."""
    rng, k, tasks, held = np.random.default_rng(4), 5, 10, 0
    for _ in range(200):
        difficulty = rng.normal(0.5, 0.08, k + tasks)
        learned = difficulty[:k] + rng.normal(0, 0.02, (3, k))
        half = extrapolation._of_tasks(learned, tasks)
        held += abs(learned.mean() - difficulty[k:].mean()) <= np.hypot(half, 1.96 * 0.02 / np.sqrt(3 * k))
    assert 0.9 <= held / 200 <= 1


def test_tasks_of_its_own_for_every_seed_are_in_the_noise_between_seeds_already():
    """An estimate without bias of no common variance is below 0, and so no width, about as often as not."""
    rng = np.random.default_rng(5)
    widths = [extrapolation._of_tasks(rng.normal(0.5, 0.08, (3, 6)), 10) for _ in range(200)]
    assert 0.3 < np.mean(np.array(widths) == 0) < 0.8


def test_a_diverged_member_takes_its_value_out_and_nothing_else():
    a, _ = members(5, 0.75, noise=0.003)
    without = Extrapolation.fit(np.delete(X, 2, axis=0), np.delete(a, 2, axis=0), 17)
    a[2, 1, 3:] = np.nan
    forecast = Extrapolation.fit(X, a, 17)
    for name in ("mean", "low", "high", "seen", "behind_low", "behind_high"):
        values = getattr(forecast, name)
        assert np.isnan(values[2])
        np.testing.assert_array_equal(np.delete(values, 2), getattr(without, name))
    assert forecast.choice != 2 and forecast.resolved() == without.resolved()


def test_members_that_are_not_there_are_left_out():
    a, coefficients = members(5, 1.0)
    there = np.ones((6, 3), bool)
    a[1, 2], there[1, 2] = np.nan, False
    forecast = Extrapolation.fit(X, a, 17, there)
    np.testing.assert_allclose(forecast.mean, [final(17, *one, 1.0) for one in coefficients], atol=2e-5)
    there[1] = False
    assert np.isnan(Extrapolation.fit(X, a, 17, there).mean[1])


def test_resolved_is_whether_no_other_value_may_be_better():
    a, _ = members(5, 0.75, noise=0.003)
    forecast = Extrapolation.fit(X, a, 17)
    most = -np.delete(forecast.behind_low, forecast.choice).min()
    assert forecast.resolved(most + 1e-9) and not forecast.resolved(most - 1e-9)


@pytest.mark.slow
def test_of_many_values_neighbours_have_one_prediction():
    rng, many = np.random.default_rng(1), 3 * extrapolation.MOST_VALUES
    x = rng.permutation(np.linspace(0, 1, many))[:, None]
    a = np.array([[matrix(4, 0.95 - 0.02 * v, 0.01, 0.03 - 0.02 * v, 0.5, rng, 1e-3)] * 2 for v in x[:, 0]])
    there = np.ones((many, 2), bool)
    there[5, 0] = there[7, 1] = False
    forecast = Extrapolation.fit(x, a, 17, there)
    expected = np.array([final(17, 0.95 - 0.02 * v, 0.01, 0.03 - 0.02 * v, 0.5) for v in x[:, 0]])
    np.testing.assert_allclose(forecast.mean, expected, atol=0.005)
    assert len(set(forecast.mean)) <= extrapolation.MOST_VALUES and forecast.mean[forecast.choice] == max(forecast.mean)
    alike = forecast.mean == forecast.mean[forecast.choice]
    assert np.ptp(x[alike]) <= 1 / extrapolation.MOST_VALUES and not forecast.behind_high[alike].any()
    last = a[:, 0, -1].mean(axis=1)
    assert last[forecast.choice] == max(last[alike])


def test_the_numbering_of_values_and_seeds_does_not_matter():
    a, _ = members(5, 0.75, noise=0.01)
    order = np.random.default_rng(1).permutation(6)
    one, other = Extrapolation.fit(X, a, 17), Extrapolation.fit(X[order], a[order][:, ::-1], 17)
    np.testing.assert_allclose(one.mean[order], other.mean, rtol=1e-6)
    assert order[other.choice] == one.choice


@pytest.mark.parametrize(
    ("k", "tasks", "message"),
    [(2, 17, "seen tasks must lie in 3…17, got 2"), (5, 4, "seen tasks must lie in 3…4, got 5")],
)
def test_too_few_tasks_are_an_error(k, tasks, message):
    with pytest.raises(ValueError, match=message):
        Extrapolation.fit(X, members(k, 1.0)[0], tasks)


def test_without_a_member_there_is_nothing_to_continue():
    with pytest.raises(ValueError, match="no value has members that did not diverge"):
        Extrapolation.fit(X, np.full((6, 3, 4, 4), np.nan), 17)
