"""One more point behind a search, which something else names."""

import pytest

from epsearch.testing.searches import observe, run
from search_spaces import GridSearch, Parameter, Space, Suggestion, replay
from search_spaces.curves.naming import NAMED, Naming

LINE = Space((Parameter("epsilon", 0, 1),))


def build(point):
    return Naming(GridSearch(LINE, 3, 2), lambda: point)


def peak(one):
    return -((one.point[0] - 0.4) ** 2)


def test_the_named_point_is_tried_last_and_is_the_best_whatever_its_score():
    strategy = build((0.31,))
    told = run(strategy, lambda one: -9.0 if one.point == (0.31,) else peak(one))
    assert strategy.done and strategy.best.point == (0.31,) == strategy.named_point and strategy.best.value == -9.0
    assert [one.named for one in strategy.rounds] == [False, False, True] and strategy.rounds[-1].note == NAMED
    assert [one.number for one in told] == list(range(7)) and strategy.best.number == 6


def test_before_it_has_a_score_and_where_it_fails_the_best_is_that_of_the_search():
    strategy = build((0.31,))
    while not strategy.inner.done:
        assert strategy.named_point is None
        strategy.tell([observe(one, peak(one)) for one in strategy.ask()])
    (asked,) = strategy.ask()
    assert asked.point == (0.31,) and not strategy.done and strategy.best == strategy.inner.best
    strategy.tell([observe(asked, None)])
    assert strategy.done and strategy.best == strategy.inner.best


@pytest.mark.parametrize("point", [(0.2,), None])
def test_a_point_that_was_tried_and_none_at_all_take_nothing_more(point):
    strategy = build(point)
    told = run(strategy, peak)
    assert len(told) == 6 and strategy.rounds == strategy.inner.rounds
    assert strategy.best.point == (point or (0.4,))


def test_it_is_replayed_and_refuses_what_it_did_not_suggest():
    strategy = build((0.31,))
    told = run(strategy, peak)
    again = build((0.31,))
    with pytest.raises(ValueError, match="suggested"):
        again.tell([told[-1]])
    replay(again, reversed(told))
    assert (again.done, again.best, again.rounds) == (True, strategy.best, strategy.rounds)
    again.tell(told)  # the same once more is no error
    with pytest.raises(ValueError, match="must not change"):
        again.tell([observe(Suggestion(6, (0.31,)), 5.0)])
