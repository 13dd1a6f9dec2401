"""What every strategy promises, run for every registered one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import STRATEGIES, Interval, Observation, replay
from tests.search_spaces.searches import run, scores_of

INTERVAL = Interval(0.1, 0.8)
SCORES = st.lists(st.none() | st.integers(0, 4) | st.floats(-1e3, 1e3), min_size=1, max_size=40)

pytestmark = pytest.mark.parametrize("name", STRATEGIES)


def build(name, points=5, repeats=3):
    return STRATEGIES[name](INTERVAL, points, repeats, 0.0)


def test_asking_again_changes_nothing(name):
    strategy = build(name)
    first = strategy.ask()
    assert first and strategy.ask() == first and not strategy.done


def test_what_is_told_is_no_longer_asked(name):
    strategy = build(name)
    first, *rest = strategy.ask()
    strategy.tell([Observation(first.number, 0.5)])
    assert strategy.ask() == rest


def test_telling_nothing_changes_nothing(name):
    strategy = build(name)
    first = strategy.ask()
    strategy.tell([])
    assert strategy.ask() == first


def test_a_number_that_was_never_suggested_is_refused_and_nothing_taken_in(name):
    strategy = build(name)
    asked = strategy.ask()
    with pytest.raises(ValueError, match="suggested, got 999"):
        strategy.tell([Observation(asked[0].number, 1.0), Observation(999, 1.0)])
    assert strategy.ask() == asked and strategy.best is None


def test_a_value_may_be_told_again_but_not_changed(name):
    strategy = build(name)
    asked = strategy.ask()
    strategy.tell([Observation(asked[0].number, 1.0), Observation(asked[1].number, None)])
    strategy.tell([Observation(asked[0].number, 1.0), Observation(asked[1].number, None)])
    for changed in (Observation(asked[0].number, 2.0), Observation(asked[1].number, 0.0)):
        with pytest.raises(ValueError, match="must not change"):
            strategy.tell([Observation(asked[2].number, 1.0), changed])
    assert strategy.ask() == asked[2:]


def test_values_of_closed_rounds_may_be_told_again_too(name):
    strategy = build(name)
    told = run(strategy, lambda one: one.epsilon)
    best = strategy.best
    strategy.tell(told)
    assert strategy.done and strategy.best == best


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused(name, value):
    with pytest.raises(ValueError, match="value of 0 must be finite"):
        build(name).tell([Observation(0, value)])


@given(table=SCORES)
def test_suggestions_lie_inside_have_numbers_of_their_own_and_end(name, table):
    strategy, asked = build(name), []
    run(strategy, lambda one: asked.append(one) or scores_of(table)(one))
    assert all(INTERVAL.low <= one.epsilon <= INTERVAL.high for one in asked)
    assert [one.number for one in asked] == list(range(len(asked)))
    assert strategy.ask() == []


@given(table=SCORES)
def test_the_best_is_the_highest_value_of_all_rounds(name, table):
    strategy, asked = build(name), {}
    told = run(strategy, lambda one: asked.update({one.number: one.epsilon}) or scores_of(table)(one))
    values = [one.value for one in told if one.value is not None]
    assert (strategy.best is None) == (not values)
    if strategy.best is not None:
        number = strategy.best.number
        assert strategy.best.value == max(values) == told[number].value
        assert strategy.best.epsilon == asked[number]


@given(table=SCORES, data=st.data())
def test_parts_in_any_order_lead_to_the_same_suggestions(name, table, data):
    whole, parts, score = build(name), build(name), scores_of(table)
    while not whole.done:
        observations = [Observation(one.number, score(one)) for one in whole.ask()]
        whole.tell(observations)
        for observation in data.draw(st.permutations(observations)):
            parts.tell([observation])
        assert (parts.ask(), parts.best, parts.done) == (whole.ask(), whole.best, whole.done)


@given(table=SCORES, data=st.data())
def test_replay_of_any_prefix_in_any_order_gives_the_same_state(name, table, data):
    history = run(build(name), scores_of(table))
    prefix = history[: data.draw(st.integers(0, len(history)))]
    lived, replayed = build(name), build(name)
    for observation in prefix:
        lived.tell([observation])
    replay(replayed, data.draw(st.permutations(prefix)))
    assert (replayed.ask(), replayed.best, replayed.done) == (lived.ask(), lived.best, lived.done)


def test_replay_refuses_what_does_not_belong_to_the_search(name):
    history = run(build(name), lambda one: one.epsilon)
    with pytest.raises(ValueError, match=f"that this search suggests, got {len(history)}$"):
        replay(build(name), [*history, Observation(len(history), 0.0)])
