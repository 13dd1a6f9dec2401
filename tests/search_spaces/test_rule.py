from itertools import permutations

import pytest

from search_spaces.narrowing_rule import ENDS_WON, NO_SMALLER, NO_SUCCESS, ONE_SUCCESS, SAME_AGAIN, narrow, rank

SIZES = range(2, 13)


def grid_won_by(points, best, second):
    return [3.0 if i == best else 2.0 if i == second else 1.0 for i in range(points)]


def printed_rule(points, best, second):
    """The paper's case distinction, on indices; None = stop."""
    i1, i2 = sorted((best, second))
    if i1 == 0 and i2 == points - 1:
        return None
    if i1 == 0:
        return 0, i2 + 1
    if i2 == points - 1:
        return i1 - 1, i2
    return i1 - 1, i2 + 1


@pytest.mark.parametrize("points", SIZES)
def test_every_pair_of_winners_shrinks_the_interval_or_stops(points):
    for best, second in permutations(range(points), 2):
        winners, span, note = narrow(grid_won_by(points, best, second))
        assert winners == tuple(sorted((best, second)))
        if span is None:
            assert note in (ENDS_WON, NO_SMALLER)
            continue
        low, high = span
        assert 0 <= low <= best <= high <= points - 1
        assert 0 < high - low < points - 1


@pytest.mark.parametrize("points", SIZES)
def test_the_printed_rule_is_followed_wherever_it_shrinks(points):
    for best, second in permutations(range(points), 2):
        expected = printed_rule(points, best, second)
        winners, span, note = narrow(grid_won_by(points, best, second))
        if expected is None:
            assert (winners, span, note) == ((0, points - 1), None, ENDS_WON)
        elif expected == (0, points - 1):
            around = (max(best - 1, 0), min(best + 1, points - 1))
            assert note == (NO_SMALLER if around == expected else SAME_AGAIN)
            assert span == (None if around == expected else around)
        else:
            assert (span, note) == (expected, "")


@pytest.mark.parametrize("points", range(4, 13))
def test_exactly_three_pairs_give_the_same_interval_again(points):
    pairs = permutations(range(points), 2)
    again = {tuple(sorted(pair)) for pair in pairs if narrow(grid_won_by(points, *pair))[2] == SAME_AGAIN}
    assert again == {(0, points - 2), (1, points - 1), (1, points - 2)}


def test_three_points_stop_unless_the_best_is_an_end():
    steps = {pair: narrow(grid_won_by(3, *pair))[1] for pair in permutations(range(3), 2)}
    stopped = {(0, 2): None, (2, 0): None, (1, 0): None, (1, 2): None}
    assert steps == {(0, 1): (0, 1), (2, 1): (1, 2), **stopped}


@pytest.mark.parametrize(
    ("scores", "ranked"),
    [
        ([5.0, 5.0, 5.0, 5.0], (0, 1)),  # all equal: the smallest ε, and its neighbour
        ([1.0, 4.0, 9.0, 4.0], (2, 1)),  # two neighbours: the smaller ε
        ([4.0, 1.0, 1.0, 9.0, 4.0], (3, 4)),  # the neighbour before the smaller ε
        ([4.0, 4.0, 1.0, 1.0, 9.0], (4, 0)),  # no neighbour: the smaller ε
        ([9.0, 1.0, 9.0, 1.0], (0, 2)),
        ([None, -3.0, None, -2.0], (3, 1)),  # a failure is worse than any score
        ([None, None, 7.0], (2, None)),
        ([None, None], (None, None)),
    ],
)
def test_ties_and_failures_are_ranked_in_one_way(scores, ranked):
    assert rank(scores) == ranked


def test_one_success_searches_around_it_and_none_stops():
    assert narrow([None, None, 0.1, None, None]) == (None, (1, 3), ONE_SUCCESS)
    assert narrow([None, None, None, None, 0.1]) == (None, (3, 4), ONE_SUCCESS)
    assert narrow([None, 0.1, None]) == (None, None, NO_SMALLER)
    assert narrow([None] * 5) == (None, None, NO_SUCCESS)
