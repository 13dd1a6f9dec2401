"""What every strategy promises, run for every registered one, on each kind of space that it can search."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import STRATEGIES, Budget, Observation, Parameter, replay
from tests.support.confidence import parabola_hull
from tests.support.searches import CASES, POINTS, REPEATS, SPACES, build, observe, run, scores_of

SCORES = st.lists(st.none() | st.integers(0, 4) | st.floats(-1e3, 1e3), min_size=1, max_size=40)
EXAMPLES = {"narrowing": 30, "interval-ci": 30, "grid": 30, "gp": 2}  # of the others: 4, they are slower
DRAWN = ["random", "qmc", "tpe", "gp", "cmaes"]

pytestmark = pytest.mark.usefixtures("coarse_gp")
every_case = pytest.mark.parametrize(("name", "space"), CASES)
every_name = pytest.mark.parametrize("name", STRATEGIES)


def first_space(name):
    return next(space for one, space in CASES if one == name)


def check(name, promise, **given_by):
    """A property with as many examples as a strategy has time for."""
    settings(max_examples=EXAMPLES.get(name, 4), deadline=None)(given(**given_by)(promise))()


def state(strategy):
    return strategy.ask(), strategy.best, strategy.done, strategy.rounds


def allowed(parameter, value):
    if parameter.choices:
        return any(value is one for one in parameter.choices)
    return type(value) is (int if parameter.whole else float) and parameter.low <= value <= parameter.high


def test_every_strategy_is_searched_here():
    assert {name for name, _ in CASES} == set(STRATEGIES)


@every_name
def test_asking_again_changes_nothing(name):
    strategy = build(name, first_space(name))
    first = strategy.ask()
    assert first and strategy.ask() == first and not strategy.done


@every_name
def test_what_is_told_is_no_longer_asked(name):
    strategy = build(name, first_space(name))
    first, *rest = strategy.ask()
    strategy.tell([Observation(first.number, 0.5)])
    assert strategy.ask() == rest


@every_name
def test_telling_nothing_changes_nothing(name):
    strategy = build(name, first_space(name))
    before = state(strategy)
    strategy.tell([])
    assert state(strategy) == before


@every_name
def test_a_number_that_was_never_suggested_is_refused_and_nothing_taken_in(name):
    strategy = build(name, first_space(name))
    asked = strategy.ask()
    with pytest.raises(ValueError, match="suggested, got 999"):
        strategy.tell([Observation(asked[0].number, 1.0), Observation(999, 1.0)])
    assert strategy.ask() == asked and strategy.best is None


@every_name
def test_a_value_may_be_told_again_but_not_changed(name):
    strategy = build(name, first_space(name))
    asked = strategy.ask()
    strategy.tell([Observation(asked[0].number, 1.0), Observation(asked[1].number, None)])
    strategy.tell([Observation(asked[0].number, 1.0), Observation(asked[1].number, None)])
    for changed in (Observation(asked[0].number, 2.0), Observation(asked[1].number, 0.0)):
        with pytest.raises(ValueError, match="must not change"):
            strategy.tell([Observation(asked[2].number, 1.0), changed])
    assert strategy.ask() == asked[2:]


def test_other_scores_of_the_same_value_are_named():
    strategy = build("grid", "linear")
    strategy.tell([Observation(0, 0.5, (0.4, 0.6))])
    with pytest.raises(ValueError) as error:
        strategy.tell([Observation(0, 0.5, (0.5, 0.5))])
    assert str(error.value) == "observation 0 must not change, got the scores [0.5, 0.5] after [0.4, 0.6]"


@every_name
def test_values_of_closed_rounds_may_be_told_again_too(name):
    strategy = build(name, first_space(name))
    told = run(strategy, lambda one: one.number % 3)
    before = state(strategy)
    strategy.tell(told)
    assert strategy.done and state(strategy) == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="value of 0 must be finite"):
        Observation(0, value)
    with pytest.raises(ValueError, match="value of 0 must be finite"):
        Observation(0, 0.5, (0.5, value))


@every_case
def test_suggestions_lie_inside_have_numbers_of_their_own_and_end(name, space):
    parameters = SPACES[space].parameters

    def promise(table):
        strategy, asked = build(name, space), []
        run(strategy, lambda one: asked.append(one) or scores_of(table)(one))
        assert all(len(one.point) == len(parameters) for one in asked)
        assert all(allowed(*pair) for one in asked for pair in zip(parameters, one.point, strict=True))
        assert [one.number for one in asked] == list(range(len(asked)))
        assert len(asked) <= POINTS * REPEATS and len(strategy.rounds) <= REPEATS
        assert strategy.ask() == []

    check(name, promise, table=SCORES)


@every_case
def test_rounds_show_what_was_asked_and_told(name, space):
    def promise(table):
        strategy, asked, told = build(name, space), [], []
        while not strategy.done:
            (*closed, last), batch = strategy.rounds, strategy.ask()
            assert last.points == tuple(one.point for one in batch) and set(last.scores) == {None}
            assert all(one.span is None or one.span[0] <= min(one.points)[0] for one in (*closed, last))
            told.append([observe(one, scores_of(table)(one)) for one in batch])
            asked.append(batch)
            strategy.tell(told[-1])
        assert [one.number for one in strategy.rounds] == list(range(1, len(asked) + 1))
        assert [one.points for one in strategy.rounds] == [tuple(one.point for one in batch) for batch in asked]
        assert [one.scores for one in strategy.rounds] == [tuple(one.value for one in batch) for batch in told]

    check(name, promise, table=SCORES)


@every_case
def test_the_best_is_one_that_was_told(name, space):
    def promise(table):
        strategy, asked = build(name, space), {}
        told = run(strategy, lambda one: asked.update({one.number: one.point}) or scores_of(table)(one))
        values = [one.value for one in told if one.value is not None]
        assert (strategy.best is None) == (not values)
        if strategy.best is not None:
            number = strategy.best.number
            assert strategy.best.point == asked[number] and strategy.best.value == told[number].value
            if name != "interval-ci":  # which looks only among the values that it leaves open
                assert strategy.best.value == max(values)

    check(name, promise, table=SCORES)


@every_case
def test_parts_in_any_order_lead_to_the_same_suggestions(name, space):
    def promise(table, data):
        whole, parts = build(name, space), build(name, space)
        while not whole.done:
            observations = [observe(one, scores_of(table)(one)) for one in whole.ask()]
            whole.tell(observations)
            for observation in data.draw(st.permutations(observations)):
                parts.tell([observation])
            assert state(parts) == state(whole)

    check(name, promise, table=SCORES, data=st.data())


@every_case
def test_replay_of_any_prefix_in_any_order_gives_the_same_state(name, space):
    def promise(table, data):
        history = run(build(name, space), scores_of(table))
        prefix = history[: data.draw(st.integers(0, len(history)))]
        lived, replayed = build(name, space), build(name, space)
        for observation in prefix:
            lived.tell([observation])
        replay(replayed, data.draw(st.permutations(prefix)))
        assert state(replayed) == state(lived)

    check(name, promise, table=SCORES, data=st.data())


@every_name
def test_replay_refuses_what_does_not_belong_to_the_search(name):
    history = run(build(name, first_space(name)), lambda one: one.number % 3)
    with pytest.raises(ValueError, match=f"that this search suggests, got {len(history)}$"):
        replay(build(name, first_space(name)), [*history, Observation(len(history), 0.0)])


@every_case
def test_a_search_in_which_everything_fails_ends_without_a_best(name, space):
    strategy = build(name, space)
    run(strategy, lambda one: None)
    assert strategy.done and strategy.best is None


@every_case
def test_equal_scores_end_too_and_the_first_is_best(name, space):
    strategy = build(name, space)
    run(strategy, lambda one: 0.25)
    assert strategy.done and strategy.best.value == 0.25
    assert strategy.best.point == strategy.rounds[0].points[0]


@every_case
@pytest.mark.parametrize("survivor", [0, 2])
def test_one_success_among_failures_is_the_best(name, space, survivor):
    strategy = build(name, space)
    run(strategy, lambda one: -5.0 if one.number == survivor else None)
    assert (strategy.best.number, strategy.best.value) == (survivor, -5.0)


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
        ("narrowing", "plane", ONE.format("narrowing", "lr=log:0.0003..0.3 memory=1..40", "gp, cmaes")),
        ("narrowing", "choices", ONE.format("narrowing", "method=agem,7,0.5", "gp")),
        ("interval-ci", "mixed", ONE.format("interval-ci", "lr=log:0.0003..0.3 method=agem,7,0.5 memory=1..40", "gp")),
        ("interval-ci", "choices", ONE.format("interval-ci", "method=agem,7,0.5", "gp")),
        (
            "cmaes",
            "mixed",
            "strategy cmaes cannot search choices, got method=agem,7,0.5; grid, random, qmc, tpe, gp can",
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
