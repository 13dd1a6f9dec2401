import importlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import Best, GridSearch, Interval, Parameter, Space
from search_spaces.grid import grid
from search_spaces.interval import Grid
from tests.support.searches import run

EPSILON = Parameter("epsilon", 0, 1)
LR = Parameter("lr", 0.001, 1, log=True)
MEMORY = Parameter("memory", 1, 6, whole=True)
METHOD = Parameter("method", choices=("agem", "er", "gem"))


def test_one_parameter_takes_the_whole_budget_both_ends_included():
    points = grid(Space((EPSILON,)), 55)
    assert points == tuple((value,) for value in Grid.over(Interval(0, 1), 55).coordinates)


def test_a_logarithmic_axis_is_spaced_in_ratios():
    assert grid(Space((LR,)), 4) == ((0.001,), (0.01,), (0.1,), (1.0,))


@pytest.mark.parametrize(("budget", "values"), [(3, (1, 4, 6)), (6, (1, 2, 3, 4, 5, 6)), (55, (1, 2, 3, 4, 5, 6))])
def test_whole_numbers_are_taken_once(budget, values):
    assert grid(Space((MEMORY,)), budget) == tuple((value,) for value in values)


def test_whole_numbers_that_a_logarithmic_axis_meets_twice_are_taken_once():
    points = grid(Space((Parameter("memory", 1, 12, log=True, whole=True),)), 8)
    assert points == ((1,), (2,), (3,), (4,), (6,), (8,), (12,))


@pytest.mark.parametrize(("budget", "each"), [(4, 2), (8, 2), (9, 3), (48, 6), (49, 7), (55, 7)])
def test_intervals_share_the_budget_evenly(budget, each):
    points = grid(Space((EPSILON, LR)), budget)
    assert len(points) == each**2
    assert len({one[0] for one in points}) == len({one[1] for one in points}) == each
    assert points[:2] == ((0.0, 0.001), (0.0, grid(Space((LR,)), each)[1][0]))


def test_all_choices_are_combined_with_as_many_values_as_fit():
    points = grid(Space((METHOD, EPSILON)), 55)
    assert len(points) == 3 * 18
    assert {one[0] for one in points} == set(METHOD.choices)
    assert grid(Space((METHOD, Parameter("seed", choices=(1, 2)))), 7) == tuple(
        (method, seed) for method in METHOD.choices for seed in (1, 2)
    )


def test_what_whole_numbers_do_not_need_the_others_get():
    points = grid(Space((Parameter("memory", 1, 2, whole=True), EPSILON)), 40)
    assert len(points) == 40 and len({one[1] for one in points}) == 20


@pytest.mark.parametrize(
    ("space", "budget", "needed"),
    [
        (Space((METHOD,)), 2, "3 points (3 combinations of choices, 2 values of 0 others)"),
        (Space((METHOD, EPSILON)), 5, "6 points (3 combinations of choices, 2 values of 1 others)"),
        (Space((LR, EPSILON)), 3, "4 points (1 combinations of choices, 2 values of 2 others)"),
        (Space((EPSILON,)), 1, "2 points (1 combinations of choices, 2 values of 1 others)"),
    ],
)
def test_a_budget_without_room_is_refused(space, budget, needed):
    with pytest.raises(ValueError) as error:
        GridSearch(space, 1, budget)
    assert str(error.value) == f"strategy grid must have room for {needed}, got points × repeats = {budget}"


@given(st.integers(1, 60), st.integers(1, 4), st.booleans(), st.booleans())
def test_a_grid_never_exceeds_its_budget_nor_repeats_a_point(budget, combinations, wide, whole):
    space = Space((Parameter("a", choices=tuple(range(combinations))), MEMORY if whole else EPSILON, *[LR] * wide))
    if budget < combinations * 2 ** (1 + wide):
        return
    points = grid(space, budget)
    assert len(set(points)) == len(points) <= budget
    assert {one[0] for one in points} == set(range(combinations))
    if not whole:
        each = round((len(points) / combinations) ** (1 / (1 + wide)))
        assert combinations * (each + 1) ** (1 + wide) > budget


def test_rounds_hold_n_points_and_the_last_one_the_rest():
    strategy = GridSearch(Space((EPSILON, LR)), points=20, repeats=3)
    run(strategy, lambda one: -abs(one.point[0] - 0.45) - abs(math.log10(one.point[1]) + 1.4))
    assert [len(one.points) for one in strategy.rounds] == [20, 20, 9]
    assert strategy.best.point == (0.5, 0.0316227766017)


def test_of_equal_scores_the_smaller_number_is_best():
    strategy = GridSearch(Space((METHOD,)), points=2, repeats=2)
    run(strategy, lambda one: 0.5 if one.number else 0.1)
    assert strategy.best == Best(("er",), 0.5, 1)


@pytest.mark.parametrize("settings", [{"points": 0, "repeats": 5}, {"points": 5, "repeats": 0}])
def test_settings_are_checked(settings):
    with pytest.raises(ValueError, match="points and repeats must be >= 1"):
        GridSearch(Space((EPSILON,)), **settings)


def test_few_whole_numbers_end_the_refinement_long_before_the_budget_does(monkeypatch):
    counts, grids = [], importlib.import_module("search_spaces.grid")
    original = grids._values
    monkeypatch.setattr(grids, "_values", lambda one, count: counts.append(count) or original(one, count))
    small = [Parameter(name, 1, 3, whole=True) for name in ("memory", "batch_size")]
    assert len(grid(Space(tuple(small)), 10_000)) == 9
    assert max(counts) == 3
