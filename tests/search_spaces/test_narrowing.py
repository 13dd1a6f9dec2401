import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import Best, Interval, IntervalNarrowing, Observation, Parameter
from search_spaces.interval import Grid
from search_spaces.narrowing_rule import ENDS_WON, NO_SUCCESS, SAME_AGAIN
from tests.support.searches import run, scores_of

UNIT = Parameter("epsilon", 0, 1)
SCORES = st.lists(st.none() | st.integers(0, 4) | st.floats(-1e3, 1e3), min_size=1, max_size=60)

# ε-SOFT-GEM on Permuted MNIST: the only way to 0.07185 with N = 11 on which all winners are neighbours.
PATH = [
    ((0.0, 1.0), (0.1, 0.2)),
    ((0.0, 0.3), (0.06, 0.09)),
    ((0.03, 0.12), (0.066, 0.075)),
    ((0.057, 0.084), (0.0705, 0.0732)),
    ((0.0678, 0.0759), (0.07185, 0.07266)),
]


def search_with_winners(pairs, points=11):
    strategy = IntervalNarrowing(UNIT, points=points, repeats=len(pairs))
    for number, (best, second) in enumerate(pairs):
        values = {best: number + 1.0, second: number + 0.9}
        strategy.tell([Observation(one.number, values.get(one.point[0], 0.0)) for one in strategy.ask()])
    return strategy


def test_the_path_to_the_papers_epsilon_on_mnist():
    strategy = search_with_winners([winners for _, winners in PATH])
    assert strategy.done
    assert [one.span for one in strategy.rounds] == [ends for ends, _ in PATH]
    assert [tuple(one.points[i][0] for i in one.winners) for one in strategy.rounds] == [pair for _, pair in PATH]
    assert strategy.best == Best(point=(0.07185,), value=5.0, number=4 * 11 + 5)
    assert [one.note for one in strategy.rounds] == [""] * 5


def test_the_papers_epsilon_on_cifar_stays_a_grid_point_when_its_neighbours_win():
    half, two_thirds = Grid.over(Interval(0, 1), 7).coordinates[3:5]
    first = search_with_winners([(half, two_thirds), (half, half)], points=7)
    assert half == 0.5
    assert first.rounds[1].span == (1 / 3, 5 / 6)
    assert (0.5,) in first.rounds[1].points


@pytest.mark.parametrize(
    ("winners", "following"),
    [((0.2, 0.3), (0.1, 0.4)), ((0.0, 0.1), (0.0, 0.2)), ((1.0, 0.9), (0.8, 1.0)), ((0.3, 0.7), (0.2, 0.8))],
)
def test_the_next_interval_reaches_one_step_beyond_the_winners(winners, following):
    strategy = search_with_winners([winners, (0, 0)])
    assert strategy.rounds[1].span == following


def test_the_two_ends_as_winners_end_the_search():
    strategy = IntervalNarrowing(UNIT, points=11, repeats=5)
    run(strategy, lambda one: abs(one.point[0] - 0.49))
    assert len(strategy.rounds) == 1
    assert (strategy.rounds[0].winners, strategy.rounds[0].note) == ((0, 10), ENDS_WON)
    assert strategy.best.point == (1.0,)


def test_winners_that_would_repeat_the_grid_search_around_the_best_instead():
    strategy = search_with_winners([(0.9, 0.1), (0.8, 0.8)])
    assert (strategy.rounds[0].winners, strategy.rounds[0].note) == ((1, 9), SAME_AGAIN)
    assert strategy.rounds[1].span == (0.8, 1.0)


def test_numbers_run_on_through_the_rounds_and_open_rounds_show_what_is_known():
    strategy = IntervalNarrowing(UNIT, points=5, repeats=2)
    strategy.tell([Observation(3, 0.5), Observation(1, None)])
    assert [one.number for one in strategy.ask()] == [0, 2, 4]
    (open_round,) = strategy.rounds
    assert (open_round.number, open_round.scores, open_round.winners) == (1, (None, None, None, 0.5, None), None)
    strategy.tell([Observation(number, 0.1) for number in (0, 2, 4)])
    assert [one.number for one in strategy.ask()] == [5, 6, 7, 8, 9]
    assert strategy.rounds[0].scores == (0.1, None, 0.1, 0.5, 0.1)
    assert [one.number for one in strategy.rounds] == [1, 2]


def test_a_failed_point_never_wins():
    strategy = IntervalNarrowing(UNIT, points=5, repeats=2)
    strategy.tell([Observation(number, value) for number, value in enumerate([None, -9.0, -8.0, None, None])])
    assert strategy.rounds[0].winners == (1, 2)
    assert strategy.best == Best((0.5,), -8.0, 2)


def test_the_search_stops_when_everything_fails():
    strategy = IntervalNarrowing(UNIT, points=5, repeats=3)
    run(strategy, lambda one: None)
    assert (len(strategy.rounds), strategy.rounds[0].note, strategy.best) == (1, NO_SUCCESS, None)


def test_the_search_stops_where_floats_end():
    strategy = IntervalNarrowing(Parameter("epsilon", 0.5, 1), points=11, repeats=1000)
    run(strategy, lambda one: -abs(one.point[0] - 0.7))
    assert "floats" in strategy.rounds[-1].note
    assert len(strategy.rounds) < 60


def test_the_best_of_all_rounds_is_reported_not_that_of_the_last():
    strategy = IntervalNarrowing(UNIT, points=11, repeats=2)
    run(strategy, lambda one: 9.0 if one.number == 5 else 1.0 / (1 + one.number))
    assert strategy.best == Best((0.5,), 9.0, 5)


def test_of_equal_values_the_smaller_epsilon_is_best_and_its_first_number():
    strategy = IntervalNarrowing(UNIT, points=5, repeats=3)
    run(strategy, lambda one: 0.5)
    assert strategy.best == Best((0.0,), 0.5, 0)


@pytest.mark.slow
@given(st.integers(2, 12), st.integers(1, 6), SCORES)
def test_rounds_stay_inside_never_grow_and_end(points, repeats, table):
    strategy = IntervalNarrowing(Parameter("epsilon", 0.2, 0.9), points, repeats)
    run(strategy, scores_of(table))
    rounds = strategy.rounds
    assert 1 <= len(rounds) <= repeats
    for earlier, later in itertools.pairwise(rounds):
        assert earlier.span[0] <= later.span[0] < later.span[1] <= earlier.span[1]
        assert Interval(*later.span).width < Interval(*earlier.span).width
        assert {later.points[0], later.points[-1]} <= set(earlier.points)
    assert len(rounds) == repeats or rounds[-1].note.startswith("stopped: ")


@pytest.mark.slow
@given(st.integers(3, 12), SCORES)
def test_an_epsilon_that_recurs_is_the_same_float(points, table):
    strategy = IntervalNarrowing(UNIT, points, repeats=4)
    run(strategy, scores_of(table))
    epsilons = sorted({epsilon for one in strategy.rounds for (epsilon,) in one.points})
    # Different points are multiples of (points - 1)^-4 apart, at least 7e-5; rounding errors would be 1e-16.
    assert all(high - low > 6e-5 for low, high in itertools.pairwise(epsilons))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points": 1}, "points must be >= 2, got 1"),
        ({"repeats": 0}, "repeats must be >= 1, got 0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError) as error:
        IntervalNarrowing(UNIT, **{"points": 11, "repeats": 5, **settings})
    assert str(error.value) == message


def test_a_logarithmic_axis_is_narrowed_in_ratios():
    strategy = IntervalNarrowing(Parameter("lr", 0.0001, 1, log=True), points=5, repeats=2)
    assert [one.point[0] for one in strategy.ask()] == [0.0001, 0.001, 0.01, 0.1, 1]
    run(strategy, lambda one: -abs(math.log10(one.point[0]) + 1.4))
    assert strategy.rounds[1].span == (0.001, 1)
    assert strategy.rounds[1].points[2] == (0.0316227766017,)


def test_whole_numbers_are_narrowed_until_neighbours_meet():
    strategy = IntervalNarrowing(Parameter("memory", 0, 100, whole=True), points=5, repeats=20)
    run(strategy, lambda one: -abs(one.point[0] - 30))
    assert [one.span for one in strategy.rounds[:3]] == [(0, 100), (0, 75), (0, 56)]
    assert all(isinstance(value, int) for one in strategy.rounds for (value,) in one.points)
    assert strategy.rounds[-1].note.startswith("stopped: ") and "whole numbers" in strategy.rounds[-1].note


def test_an_interval_without_room_for_the_first_grid_is_refused():
    with pytest.raises(ValueError, match=r"^interval must have room for 5 distinct points, got memory=1\.\.4$"):
        IntervalNarrowing(Parameter("memory", 1, 4, whole=True), points=5, repeats=1)
