"""Batches by knowledge gradient: what the model is asked, and when the search ends. Its model here is made up."""

import pytest

from epsearch.testing.searches import observe, run
from search_spaces import STRATEGIES, Budget, Observation, Parameter, Space, replay
from search_spaces.curves.kg import WORTH

LINE = Space((Parameter("epsilon", 0, 1),))


class Told:
    """A model that suggests the first fresh rows, is worth what it was told to be, and keeps what it was asked."""

    def __init__(self, *gains):
        self.gains, self.asked = list(gains), []

    def __call__(self, x, scores, at, fresh, count):
        self.asked.append((x, scores, at, fresh))
        rows = [row for row, one in enumerate(fresh) if one][:count]
        return None if self.gains[0] is None else (rows, self.gains[min(len(self.asked), len(self.gains)) - 1])


def search(model, points=4, repeats=6, space=LINE):
    return STRATEGIES["kg"](space, Budget(points, repeats, 0, None, model))


def batches(*gains, points=4, repeats=6, score=lambda one: one.point[0]):
    model = Told(*gains)
    strategy = search(model, points, repeats)
    run(strategy, score)
    assert strategy.done
    return strategy, model


def test_it_ends_where_the_next_batch_is_worth_too_little():
    assert len(batches(1.0, 1.0, WORTH * 0.99)[0].rounds) == 3
    assert len(batches(1.0, 1.0, WORTH, 0.0)[0].rounds) == 4, "what is worth just enough is tried"


def test_but_not_before_a_batch_of_the_models_own():
    strategy, model = batches(0.0)
    assert len(strategy.rounds) == 2 and len(model.asked) == 2


def test_at_the_end_of_the_budget_nothing_is_asked_any_more():
    strategy, model = batches(1.0, repeats=3)
    assert len(strategy.rounds) == 3 and len(model.asked) == 2


def test_without_a_model_of_what_was_tried_it_ends():
    assert len(batches(None)[0].rounds) == 1


def test_no_point_is_suggested_again_and_a_failed_one_is_not_told():
    strategy, model = batches(1.0, points=5, score=lambda one: None if one.number == 1 else one.point[0])
    points = [point for row in strategy.rounds for point in row.points]
    assert len(set(points)) == len(points) == 30
    tried = strategy.rounds[0].points
    x, scores, at, fresh = model.asked[0]
    assert x == [[point[0]] for number, point in enumerate(tried) if number != 1] and len(scores) == 4
    assert tried[1] == (0.25,) and [0.25] not in at and [0.255] in at, "nor is its place one where the top may be"
    assert all(one == (place not in x) for place, one in zip(at, fresh, strict=True))


def test_all_scores_of_a_point_are_told_seed_by_seed():
    model = Told(0.0)
    strategy = search(model)
    strategy.tell([Observation(one.number, 0.5, (0.4, 0.6)) for one in strategy.ask()])
    assert model.asked[0][1] == [(0.4, 0.6)] * 4


@pytest.mark.parametrize(
    ("space", "first"),
    [
        (LINE, [0.0, 0.5, 1.0]),
        (Space((Parameter("lr", 0.01, 1, log=True),)), [0.01, 0.1, 1.0]),
        (Space((Parameter("memory", 1, 5, whole=True),)), [1, 3, 5]),
    ],
    ids=["linear", "log", "whole"],
)
def test_the_first_batch_is_even_and_the_model_sees_shares_of_the_axis(space, first):
    model = Told(0.0)
    strategy = search(model, points=3, space=space)
    assert [one.point[0] for one in strategy.ask()] == pytest.approx(first)
    strategy.tell([observe(one, 0.5) for one in strategy.ask()])
    assert [one for (one,) in model.asked[0][0]] == pytest.approx([0, 0.5, 1])
    assert all(0 <= one <= 1 for (one,) in model.asked[0][2])


def test_a_batch_of_one_point_begins_in_the_middle():
    assert [one.point for one in search(Told(0.0), points=1).ask()] == [(0.5,)]


def test_a_space_that_is_used_up_ends_the_search():
    model = Told(1.0)
    strategy = search(model, points=3, space=Space((Parameter("memory", 1, 5, whole=True),)))
    run(strategy, lambda one: 1.0)
    assert sorted(point for row in strategy.rounds for point in row.points) == [(1,), (2,), (3,), (4,), (5,)]


def test_it_is_replayed_in_any_order():
    strategy, _ = batches(1.0, 1.0, 0.0)
    told = [observe(one, one.point[0]) for row in strategy._rounds for one in row]
    again = search(Told(1.0, 1.0, 0.0))
    replay(again, reversed(told))
    assert again.done and again.rounds == strategy.rounds
