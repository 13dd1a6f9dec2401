import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import Best, IntervalConfidence, Observation, Parameter
from search_spaces.interval import Grid, Interval
from search_spaces.interval_ci import NOT_NARROWER, TICKS, UNDECIDED, snap_outward
from tests.support.confidence import parabola_hull
from tests.support.searches import run

EPSILON = Parameter("epsilon", 0, 1)


class Answers:
    """A confidence function that gives prepared answers, the last one for ever, and remembers what it was told."""

    def __init__(self, *answers):
        self.answers, self.calls = list(answers), []

    def __call__(self, values, scores, low, high):
        self.calls.append((tuple(values), tuple(scores), low, high))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def search_with(confidence, parameter=EPSILON, points=5, repeats=3):
    return IntervalConfidence(parameter, points, repeats, confidence)


def tell(strategy, score, seeds=3):
    strategy.tell(
        [Observation(one.number, score(one.point[0]), (score(one.point[0]),) * seeds) for one in strategy.ask()]
    )


def test_the_next_grid_covers_what_the_scores_leave_open_outward_to_a_tenth_of_a_step():
    strategy = search_with(Answers((0.2301, 0.4), (0.31, 0.333)))
    tell(strategy, lambda x: x)
    assert strategy.rounds[1].span == (0.225, 0.4)
    assert [one.point[0] for one in strategy.ask()] == [0.225, 0.26875, 0.3125, 0.35625, 0.4]
    tell(strategy, lambda x: x)
    step = (0.4 - 0.225) / 4 / TICKS
    low, high = strategy.rounds[2].span
    assert 0.31 - step < low <= 0.31 and 0.333 <= high < 0.333 + step


def test_grids_of_eleven_points_stay_short_decimals():
    strategy = search_with(Answers((0.0712, 0.3), (0.1333, 0.2), (0.1441, 0.16)), points=11, repeats=4)
    while not strategy.done:
        tell(strategy, lambda x: x)
    assert [one.span for one in strategy.rounds] == [(0, 1), (0.07, 0.3), (0.1321, 0.2011), (0.14383, 0.16039)]
    assert strategy.rounds[1].points[1] == (0.093,)


def test_all_values_tried_so_far_are_told_once_with_their_latest_scores_and_the_ends_of_the_axis():
    confidence = Answers((0.0, 0.5), (0.0, 0.25))
    strategy = search_with(confidence, repeats=2)
    tell(strategy, lambda x: x)
    tell(strategy, lambda x: 1 - x)
    (first, scores, *ends), (second, later, *_) = confidence.calls
    assert (first, ends) == ((0.0, 0.25, 0.5, 0.75, 1.0), [0.0, 1.0])
    assert scores == tuple((x, x, x) for x in first)
    assert second == (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
    assert later == (*((1 - x,) * 3 for x in second[:5]), *((x,) * 3 for x in second[5:]))


def test_failed_values_and_those_apart_are_evaluated_but_not_told():
    confidence = Answers((0.25, 1.0))
    strategy = search_with(confidence, Parameter("epsilon", 0, 1, apart=(0.0,)), repeats=1)
    assert strategy.ask()[0].point == (0.0,)
    strategy.tell([Observation(0, 9.0, (9.0,)), Observation(1, None, (None,)), Observation(2, 0.5, (0.5, None))])
    strategy.tell([Observation(3, 0.25), Observation(4, 0.75, (None, None))])
    # Rows of one length; where the scores by seed are not known, the mean stands for them.
    assert confidence.calls == [((0.5, 0.75, 1.0), ((0.5, None), (0.25, None), (0.75, None)), 0.0, 1.0)]


def test_a_logarithmic_axis_is_told_in_logarithms():
    confidence = Answers((-2.2, -1.0))
    strategy = search_with(confidence, Parameter("lr", 0.0001, 1, log=True))
    tell(strategy, lambda x: x)
    assert confidence.calls[0][0] == (-4.0, -3.0, -2.0, -1.0, 0.0) and confidence.calls[0][2:] == (-4.0, 0.0)
    assert strategy.rounds[1].span == pytest.approx((10**-2.2, 0.1))


def test_whole_numbers_are_told_where_they_are():
    confidence = Answers(None)
    tell(search_with(confidence, Parameter("memory", 1, 8, whole=True)), lambda x: x)
    assert confidence.calls[0][0] == (1, 3, 4, 6, 8)


def test_the_search_stops_where_the_scores_cannot_say():
    strategy = search_with(Answers(None))
    tell(strategy, lambda x: x)
    assert strategy.done and strategy.rounds[0].note == UNDECIDED
    assert strategy.best == Best((1.0,), 1.0, 4)


def test_nothing_is_asked_of_the_curve_when_everything_failed():
    confidence = Answers((0.0, 0.5))
    strategy = search_with(confidence)
    run(strategy, lambda one: None)
    assert (strategy.best, strategy.rounds[0].note, confidence.calls) == (None, UNDECIDED, [])


@pytest.mark.parametrize(("hull", "rounds"), [((0.0, 0.9), 2), ((0.05, 0.96), 1), ((0.0, 1.0), 1), ((-5.0, 5.0), 1)])
def test_the_search_stops_unless_the_next_interval_is_clearly_narrower(hull, rounds):
    strategy = search_with(Answers(hull, None))
    tell(strategy, lambda x: x)
    assert len(strategy.rounds) == rounds
    assert (strategy.rounds[0].note == "") == (rounds == 2)


def test_a_search_that_stops_says_how_much_is_open():
    strategy = search_with(Answers((0.025, 1.0)))
    tell(strategy, lambda x: x)
    assert strategy.rounds[0].note == NOT_NARROWER.format(97.5) == "stopped: the scores leave 98 % of the interval open"


def test_when_the_repeats_are_used_up_the_note_says_what_is_open():
    strategy = search_with(Answers((0.2, 0.4), (0.25, 0.3)), repeats=2)
    tell(strategy, lambda x: x), tell(strategy, lambda x: x)
    assert strategy.done and strategy.rounds[0].note == ""
    assert strategy.rounds[1].note == "stopped: the repeats are used up; the scores leave 0.25..0.3 open"


def test_the_search_stops_where_whole_numbers_meet():
    strategy = search_with(Answers((10, 15), (11, 12)), Parameter("memory", 0, 40, whole=True), points=5)
    tell(strategy, lambda x: x), tell(strategy, lambda x: x)
    assert len(strategy.rounds) == 2 and "whole numbers" in strategy.rounds[1].note


def test_an_interval_never_leaves_the_one_before():
    strategy = search_with(Answers((0.25, 0.5), (0.0, 0.3), (0.9, 1.0)), repeats=4)
    while not strategy.done:
        tell(strategy, lambda x: x)
    spans = [one.span for one in strategy.rounds]
    assert spans[:3] == [(0.0, 1.0), (0.25, 0.5), (0.25, 0.3)]
    assert spans[3][1] == 0.3 and spans[3][0] == pytest.approx(0.29875)  # one tick: an interval needs a width


def test_the_best_is_sought_only_among_values_still_open():
    confidence = Answers((0.2, 0.55), (0.45, 0.5))
    strategy = search_with(confidence, repeats=2)
    table = {0.0: 0.9, 0.25: 0.3, 0.5: 0.5, 0.75: 0.1, 1.0: 0.8}
    assert strategy.best is None
    strategy.tell([Observation(0, 0.9), Observation(1, 0.3)])
    assert strategy.best.point == (0.0,)  # before the first round is complete, all are open
    strategy.tell([Observation(number, table[number / 4]) for number in (2, 3, 4)])
    assert strategy.best.point == (0.5,)
    tell(strategy, lambda x: 0.7 if x < 0.4 else 0.4)
    assert strategy.best == Best((0.5,), 0.5, 2)


def test_a_value_apart_competes_with_the_best_of_those_open():
    # ε = 0 is no part of the curve, so nothing that the curve says can rule it out: only its mean counts.
    def chosen(at_zero):
        strategy = search_with(Answers((0.2, 0.55)), Parameter("epsilon", 0, 1, apart=(0.0,)), repeats=1)
        tell(strategy, lambda x: {0.0: at_zero, 0.25: 0.3, 0.5: 0.5, 0.75: 0.9, 1.0: 0.9}[x])
        return strategy.best

    assert chosen(0.8) == Best((0.0,), 0.8, 0)
    assert chosen(0.4) == Best((0.5,), 0.5, 2)
    assert chosen(0.5).point == (0.0,)  # of equal ones the smaller value


def test_a_value_apart_is_not_the_nearest_to_an_open_interval():
    strategy = search_with(Answers((0.0, 0.01)), Parameter("epsilon", 0, 1, apart=(0.0,)), repeats=1)
    tell(strategy, lambda x: 0.1 if x == 0 else 1 - x)
    assert strategy.best == Best((0.25,), 0.75, 1)


def test_of_two_rounds_the_scores_of_more_seeds_are_told():
    confidence = Answers((0.0, 0.5), (0.0, 0.25))
    strategy = search_with(confidence, repeats=2)
    tell(strategy, lambda x: x, seeds=4)
    race = {one.number: (0.7, 0.7, None, None) if one.point[0] < 0.25 else (0.9,) * 4 for one in strategy.ask()}
    strategy.tell([Observation(number, 0.8, scores) for number, scores in race.items()])
    known = dict(zip(*confidence.calls[1][:2], strict=True))
    assert known[0.0] == (0.0,) * 4, "the second round dropped it after two seeds"
    assert known[0.125] == (0.7, 0.7, None, None)
    assert known[0.25] == known[0.5] == (0.9,) * 4, "of equally many the latest"


def test_where_no_tried_value_is_open_the_nearest_count():
    strategy = search_with(Answers((0.3, 0.31)), repeats=1)
    tell(strategy, lambda x: -x)
    assert strategy.best.point == (0.25,)


def test_of_equal_scores_the_smaller_value_then_the_smaller_number_is_best():
    strategy = search_with(Answers((0.0, 0.5), (0.0, 0.5)), repeats=2)
    run(strategy, lambda one: 0.5)
    assert strategy.best == Best((0.0,), 0.5, 0)


def test_an_end_on_a_logarithmic_axis_is_not_lost_to_rounding():
    low, high = math.log10(0.0003), math.log10(0.07)
    strategy = search_with(Answers((low, high)), Parameter("lr", 0.0003, 0.07, log=True), repeats=1)
    run(strategy, lambda one: one.point[0])
    assert strategy.best.point == (0.07,)


def test_it_closes_in_on_a_parabola_under_noise_and_leaves_out_what_is_apart():
    # Noise of sd 0.003 per seed on a parabola of height 0.1, and 0 follows another formula. Seeds 0…19 all end within
    # 0.03 of the top; measured when written: the worst was off by 0.017.
    def search(seed):
        draw = random.Random(seed)
        strategy = search_with(parabola_hull, Parameter("epsilon", 0, 1, apart=(0.0,)), points=11, repeats=5)
        while not strategy.done:
            rows = {
                one.number: tuple(
                    0.8 - (one.point[0] == 0) * 0.1 - 0.4 * (one.point[0] - 0.42) ** 2 + draw.gauss(0, 0.003)
                    for _ in range(5)
                )
                for one in strategy.ask()
            }
            strategy.tell([Observation(number, sum(row) / 5, row) for number, row in rows.items()])
        return strategy

    found = [search(seed) for seed in range(20)]
    assert all(abs(one.best.point[0] - 0.42) < 0.03 for one in found)
    assert all(len(one.rounds) > 1 for one in found)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(-0.5, 1.5), st.floats(0, 1)), min_size=1, max_size=6), st.integers(2, 12))
def test_rounds_stay_inside_shrink_and_end(hulls, points):
    strategy = search_with(Answers(*((low, low + width) for low, width in hulls)), points=points, repeats=5)
    while not strategy.done:
        tell(strategy, lambda x: x)
    assert 1 <= len(strategy.rounds) <= 5 and strategy.rounds[-1].note.startswith("stopped: ")
    for earlier, later in itertools.pairwise(strategy.rounds):
        assert earlier.span[0] <= later.span[0] < later.span[1] <= earlier.span[1]
        assert Interval(*later.span).width <= 0.91 * Interval(*earlier.span).width


@given(st.floats(0, 1), st.floats(0, 1), st.integers(2, 12))
def test_snapping_goes_outward_by_less_than_a_tick(one, other, points):
    grid, hull = Grid.over(Interval(0, 1), points), (min(one, other), max(one, other))
    found = snap_outward(grid, hull)
    tick = grid.step / TICKS
    assert 0 <= found.low <= hull[0] + 1e-15 and hull[1] - 1e-15 <= found.high <= 1
    assert (found.low / tick).denominator == (found.high / tick).denominator == 1
    assert found.high - found.low < hull[1] - hull[0] + 2 * tick + 1e-15 or hull[0] == hull[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points": 1}, "points must be >= 2, got 1"),
        ({"repeats": 0}, "repeats must be >= 1, got 0"),
        (
            {"parameter": Parameter("memory", 1, 3, whole=True)},
            "interval must have room for 5 distinct points, got memory=1..3",
        ),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError) as error:
        search_with(Answers(None), **settings)
    assert str(error.value) == message
