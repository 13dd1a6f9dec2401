import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import Parameter
from search_spaces.interval import Grid, Interval

ENDS = st.floats(0, 1, allow_subnormal=False).map(lambda value: round(value, 6))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (0.5, 0.2, "interval low must be < high, got 0.5 and 0.2"),
        (0.5, 0.5, "interval low must be < high, got 0.5 and 0.5"),
        (0.0, math.inf, "interval high must be finite, got inf"),
        (math.nan, 1.0, "interval low must be finite, got nan"),
    ],
)
def test_ends_are_checked(low, high, message):
    with pytest.raises(ValueError) as error:
        Interval(low, high)
    assert str(error.value) == message


def test_eleven_points_of_the_unit_interval_are_the_decimals_as_written():
    assert Grid.over(Interval(0, 1), 11).coordinates == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def test_a_grid_of_three_tenths_meets_the_first_grid_in_the_same_floats():
    # Binary arithmetic gives 0.30000000000000004 for the fourth tenth.
    assert Grid.over(Interval(0, 0.3), 4).coordinates == Grid.over(Interval(0, 1), 11).coordinates[:4]


def test_a_point_that_lies_on_both_grids_of_thirds_is_the_same_float():
    coarse = Grid.over(Interval(0, 1), 7)
    fine = coarse.between(2, 5)
    assert (fine.low, fine.high, fine.step) == (Fraction(1, 3), Fraction(5, 6), Fraction(1, 12))
    assert fine.coordinates[::2] == coarse.coordinates[2:6]


@given(ENDS, ENDS, st.integers(2, 15))
def test_a_grid_has_both_ends_and_even_distances(one, other, points):
    if one == other:
        return
    interval = Interval(min(one, other), max(one, other))
    grid = Grid.over(interval, points).coordinates
    assert (len(grid), grid[0], grid[-1]) == (points, interval.low, interval.high)
    delta = interval.width / (points - 1)
    assert all(math.isclose(b - a, delta, abs_tol=1e-15) for a, b in itertools.pairwise(grid))


def test_a_grid_needs_two_points_and_room_for_them():
    with pytest.raises(ValueError, match="points must be >= 2, got 1"):
        Grid.over(Interval(0, 1), 1)
    one = Parameter("epsilon", 0.5, math.nextafter(0.5, 1))
    assert not one.has_room(Grid.over(one.axis(), 3))
