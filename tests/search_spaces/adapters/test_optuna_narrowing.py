"""IntervalNarrowingSampler in Optuna's own suite for samplers, and what it promises beyond that."""

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import optuna
import pytest
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from optuna.trial import TrialState

from search_spaces import IntervalNarrowing, Parameter
from search_spaces.adapters.optuna_narrowing import IntervalNarrowingSampler
from search_spaces.adapters.study_parameter import SUGGESTION
from tests.support.killed_run import KILLED, POINTS, REPEATS, objective, study_in
from tests.support.limits import HANGS
from tests.support.searches import run

ROOT = Path(__file__).parents[3]
AGAIN = "ignore:all open points of this round are being evaluated"

# Left out: MultiObjectiveSamplerTestCase, for samplers of several objectives; this one refuses them, as
# SingleOnlySamplerTestCase wants it. Of RelativeSamplerTestCase all but one, which is below: they call sample_relative,
# and this sampler knows a range only when a trial asks for it.


@pytest.mark.filterwarnings(AGAIN)  # the suite asks for a hundred values without telling a score
class TestTheOnlyNumericParameter(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: IntervalNarrowingSampler(points=4, repeats=4, seed=0)

    # Two numeric parameters, of which one must be named: TestANamedParameter and test_which_parameter…
    test_partial_fixed_sampling = None
    test_conditional_parameter_objective = None
    test_combination_of_different_distributions_objective = None
    test_dynamic_range_objective = None

    def test_single_parameter_objective(self, sampler):
        # Ten trials of each distribution in the suite; over the whole numbers 1…10 this search ends after eight.
        study = optuna.create_study(sampler=sampler())
        study.optimize(lambda trial: trial.suggest_int("x", 1, 10, log=True), n_trials=10)
        assert [one.params["x"] for one in study.trials] == [1, 2, 5, 10, 1, 2, 3, 5]

    @pytest.mark.parametrize(
        "suggest",
        [
            lambda trial: trial.suggest_float("x", 0, 10),
            lambda trial: trial.suggest_int("x", 0, 10),
            lambda trial: trial.suggest_categorical("x", [0, 1, 2]),
            lambda trial: trial.suggest_float("x", 0, 10, step=0.5),
            lambda trial: trial.suggest_float("x", 1e-7, 10, log=True),
        ],
    )
    def test_single_parameter_objective_of_ten_trials(self, sampler, suggest):
        study = optuna.create_study(sampler=sampler())
        study.optimize(suggest, n_trials=10)
        assert [one.state for one in study.trials] == [TrialState.COMPLETE] * 10


@pytest.mark.filterwarnings(AGAIN)
class TestANamedParameter(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: IntervalNarrowingSampler(points=10, repeats=2, parameter="x", seed=0)

    # "x" has choices in these, and a parameter that is named to be narrowed must be numeric; the second is below.
    test_categorical = None
    test_conditional_parameter_objective = None
    test_single_parameter_objective = None
    test_combination_of_different_distributions_objective = None
    # Has parameters of six values, and so no room for ten points; done above with four.
    test_int = None

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_trial_relative_params(self, n_jobs, sampler):
        RelativeSamplerTestCase().test_trial_relative_params(n_jobs, sampler)


def test_a_parameter_that_some_trials_have():
    BasicSamplerTestCase().test_conditional_parameter_objective(lambda: IntervalNarrowingSampler(10, 2, "y"))


def create(sampler=None, **settings):
    return optuna.create_study(sampler=sampler or IntervalNarrowingSampler(points=5, repeats=3), **settings)


def values(study, name="x"):
    return [one.params[name] for one in study.trials if name in one.params]


def plain(parameter, score, points=5, repeats=3):
    """The values that the plain search suggests."""
    strategy = IntervalNarrowing(parameter, points, repeats)
    run(strategy, lambda one: score(one.point[0]))
    return [value for one in strategy.rounds for (value,) in one.points]


UNIT = Parameter("x", 0, 1)
EXPECTED = plain(UNIT, lambda x: -((x - 0.3) ** 2))


def test_it_takes_the_rounds_of_the_plain_search_and_then_stops_the_study():
    study = create(IntervalNarrowingSampler())
    study.optimize(objective, n_trials=1000)
    assert values(study) == plain(UNIT, lambda x: -((x - 0.3) ** 2), 11, 5)
    assert len(study.trials) == 55 and abs(study.best_params["x"] - 0.3) < 1e-4


@pytest.mark.parametrize(("direction", "sign"), [("minimize", -1), ("maximize", 1)])
def test_both_directions(direction, sign):
    study = create(direction=direction)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1))
    assert values(study) == plain(UNIT, lambda x: sign * x)


@pytest.mark.parametrize(
    ("suggest", "expected"),
    [
        (lambda trial: trial.suggest_float("x", 0.1, 1, log=True), plain(Parameter("x", 0.1, 1, True), lambda x: -x)),
        (lambda trial: trial.suggest_int("x", -8, 8), plain(Parameter("x", -8, 8, whole=True), lambda x: -x)),
        (lambda trial: trial.suggest_int("x", 1, 99, log=True), plain(Parameter("x", 1, 99, True, True), lambda x: -x)),
        (lambda trial: trial.suggest_int("x", 3, 43, step=5), [3, 13, 23, 33, 43, 3, 8, 13, 18, 23]),
        (lambda trial: trial.suggest_float("x", 0, 0.8, step=0.1), [0, 0.2, 0.4, 0.6, 0.8, 0, 0.1, 0.2, 0.3, 0.4]),
    ],
)  # fmt: skip
def test_every_kind_of_number_is_narrowed_on_its_axis(suggest, expected):
    study = create()
    study.optimize(suggest, n_trials=len(expected))
    assert values(study) == expected and isinstance(values(study)[1], type(expected[1]))


def test_other_parameters_are_drawn_by_seed_and_trial():
    def both(trial):
        trial.suggest_float("y", 0, 1), trial.suggest_categorical("z", "abcdefghij")
        return objective(trial)

    def drawn(seed):
        study = create(IntervalNarrowingSampler(5, 3, parameter="x", seed=seed))
        study.optimize(both)
        return study

    one, again, other = drawn(1), drawn(1), drawn(2)
    assert values(one) == values(other) == EXPECTED
    assert values(one, "y") == values(again, "y") and set(values(one, "y")).isdisjoint(values(other, "y"))
    assert len(set(values(one, "y"))) == 15 and len(set(values(one, "z"))) > 3


def test_failed_pruned_and_infinite_trials_are_failed_points():
    def bad(trial):
        x = trial.suggest_float("x", 0, 1)
        match trial.number:
            case 0:
                raise RuntimeError("meant to fail")
            case 1:
                raise optuna.TrialPruned
            case 2:
                return float("nan")
            case 3:
                return float("-inf")
        return x  # fmt: skip

    study = create()
    study.optimize(bad, catch=(RuntimeError,))
    expected = plain(UNIT, lambda x: None if x < 1 else 0.0, repeats=1)
    assert values(study)[:5] == expected and values(study)[5:10] == [0.75, 0.8125, 0.875, 0.9375, 1.0]


def test_a_search_in_which_everything_fails_stops_the_study():
    study = create()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) * float("nan"), n_trials=100)
    assert len(study.trials) == 5


def test_after_the_end_a_study_still_gets_legal_values_and_stops_again():
    study = create()
    study.optimize(objective)
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == 16
    assert 0 <= values(study)[-1] <= 1 and values(study)[-1] not in EXPECTED


def test_asked_and_told_by_hand_nothing_is_raised_at_the_end():
    study = create()
    for _ in range(17):
        trial = study.ask()
        study.tell(trial, objective(trial))
    assert values(study)[:15] == EXPECTED


SHORT = plain(UNIT, lambda x: -((x - 0.3) ** 2), POINTS, REPEATS)


@pytest.mark.slow
@pytest.mark.parametrize("until", [POINTS - 1, POINTS])
def test_a_study_in_a_database_goes_on_with_another_sampler(tmp_path, until):
    study_in(tmp_path).optimize(objective, n_trials=until)
    study = study_in(tmp_path)
    study.optimize(objective)
    assert values(study) == SHORT


@pytest.mark.slow
def test_a_trial_that_was_killed_is_evaluated_again(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_run", str(tmp_path)], cwd=ROOT, capture_output=True
    )
    assert done.returncode == 9
    study = study_in(tmp_path)
    with pytest.warns(UserWarning, match="or by trials that were killed"):
        study.optimize(objective)
    assert [one.state for one in study.trials].count(TrialState.RUNNING) == 1
    # The others of the round come first: whether that trial is still running somewhere, nobody can tell.
    finished = [one.params["x"] for one in study.trials if one.state == TrialState.COMPLETE]
    assert finished == [*SHORT[:KILLED], *SHORT[KILLED + 1 :], SHORT[KILLED]]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_trial_that_optuna_retries_is_no_failure():
    study = create()
    study.optimize(objective, n_trials=2)
    lost = study.ask()
    lost.suggest_float("x", 0, 1)
    study.tell(lost, state=TrialState.FAIL)
    RetryHeartbeatStaleTrialCallback()(study, study.trials[2])
    study.optimize(objective)
    assert values(study) == [*EXPECTED[:3], *EXPECTED[2:]]


def test_open_points_of_a_round_may_be_evaluated_at_the_same_time():
    study = create()
    asked = [study.ask() for _ in range(5)]
    scores = {trial: objective(trial) for trial in asked}
    assert [trial.params["x"] for trial in asked] == EXPECTED[:5]
    for trial in reversed(asked):
        study.tell(trial, scores[trial])
    study.optimize(objective)
    assert values(study) == EXPECTED


def test_a_trial_beyond_the_round_evaluates_a_point_once_more_and_says_so_once():
    study = create()
    first = [study.ask() for _ in range(5)]
    scores = [objective(trial) for trial in first]
    extra = [study.ask() for _ in range(6)]
    with pytest.warns(UserWarning, match="one of them is evaluated again, because the next round needs") as caught:
        more = [objective(trial) for trial in extra]
    assert len(caught) == 1
    assert [trial.params["x"] for trial in extra] == [*EXPECTED[:5], EXPECTED[0]]
    # Whoever finishes a point first counts, also when the other one is told afterwards and differs.
    for trial, score in zip(extra[:3], more[:3], strict=True):
        study.tell(trial, score)
    for trial, score in zip(first[3:], scores[3:], strict=True):
        study.tell(trial, score)
    study.optimize(objective, n_trials=2)
    for trial in [*first[:3], *extra[3:]]:
        study.tell(trial, -1.0)
    study.optimize(objective)
    assert values(study)[11:] == EXPECTED[5:]


@pytest.mark.filterwarnings(AGAIN)
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_evaluate_all_points_of_all_rounds(n_jobs):
    study = create()
    gate = threading.Barrier(n_jobs)

    def together(trial):
        value = objective(trial)
        if trial.number < n_jobs:
            gate.wait(HANGS)
        return value

    study.optimize(together, n_jobs=n_jobs)
    assert sorted(values(study)[:n_jobs]) == EXPECTED[:n_jobs]
    assert set(values(study)) >= set(EXPECTED) and study.best_params["x"] == min(EXPECTED, key=lambda x: abs(x - 0.3))


def test_another_range_is_another_search():
    study = create()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=3)
    study.optimize(objective)
    assert values(study) == [0.0, 0.5, 1.0, *EXPECTED]


def test_trials_with_other_settings_do_not_count_where_their_points_differ():
    study = create(IntervalNarrowingSampler(points=3, repeats=5))
    study.optimize(objective, n_trials=3)
    study.sampler = IntervalNarrowingSampler(points=5, repeats=3)
    study.optimize(objective)
    assert values(study) == [0.0, 0.5, 1.0, *EXPECTED[1:]]  # only 0 has the same number in both


def test_enqueued_values_do_not_count():
    study = create()
    study.enqueue_trial({"x": 0.25})
    study.optimize(objective)
    assert values(study) == [0.25, *EXPECTED]


def test_a_pruner_that_filters_trials_hides_none_from_the_search():
    study = create(pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9))
    study.optimize(objective)
    assert values(study) == EXPECTED


def test_which_parameter_must_be_said_where_there_are_two_and_what_was_taken_does_not_count():
    def two(trial):
        return objective(trial) + 0 * trial.suggest_int("y", 0, 9)

    study = create()
    with pytest.raises(
        ValueError, match=r"^study must have one numeric parameter, got x, y; say which: parameter='y'$"
    ):
        study.optimize(two)
    assert study.trials[0].system_attrs[SUGGESTION] is None
    study.sampler = IntervalNarrowingSampler(5, 3, parameter="x")
    study.optimize(two)
    assert values(study)[1:] == EXPECTED


def test_parameters_of_one_value_are_no_second_parameter():
    study = create()
    study.optimize(lambda trial: objective(trial) + trial.suggest_float("y", 1, 1))
    assert values(study) == EXPECTED


def test_a_named_parameter_must_be_numeric():
    study = create(IntervalNarrowingSampler(5, 3, parameter="x"))
    with pytest.raises(ValueError, match=r"^parameter 'x' must be a float or an int to be narrowed, got Categorical"):
        study.ask().suggest_categorical("x", ["a", "b"])


@pytest.mark.parametrize(("high", "step"), [(3, 1), (30, 10)])
def test_a_parameter_must_have_room_for_the_points(high, step):
    with pytest.raises(ValueError, match=r"^x must have room for 5 values, got IntDistribution"):
        create().ask().suggest_int("x", 0, high, step=step)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points": 1}, "points must be >= 2 and repeats >= 1, got 1 and 5"),
        ({"repeats": 0}, "points must be >= 2 and repeats >= 1, got 11 and 0"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError) as error:
        IntervalNarrowingSampler(**settings)
    assert str(error.value) == message


def test_it_can_be_pickled_in_the_middle_of_a_study():
    study = create(IntervalNarrowingSampler(5, 3, seed=3))
    study.optimize(objective, n_trials=7)
    again = pickle.loads(pickle.dumps(study))
    again.optimize(objective)
    assert values(again) == EXPECTED
