from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.statistics.anova import lack_of_fit
from results.statistics.confidence_set import Maximum, best_interval, confidence_hull
from results.statistics.curve import fit_by_seed
from results.statistics.outliers import outliers
from results.statistics.slope_tests import seeds_needed
from results.statistics.window import MISFIT_WINDOW
from tests.support.seed_tables import parabola, table

X = np.linspace(0, 1, 11)


def holds(found: Maximum, top: float) -> bool:
    return found.low - 1e-9 <= top <= found.high + 1e-9


def searches(curve: Callable[[np.ndarray], np.ndarray], seeds: int, smooth: bool, n: int = 150) -> list[Maximum]:
    """Random seeds 0…n − 1 of this case."""
    draws = (np.random.default_rng([i, seeds, smooth]) for i in range(n))
    return [best_interval(X, table(draw, X, curve, seeds, smooth), 0, 1) for draw in draws]


# Margin: three standard errors of a share of 95 % in 150 searches are 5.3 points.
@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("smooth", [False, True])
def test_the_set_holds_the_top_of_a_parabola_as_often_as_it_says(seeds: int, smooth: bool) -> None:
    found = searches(parabola(0.3, 0.05), seeds, smooth)
    # Measured when written, 3, 5, 10 seeds: 95, 98, 93 %; with smooth noise 93, 96, 97 %.
    assert 0.897 <= np.mean([holds(m, 0.3) for m in found]) <= 0.996
    # The bootstrap over few seeds is too short, as its docstring says. Measured: 69–72, 84–86, 85–87 %.
    short = np.mean([m.bootstrap_low <= 0.3 <= m.bootstrap_high for m in found])
    assert short < {3: 0.85, 5: 0.9, 10: 0.95}[seeds]


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_flat_curve_is_seldom_resolved(seeds: int, smooth: bool) -> None:
    found = searches(parabola(0.3, 0.0), seeds, smooth)
    # Promised: at most 2.5 % beyond what windows add. Measured when written: 0.7–2.0 %; both ends open 93–95 %.
    assert np.mean([not m.at_low and not m.at_high for m in found]) <= 0.05
    assert np.mean([m.at_low and m.at_high for m in found]) > 0.88


def test_points_added_by_narrowing_keep_the_coverage() -> None:
    held = []
    for i in range(100):
        rng = np.random.default_rng([i, 11])
        x, low, high, effect = np.empty(0), 0.0, 1.0, rng.normal(0, 0.003, 5)
        scores = np.empty((0, 5))
        for _ in range(3):
            new = np.setdiff1d(np.linspace(low, high, 11).round(6), x)
            x = np.r_[x, new]
            scores = np.r_[scores, parabola(0.3, 0.05)(new)[:, None] + effect + rng.normal(0, 0.003, (len(new), 5))]
            low, high = confidence_hull(x, scores, 0, 1) or (0.0, 1.0)
        held.append(low - 1e-9 <= 0.3 <= high + 1e-9)
    assert 0.885 <= np.mean(held) <= 1.0  # measured when written: 0.95


def test_a_lopsided_curve_is_fitted_over_a_window_only() -> None:
    def curve(x: np.ndarray) -> np.ndarray:
        return np.asarray(0.9 + 0.08 * x * (1 - x) ** 2)  # best at 1/3

    found = searches(curve, 5, False, 100)
    windows = [m.window for m in found if m.window is not None]
    assert np.mean([w.whole for w in windows]) < 0.1
    assert np.mean([holds(m, 1 / 3) for m in found]) >= 0.9  # measured when written: 0.98
    one = next(m for m in found if m.window is not None and not m.window.whole)
    assert one.window is not None
    inside = (one.window.low <= X) & (one.window.high >= X)
    assert np.isfinite(one.fitted).tolist() == inside.tolist() and one.window.points == inside.sum() < 11


def test_a_value_apart_extends_the_set_unless_it_is_told_from_the_top() -> None:
    scores = table(np.random.default_rng(8), X, parabola(0.5, 0.25), 5)
    top = scores[5]
    level, below = scores.copy(), scores.copy()
    level[0], below[0] = top[[1, 0, 3, 2, 4]], top - 0.05  # as good as the top, and surely worse
    one, other = (best_interval(X, s, 0, 1, apart=[0]) for s in (level, below))
    assert one.at_low and one.low == 0 and not one.at_high and one.seeds_needed > 5
    assert not other.at_low and 0.4 < other.low < other.high < 0.6 and other.seeds_needed == 0
    assert one.worse_ends == (False, False) and other.worse_ends == (True, False)
    assert one.window is not None and one.window.low == 0.1 and math.isnan(one.fitted[0])
    assert one.high == other.high and one.best == other.best


@pytest.mark.parametrize(("top", "open_ends"), [(-0.5, (True, False)), (1.5, (False, True))])
def test_a_curve_that_rises_to_an_end_leaves_that_end_open(top: float, open_ends: tuple[bool, bool]) -> None:
    found = best_interval(X, table(np.random.default_rng(9), X, parabola(top, 0.1), 5), 0, 1)
    assert (found.at_low, found.at_high) == open_ends
    assert (found.low if open_ends[0] else found.high) == (0 if open_ends[0] else 1)
    assert found.best == (0 if open_ends[0] else 1) and found.seeds_needed == math.inf


def test_a_valley_leaves_both_ends_open() -> None:
    found = best_interval(X, table(np.random.default_rng(9), X, parabola(0.5, -0.1), 5), 0, 1)
    assert (found.low, found.high, found.at_low, found.at_high) == (0, 1, True, True)
    assert found.best in (0, 1)


def test_more_seeds_are_asked_for_where_they_would_help() -> None:
    # ratio 2 with 5 seeds: at 8 it is 2.53 >= t(7) = 2.365, at 7 it is 2.37 < t(6) = 2.447
    assert seeds_needed(2.0, 5, 0.975) == 8
    weak = best_interval(X, table(np.random.default_rng(9), X, parabola(0.5, 0.01), 4), 0, 1)
    assert weak.at_low and weak.at_high and 4 < weak.seeds_needed < 200


def test_seeds_are_counted_only_where_there_is_something_to_tell() -> None:
    flat = [best_interval(X, table(np.random.default_rng(seed), X, parabola(0.5, 0.0), 5), 0, 1) for seed in range(100)]
    asked = np.mean([0 < found.seeds_needed < math.inf for found in flat])
    assert asked <= 0.09  # promised: 2.5 % by the test of the curvature, margin 3 standard errors and windows
    three = np.array([[0.52, 0.50, 0.54], [0.50, 0.52, 0.50], [0.51, 0.50, 0.52]])
    assert best_interval([0.0, 0.5, 1.0], three, 0, 1).seeds_needed == math.inf


def test_a_failed_member_does_not_hide_that_no_parabola_fits() -> None:
    scores = table(np.random.default_rng(4), X, lambda x: np.asarray(0.9 + 0.08 * x * (1 - x) ** 2), 5)
    sound = best_interval(X, scores, 0, 1).window
    scores[7, 2] -= 0.08
    ((row, column, by),) = outliers(scores)
    assert (row, column) == (7, 2) and by == pytest.approx(-0.08, abs=0.01)
    failed = best_interval(X, scores, 0, 1).window
    assert sound is not None and failed is not None and not sound.whole and not failed.whole
    assert failed.lack_of_fit_p == pytest.approx(sound.lack_of_fit_p, abs=0.2)
    fit = fit_by_seed(X, scores)
    assert fit is not None and lack_of_fit(X, scores, fit) > 0.05, "which it does by itself"
    assert confidence_hull(X, scores, 0, 1) != best_interval(X, scores, 0, 1)[:2], "stored searches are replayed"


def test_a_curve_in_doubt_is_not_relied_on_alone() -> None:
    """Two peaks of which the test of fit says little: between them the parabola is highest."""

    def peaks(x: np.ndarray) -> np.ndarray:
        return np.asarray(0.86 + 0.005 * sum(np.exp(-(((x - top) / 0.12) ** 2)) for top in (0.33, 0.67)))

    held, alone = [], []
    for seed in range(60):
        scores = table(np.random.default_rng(seed), X, peaks, 10)
        found, hull = best_interval(X, scores, 0, 1), confidence_hull(X, scores, 0, 1)
        if found.window is not None and found.window.whole and found.window.lack_of_fit_p < MISFIT_WINDOW:
            assert hull is not None
            held.append(found.low <= 0.33 or found.high >= 0.67)
            alone.append(hull[0] <= 0.33 or hull[1] >= 0.67)
    assert sum(held) > 2 * sum(alone) > 0  # measured when written: 11 and 5 of 15


def test_without_noise_the_set_is_the_top_or_reaches_its_neighbours() -> None:
    exact = best_interval(X, np.tile(parabola(0.42, 1)(X)[:, None], 3), 0, 1)
    assert (exact.low, exact.high, exact.best) == pytest.approx((0.42, 0.42, 0.42))
    kinked = best_interval(X, np.tile(-np.abs(X - 0.4)[:, None], 3), 0, 1)
    assert kinked.window is None and (kinked.low, kinked.high, kinked.best) == pytest.approx((0.3, 0.5, 0.4))


@pytest.mark.parametrize(
    "scores", [np.full((11, 5), 0.7), np.full((11, 5), np.nan), np.full((11, 0), 1.0), parabola(0.5, 1)(X)[:, None]]
)
def test_nothing_is_excluded_where_nothing_can_be_told(scores: np.ndarray) -> None:
    found = best_interval(X, scores, 0, 1)
    assert (found.low, found.high, found.at_low, found.at_high) == (0, 1, True, True)
    assert found.seeds_needed == math.inf
    if scores.shape[1] < 2 or np.isnan(scores).all():
        assert confidence_hull(X, scores, 0, 1) is None


def test_a_lost_value_at_the_end_does_not_close_it() -> None:
    steps = [math.nan, 1.0, 1.0, 0.5, 0.6, 0.4, 0.5, 0.3, 0.4, 0.2, 0.3]  # no curve suits them
    found = best_interval(X, np.tile(np.array(steps)[:, None], 3), 0, 1)
    assert (found.low, found.at_low, found.best, found.window) == (0, True, 0.1, None)
    assert not found.at_high and found.high == pytest.approx(0.3)


def test_three_values_are_compared_as_they_stand() -> None:
    x, rng = [0.0, 0.5, 1.0], np.random.default_rng(2)
    scores = np.array([[0.2], [0.9], [0.5]]) + rng.normal(0, 0.01, (3, 4))
    found = best_interval(x, scores, 0, 1)
    assert (found.low, found.high, found.best, found.window) == (0, 1, 0.5, None)
    assert not found.at_low and not found.at_high  # both ends were tried and are worse; between, nothing is known
    assert confidence_hull(x, scores, 0, 1) is None


def test_bad_input_is_told() -> None:
    good = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"^x must be \[K\]"):
        best_interval([0.0], good, 0, 1)
    with pytest.raises(ValueError, match=r"^low must be < high"):
        best_interval([0.0, 1.0], good, 1, 1)
    with pytest.raises(ValueError, match=r"^x must lie in"):
        best_interval([0.0, 1.1], good, 0, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 6), st.floats(0, 0.6))
def test_any_table_gives_a_set_within_the_interval_that_holds_the_best(seed: int, k: int, r: int, holes: float) -> None:
    rng = np.random.default_rng(seed)
    x, scores = np.sort(rng.random(k)), rng.integers(0, 4, (k, r)) / 4
    scores[rng.random((k, r)) < holes] = np.nan
    apart = [0] if seed % 2 else []
    found = best_interval(x, scores, 0, 1, apart=apart)
    assert 0 <= found.low <= found.high <= 1
    assert math.isnan(found.best) or found.low <= found.best <= found.high
    assert not found.at_low or found.low == 0
    assert not found.at_high or found.high == 1
    assert found.window is None or found.bootstrap_low <= found.bootstrap_high
    scaled = best_interval(x * 1e6, scores * 1e3 - 5e2, 0, 1e6, apart=apart)
    assert np.array([scaled.low, scaled.high]) / 1e6 == pytest.approx([found.low, found.high], abs=1e-6)


def test_a_climb_to_a_plateau_closes_the_low_end() -> None:
    """Every seed rises alike from end to end, but not where: the slope at the low end says nothing."""
    x = np.linspace(0, 1, 11)
    bends = -0.015 + 0.04 * np.array([-1.2, -0.6, 0.0, 0.6, 1.2])
    rises = 0.02 + 0.001 * np.array([1, -1, 0, 1, -1])
    noise = 0.001 * np.random.default_rng(5).standard_normal((11, 5))
    found = best_interval(x, 0.85 + x[:, None] * (rises - bends) + x[:, None] ** 2 * bends + noise, 0, 1)
    assert not found.at_low and found.at_high
