import copy
import json
import math
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from search_spaces import IntervalNarrowing, Observation, Parameter
from tests.support import tune_run
from tests.support.limits import HANGS
from tests.support.searches import CASES, SPACES, build, run

pytest.importorskip("ray.tune")

from ray.tune.search import Searcher

from search_spaces.adapters.ray_tune import AskTellSearcher, strategy_searcher

ROOT = Path(__file__).parents[3]
NAMES = ("epsilon",)


def strategy_of(points=3, repeats=2):
    return IntervalNarrowing(Parameter("epsilon", 0, 1), points, repeats)


def result_of(config, **values):
    return {**values, **{f"config/{key}": value for key, value in config.items()}}


class Batches:
    """Work in batches: a source whose pieces are lists of members, as the cohorts of a search are."""

    def __init__(self, batches):
        self.open, self.told, self.lock = list(batches), [], threading.Lock()

    @property
    def done(self):
        return not self.open

    def ask(self):
        return list(self.open)

    def tell(self, results):
        for batch, values in results:
            self.open.remove(batch)
            self.told.append((batch, values))


def searcher_of(batches):
    return AskTellSearcher(
        batches,
        to_config=lambda batch: {"cohort": {"members": batch}},
        from_result=lambda batch, result: (batch, result and result["values"]),
    )


@pytest.mark.slow
def test_tuner_fit_takes_the_same_rounds_as_a_plain_loop(ray_address):
    command = [sys.executable, "-m", "tests.support.tune_run", ray_address]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=HANGS, check=True)
    plain = tune_run.Locked()

    def score(one):
        loss = tune_run.loss(one.number, one.point[0])
        return None if loss is None or math.isnan(loss) else -loss

    run(plain, score)
    found = json.loads(done.stdout)
    assert found["rounds"] == json.loads(json.dumps([[r.points, r.scores, r.winners] for r in plain.rounds]))
    assert (found["trials"], found["errors"], found["done"]) == (10, 1, True)
    assert done.stderr == ""


def test_a_round_is_handed_out_once_and_the_next_waits_for_it():
    searcher = strategy_searcher(strategy_of(), NAMES, "accuracy")
    configs = [searcher.suggest(trial) for trial in "abc"]
    assert [config["epsilon"] for config in configs] == [0.0, 0.5, 1.0]
    assert searcher.suggest("d") is None
    for trial, config, accuracy in zip("cab", [configs[2], *configs], (0.1, 0.9, 0.8), strict=False):
        assert searcher.suggest("d") is None
        searcher.on_trial_complete(trial, result_of(config, accuracy=accuracy))
    assert searcher.suggest("d") == {"number": 3, "epsilon": 0.0}


def test_it_finishes_with_the_strategy():
    strategy = strategy_of(repeats=1)
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    configs = {trial: searcher.suggest(trial) for trial in "abc"}
    for trial, config in configs.items():
        searcher.on_trial_complete(trial, result_of(config, accuracy=config["epsilon"]))
    assert strategy.done
    assert searcher.suggest("d") == Searcher.FINISHED


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (None, True),
        (None, False),
        ({"accuracy": 0.9}, True),
        ({"accuracy": math.nan}, False),
        ({"accuracy": -math.inf}, False),
        ({"accuracy": None}, False),
        ({}, False),
    ],
)
def test_a_trial_without_a_finite_result_is_a_failure(result, error):
    strategy = strategy_of()
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    searcher.suggest("a")
    searcher.on_trial_complete("a", result, error)
    assert strategy.rounds[0].scores == (None, None, None)
    assert [one.number for one in strategy.ask()] == [1, 2]


@pytest.mark.parametrize(("mode", "expected"), [("max", 0.25), ("min", -0.25)])
def test_lower_is_better_by_negation(mode, expected):
    strategy = strategy_of()
    searcher = strategy_searcher(strategy, NAMES, "loss", mode)
    searcher.suggest("a")
    searcher.on_trial_complete("a", {"loss": 0.25})
    assert strategy.best.value == expected


def test_a_trial_of_unknown_id_is_known_by_its_config():
    strategy = strategy_of()
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    searcher.on_trial_complete("from before", result_of({"number": 1, "epsilon": 0.5}, accuracy=0.7))
    assert strategy.rounds[0].scores == (None, 0.7, None)
    assert [searcher.suggest(trial)["number"] for trial in "ab"] == [0, 2]


@pytest.mark.parametrize("result", [None, {}, {"accuracy": 0.5}, result_of({"number": 77, "epsilon": 0.5}, accuracy=1)])
def test_what_belongs_to_no_open_work_is_ignored(result):
    strategy = strategy_of()
    strategy_searcher(strategy, NAMES, "accuracy").on_trial_complete("unknown", result)
    assert (len(strategy.ask()), strategy.best) == (3, None)


def test_a_result_that_comes_twice_counts_once():
    strategy = strategy_of()
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    config = searcher.suggest("a")
    searcher.on_trial_complete("a", result_of(config, accuracy=0.5))
    searcher.on_trial_complete("a", result_of(config, accuracy=0.6))
    searcher.on_trial_complete("a again", error=True)
    assert strategy.best.value == 0.5


def test_batches_are_trials_too():
    batches = Batches([[1, 2], [3]])
    searcher = searcher_of(batches)
    assert searcher.suggest("a") == {"cohort": {"members": [1, 2]}}
    assert searcher.suggest("b") == {"cohort": {"members": [3]}}
    searcher.on_trial_complete("b", {"values": [0.3]})
    searcher.on_trial_complete("unknown", {"config/cohort/members": [1, 2], "values": [0.1, 0.2]})
    assert batches.told == [([3], [0.3]), ([1, 2], [0.1, 0.2])]
    assert searcher.suggest("c") == Searcher.FINISHED


def test_a_trial_is_not_taken_for_one_whose_config_is_part_of_its_own():
    batches = Batches(["small", "large"])
    configs = {"small": {"members": 1}, "large": {"members": 1, "seed": 2}}
    searcher = AskTellSearcher(batches, configs.__getitem__, lambda batch, result: (batch, "told"))
    searcher.suggest("a"), searcher.suggest("b")
    searcher.on_trial_complete("b", result_of(configs["large"]))
    assert batches.told == [("large", "told")]


def test_changing_the_config_of_a_trial_does_not_change_what_is_running():
    searcher = searcher_of(Batches([[1]]))
    searcher.suggest("a")["cohort"] = "changed"
    assert searcher.suggest("b") is None


def test_restore_hands_out_again_what_was_running(tmp_path):
    strategy = strategy_of()
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    searcher.suggest("a")
    searcher.save(str(tmp_path / "state"))
    searcher.restore(str(tmp_path / "state"))
    assert [searcher.suggest(trial)["number"] for trial in "bcd"] == [0, 1, 2]
    searcher.on_trial_complete("a", error=True)
    searcher.on_trial_complete("b", {"accuracy": 0.5})
    assert strategy.best.value == 0.5


def test_what_runs_in_a_tuner_that_broke_off_failed():
    batches = Batches([[1], [2], [3]])
    searcher = searcher_of(batches)
    searcher.suggest("a"), searcher.suggest("b")
    searcher.on_trial_complete("a", {"values": [0.1]})
    searcher.fail_running()
    assert batches.told == [([1], [0.1]), ([2], None)]
    assert searcher.suggest("c") == {"cohort": {"members": [3]}}


@pytest.mark.parametrize("duplicate", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_a_copy_leaves_the_source_out_and_ends_at_once(duplicate):
    searcher = searcher_of(Batches([[1]]))
    other = duplicate(searcher)
    assert (other.metric, other.mode) == (None, "max")
    assert other.suggest("a") == Searcher.FINISHED
    other.on_trial_complete("a", {"values": [1]})
    assert searcher.suggest("a") is not None


def test_a_replayed_strategy_hands_out_only_what_is_missing():
    strategy = strategy_of()
    strategy.tell([Observation(0, 0.1), Observation(2, None)])
    searcher = strategy_searcher(strategy, NAMES, "accuracy")
    assert searcher.suggest("a") == {"number": 1, "epsilon": 0.5}
    assert searcher.suggest("b") is None


@pytest.mark.usefixtures("coarse_gp")
@pytest.mark.parametrize(("name", "space"), [(name, space) for name, space in CASES if space in ("log", "mixed")])
def test_every_strategy_suggests_through_the_adapter_what_it_suggests_in_a_plain_loop(name, space):
    def score(number):
        return None if number % 4 == 3 else number % 5 / 10

    strategy, plain, names = build(name, space), build(name, space), SPACES[space].names
    searcher, trial, handed_out = strategy_searcher(strategy, names, "accuracy"), 0, {}
    while (config := searcher.suggest(str(trial))) != Searcher.FINISHED:
        running = {}
        while config is not None:
            running[str(trial)] = config
            trial += 1
            config = searcher.suggest(str(trial))
        for one, its_config in reversed(running.items()):
            number = its_config["number"]
            handed_out[number] = tuple(its_config[key] for key in names)
            searcher.on_trial_complete(one, {"accuracy": score(number)}, error=score(number) is None)
    asked = {}
    while not plain.done:
        asked.update({one.number: one.point for one in plain.ask()})
        plain.tell([Observation(one.number, score(one.number)) for one in plain.ask()])
    assert handed_out == asked and strategy.rounds == plain.rounds
