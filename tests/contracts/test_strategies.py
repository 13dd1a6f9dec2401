"""What every strategy promises, run for every registered one, on each kind of space that it can search."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsearch.testing.strategies import (
    IN_ANY_ORDER,
    OF_SCORES,
    PROMISES,
    replay_of_any_part_in_any_order_gives_the_same_state,
)
from search_spaces import STRATEGIES, Budget, Observation, Parameter, replay
from tests.support.confidence import parabola_hull
from tests.support.searches import CASES, REPEATS, SPACES, build, case, run

SCORES = st.lists(st.none() | st.integers(0, 4) | st.floats(-1e3, 1e3), min_size=1, max_size=40)
EXAMPLES = {"narrowing": 15, "interval-ci": 15, "grid": 15, "gp": 2, "kg": 2}  # of the others: 4, they are slower
DRAWN = ["random", "qmc", "tpe", "gp", "cmaes"]

pytestmark = pytest.mark.usefixtures("coarse_gp")
every_case = pytest.mark.parametrize(("name", "space"), CASES)
every_name = pytest.mark.parametrize("name", STRATEGIES)


def first_space(name):
    return next(space for one, space in CASES if one == name)


def check(name, promise, **given_by):
    """A property with as many examples as a strategy has time for."""
    settings(max_examples=EXAMPLES.get(name, 4), deadline=None)(given(**given_by)(promise))()


def test_every_strategy_is_searched_here():
    assert {name for name, _ in CASES} == set(STRATEGIES)


def named(promise):
    return promise.__name__


@pytest.mark.few(40)
@every_case
@pytest.mark.parametrize("promise", PROMISES, ids=named)
def test_promises(promise, name, space):
    promise(case(name, space))


@pytest.mark.few(8)
@every_case
@pytest.mark.parametrize("promise", OF_SCORES, ids=named)
def test_promises_whatever_the_scores_are(promise, name, space):
    def kept(table, data):
        more = {}
        if promise in IN_ANY_ORDER:
            more["shuffled"] = lambda items: data.draw(st.permutations(items)) if items else items
        if promise is replay_of_any_part_in_any_order_gives_the_same_state:
            more["count"] = data.draw(st.integers(0, REPEATS * len(build(name, space).ask())))
        promise(case(name, space), table, **more)

    check(name, kept, table=SCORES, data=st.data())


@every_name
def test_refusals_say_what_was_told(name):
    strategy = build(name, first_space(name))
    first = strategy.ask()[0].number
    with pytest.raises(ValueError, match="suggested, got 999"):
        strategy.tell([Observation(999, 1.0)])
    strategy.tell([Observation(first, None)])
    with pytest.raises(ValueError, match="must not change"):
        strategy.tell([Observation(first, 0.0)])


def test_other_scores_of_the_same_value_are_named():
    strategy = build("grid", "linear")
    strategy.tell([Observation(0, 0.5, (0.4, 0.6))])
    with pytest.raises(ValueError) as error:
        strategy.tell([Observation(0, 0.5, (0.5, 0.5))])
    assert str(error.value) == "observation 0 must not change, got the scores [0.5, 0.5] after [0.4, 0.6]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="value of 0 must be finite"):
        Observation(0, value)
    with pytest.raises(ValueError, match="value of 0 must be finite"):
        Observation(0, 0.5, (0.5, value))


@every_name
def test_replay_refuses_what_does_not_belong_to_the_search(name):
    history = run(build(name, first_space(name)), lambda one: one.number % 3)
    with pytest.raises(ValueError, match=f"that this search suggests, got {len(history)}$"):
        replay(build(name, first_space(name)), [*history, Observation(len(history), 0.0)])


@every_name
@pytest.mark.parametrize("points", [1, 2, 3])
def test_small_batches_end_too(name, points):
    if points == 1 and name in ("narrowing", "interval-ci"):
        with pytest.raises(ValueError, match=r"^points must be >= 2, got 1$"):
            build(name, "log", points)
        return
    strategy = build(name, "log", points)
    told = run(strategy, lambda one: -abs(math.log10(one.point[0]) + 2.2))
    assert strategy.done and points <= len(told) <= points * REPEATS


@pytest.mark.parametrize("name", DRAWN)
def test_the_seed_decides_what_is_drawn(name):
    def points(seed):
        strategy = build(name, "log", repeats=2, seed=seed)
        run(strategy, lambda one: -abs(one.point[0] - 0.01))
        return [one.points for one in strategy.rounds]

    one, other, again = points(1), points(2), points(1)
    assert one == again
    assert all(set(left).isdisjoint(right) for left, right in zip(one, other, strict=True))


ONE = "strategy {} searches one interval LOW..HIGH, got {}; grid, random, qmc, tpe, {} can search this"


@pytest.mark.parametrize(
    ("name", "space", "message"),
    [
        ("narrowing", "plane", ONE.format("narrowing", "lr=log:0.0003..0.3 memory=1..40", "gp, cmaes, kg")),
        ("narrowing", "choices", ONE.format("narrowing", "method=agem,7,0.5", "gp")),
        (
            "interval-ci",
            "mixed",
            ONE.format("interval-ci", "lr=log:0.0003..0.3 method=agem,7,0.5 memory=1..40", "gp"),
        ),
        ("interval-ci", "choices", ONE.format("interval-ci", "method=agem,7,0.5", "gp")),
        (
            "cmaes",
            "mixed",
            "strategy cmaes cannot search choices, got method=agem,7,0.5; grid, random, qmc, tpe, gp can",
        ),
        (
            "kg",
            "mixed",
            "strategy kg searches intervals, got choices of method; grid, random, qmc, tpe, gp can search this",
        ),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(name, space, message):
    with pytest.raises(ValueError) as error:
        build(name, space)
    assert str(error.value) == message


@pytest.mark.parametrize("settings_", [{}, {"log": True}, {"whole": True}])
def test_an_interval_of_one_value_is_refused(settings_):
    with pytest.raises(ValueError, match=r"^epsilon: interval low must be < high, got 1 and 1$"):
        Parameter("epsilon", 1, 1, **settings_)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"points": 0, "repeats": 1}, "points must be >= 1, got 0"),
        ({"points": 1, "repeats": 0}, "repeats must be >= 1, got 0"),
        ({"points": 1, "repeats": 1, "seed": -1}, "seed must lie in 0…2³²−1, got -1"),
        ({"points": 1, "repeats": 1, "seed": 2**32}, "seed must lie in 0…2³²−1, got 4294967296"),
    ],
)
def test_budgets_are_checked(budget, message):
    with pytest.raises(ValueError) as error:
        Budget(**budget)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["interval-ci"])
def test_what_narrows_by_confidence_needs_a_function_for_it(name):
    with pytest.raises(
        ValueError, match=r"^strategy interval-ci must have a confidence function in its budget, got none"
    ):
        STRATEGIES[name](SPACES["linear"], Budget(5, 3))
    assert STRATEGIES[name](SPACES["linear"], Budget(5, 3, confidence=parabola_hull)).ask()
