"""What is ours around Optuna's samplers: batches, failures, seeds, silence; and that each really is its algorithm."""

import logging

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from search_spaces import STRATEGIES, Budget, Observation, Parameter, Space
from search_spaces.adapters.optuna_strategies import optuna_strategy
from search_spaces.adapters.samplers import SAMPLERS, distributions
from search_spaces.rounds import InRounds
from tests.support.searches import MEMORY, SPACES, build, run

EPSILON = Parameter("epsilon", 0, 1)
LINE = Space((EPSILON,))


def usual(name, space=LINE, seed=0):
    return STRATEGIES[name](space, Budget(points=11, repeats=5, seed=seed))


def trials(strategy):
    return strategy._study.trials


def batches(strategy):
    return [np.array([one[0] for one in row.points]) for row in strategy.rounds]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tpe", "cmaes"])
def test_five_batches_of_eleven_close_in_on_the_best(name):
    # Mean distance to the top of the last batch over that of the first, mean of seeds 0…9. Measured when written: tpe
    # 0.40, cmaes 0.37, random 1.13.
    falls = []
    for seed in range(10):
        strategy = usual(name, seed=seed)
        run(strategy, lambda one: -((one.point[0] - 0.2) ** 2))
        distances = [np.abs(batch - 0.2).mean() for batch in batches(strategy)]
        falls.append(distances[-1] / distances[0])
    assert np.mean(falls) < 0.6


@pytest.mark.usefixtures("coarse_gp")
def test_gp_models_from_the_second_batch_on():
    strategy = STRATEGIES["gp"](LINE, Budget(points=4, repeats=2))
    run(strategy, lambda one: -((one.point[0] - 0.2) ** 2))
    modelled = [any(key.startswith("gp:") for key in one.system_attrs) for one in trials(strategy)]
    assert modelled == [False] * 4 + [True] * 4


def test_tpe_models_from_the_second_batch_on():
    strategy = usual("tpe")
    run(strategy, lambda one: -((one.point[0] - 0.2) ** 2))
    modelled = [any(key.startswith("tpe:") for key in one.system_attrs) for one in trials(strategy)]
    assert modelled == [False] * 11 + [True] * 44


@pytest.mark.parametrize("space", ["linear", "plane"])
def test_cma_es_runs_from_the_first_batch_on_and_a_batch_is_a_generation(space):
    strategy = usual("cmaes", SPACES[space])
    run(strategy, lambda one: -one.point[0])
    generations = [one.system_attrs["cma:generation"] for one in trials(strategy)]
    assert generations == [number // 11 for number in range(55)]


@pytest.mark.parametrize(("points", "batches_a_generation"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_a_generation_of_cma_es_is_as_many_batches_as_it_needs_points(points, batches_a_generation):
    strategy = STRATEGIES["cmaes"](LINE, Budget(points, repeats=3 * batches_a_generation))
    run(strategy, lambda one: -one.point[0])
    generations = [one.system_attrs["cma:generation"] for one in trials(strategy)]
    assert generations == sorted([0, 1, 2] * points * batches_a_generation)


def test_a_single_choice_does_not_keep_cma_es_from_running():
    space = Space((EPSILON, Parameter("method", choices=("agem",)), MEMORY))
    strategy = usual("cmaes", space)
    run(strategy, lambda one: -one.point[0])
    assert {one.system_attrs.get("cma:generation") for one in trials(strategy)} == set(range(5))
    assert {one[1] for row in strategy.rounds for one in row.points} == {"agem"}


@pytest.mark.parametrize("seed", range(3))
def test_qmc_covers_the_line_evenly_from_its_first_point_on(seed):
    # Sobol's first 16 points, scrambled, lie one in each sixteenth; so do the next 16.
    strategy = STRATEGIES["qmc"](LINE, Budget(points=16, repeats=2, seed=seed))
    run(strategy, lambda one: 0.0)
    for batch in batches(strategy):
        assert sorted(np.floor(batch * 16)) == list(range(16))


@pytest.mark.parametrize("name", ["random", "qmc"])
def test_scores_do_not_change_what_is_drawn_and_batches_differ(name):
    one, other = usual(name), usual(name)
    run(one, lambda suggestion: suggestion.point[0])
    run(other, lambda suggestion: None)
    assert [row.points for row in one.rounds] == [row.points for row in other.rounds]
    assert len({point for row in one.rounds for point in row.points}) == 55


def test_a_batch_is_told_when_complete_in_the_order_of_its_numbers():
    strategy = STRATEGIES["random"](LINE, Budget(points=3, repeats=2))
    strategy.tell([Observation(2, 0.3), Observation(0, 0.1)])
    assert {one.state for one in trials(strategy)} == {TrialState.RUNNING}
    assert [one.number for one in strategy.ask()] == [1]
    strategy.tell([Observation(1, 0.2)])
    assert [one.value for one in trials(strategy)] == [0.1, 0.2, 0.3, None, None, None]
    finished = [one.datetime_complete for one in trials(strategy)[:3]]
    assert finished == sorted(finished)


def test_a_failure_is_told_as_the_worst_score_so_far():
    strategy = STRATEGIES["random"](LINE, Budget(points=3, repeats=4))
    for scores in ([None, None, None], [0.5, None, 0.7], [0.2, 0.9, None]):
        strategy.tell([Observation(one.number, score) for one, score in zip(strategy.ask(), scores, strict=True)])
    assert [one.state for one in trials(strategy)[:3]] == [TrialState.FAIL] * 3
    assert [one.value for one in trials(strategy)[3:9]] == [0.5, 0.5, 0.7, 0.2, 0.9, 0.2]


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_gp")
@pytest.mark.parametrize("name", ["tpe", "gp", "cmaes"])
def test_samplers_stay_away_from_where_everything_fails(name):
    # Above 0.5 everything fails, half of the space. Measured when written: of the points of batches 3 and 4, seeds 0…4,
    # tpe has 5 % there, gp 7 %, cmaes 18 %.
    failing = []
    for seed in range(2 if name == "gp" else 5):
        strategy = STRATEGIES[name](LINE, Budget(points=6, repeats=4, seed=seed))
        run(strategy, lambda one: None if one.point[0] > 0.5 else 0.5 - one.point[0] / 10)
        failing += [value > 0.5 for batch in batches(strategy)[2:] for value in batch]
    assert np.mean(failing) < 0.35


def test_parameters_become_distributions():
    parameters = (EPSILON, Parameter("lr", 0.001, 1, log=True), MEMORY, Parameter("size", 1, 9, log=True, whole=True))
    assert distributions(Space((*parameters, Parameter("method", choices=("er", 3))))) == {
        "epsilon": optuna.distributions.FloatDistribution(0, 1),
        "lr": optuna.distributions.FloatDistribution(0.001, 1, log=True),
        "memory": optuna.distributions.IntDistribution(1, 40),
        "size": optuna.distributions.IntDistribution(1, 9, log=True),
        "method": optuna.distributions.CategoricalDistribution(("er", 3)),
    }


def test_every_sampler_is_a_strategy_of_the_same_name():
    assert set(SAMPLERS) < set(STRATEGIES)
    assert all(isinstance(optuna_strategy(name, LINE, Budget(2, 1)), InRounds) for name in SAMPLERS)


@pytest.mark.usefixtures("coarse_gp")
@pytest.mark.parametrize("name", SAMPLERS)
def test_optuna_says_nothing_and_its_log_level_stays_the_users(name, capfd):
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        run(build(name, "log", points=3, repeats=2), lambda one: one.point[0])
        assert optuna.logging.get_verbosity() == logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
    assert capfd.readouterr() == ("", "")
