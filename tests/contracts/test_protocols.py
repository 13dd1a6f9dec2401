"""The promises of every search protocol, and that a protocol which breaks one is caught."""

from dataclasses import dataclass, replace

import pytest

from epsearch.protocols.protocol import Protocol, Question, Trial, View
from epsearch.protocols.registry import PROTOCOLS, protocol, sentence
from epsearch.testing import failures, protocol_checks

EVERY = [*PROTOCOLS, "first-3", "25-percent"]


@pytest.mark.parametrize("name", EVERY)
def test_every_protocol_keeps_its_promises(name):
    assert failures(protocol_checks(name)) == {}
    assert sentence(protocol(name)).startswith(("Chooses", "Sees nothing")) and sentence(protocol(name)).endswith(".")


PLAIN = protocol("end-of-training")


@dataclass(frozen=True)
class Untried(Protocol):
    """Chooses a value between its trials."""

    def choose(self, question, trials):
        return super().choose(question, trials) + 0.01


@dataclass(frozen=True)
class Endless(Protocol):
    """Proposes another value whatever it knows."""

    def propose(self, question, trials):
        return ((len(trials) + 1) / 10_000,)


@dataclass(frozen=True)
class Outside(Protocol):
    """Proposes a value beyond the searched ones."""

    def propose(self, question, trials):
        return () if trials else (question.candidates[-1] + 1,)


@dataclass(frozen=True)
class Forgetful(Protocol):
    """Has a memory of its own, which a resumed study lacks."""

    def choose(self, question, trials):
        CALLS.append(1)
        return trials[len(CALLS) % len(trials)].value


@dataclass(frozen=True)
class Blind(Protocol):
    """Takes the first value, diverged or not."""

    def choose(self, question, trials):
        return trials[-1].value


CALLS = []
BROKEN = {
    Untried: "the_choice_is_a_value_that_was_tried",
    Endless: "proposals_end_lie_inside_and_are_new",
    Outside: "proposals_end_lie_inside_and_are_new",
    Forgetful: "the_same_trials_lead_to_the_same_choice",
    Blind: "a_value_that_diverged_is_not_chosen",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_is_caught(kind):
    assert BROKEN[kind] in failures(protocol_checks(kind("broken", "", View())))


def _question(**more):
    return replace(Question((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), 2, 10), **more)


def _trial(value, *accuracies):
    """A trial of one seed whose newest row has these accuracies."""
    import numpy as np

    matrix = np.full((1, len(accuracies), len(accuracies)), np.nan)
    matrix[0, -1] = accuracies
    return Trial(value, matrix)


def test_current_task_looks_at_the_newest_task_and_seen_tasks_at_all():
    trials = [_trial(0.0, 0.2, 0.2, 0.9), _trial(1.0, 0.8, 0.8, 0.5)]
    assert protocol("current-task").choose(_question(), trials) == 0.0
    assert protocol("seen-tasks").choose(_question(), trials) == 1.0


def test_of_equal_scores_the_last_value_stays():
    trials = [_trial(value, 0.5, 0.5) for value in (0.0, 0.5, 1.0)]
    assert protocol("seen-tasks").choose(_question(last=0.5), trials) == 0.5
    assert protocol("seen-tasks").choose(_question(), trials) == 0.0


def test_chf_decays_until_the_newest_task_is_learned_nearly_as_well():
    """By hand: plastic 0 reaches 0.9; 0.72 suffices; 1 and 0.5 do not, 0.25 does."""
    chf, question, trials = protocol("chf"), _question(stability=1), []
    reached = {0.0: 0.9, 1.0: 0.3, 0.5: 0.71, 0.25: 0.73}
    while values := chf.propose(question, trials):
        trials += [_trial(value, 0.5, reached[value]) for value in values]
    assert [trial.value for trial in trials] == [0.0, 1.0, 0.5, 0.25]
    assert chf.choose(question, trials) == 0.25


def test_chf_returns_a_value_that_it_has_trained_where_no_try_suffices():
    chf, question, trials = protocol("chf"), _question(stability=1), []
    while values := chf.propose(question, trials):
        trials += [_trial(value, 0.9 if value == 0.0 else 0.1) for value in values]
    assert len(trials) == 8, "the most plastic value and seven tries"
    assert chf.choose(question, trials) == 0.0


def test_chf_of_the_other_direction_doubles():
    chf, question, trials = protocol("chf"), _question(candidates=(0.25, 1.0), places=(0.0, 1.0), stability=-1), []
    while values := chf.propose(question, trials):
        trials += [_trial(value, 0.9 if value == 1.0 else 0.1) for value in values]
    assert [trial.value for trial in trials] == [1.0, 0.25, 0.5]


@pytest.mark.parametrize("view", [None, View("search", "test"), View(tasks=2), View(share=0.5)])
def test_a_choice_at_every_task_needs_all_of_the_evaluation(view):
    with pytest.raises(ValueError, match="view of a protocol per task must be all of the evaluation stream, got"):
        Protocol("broken", "", view, per_task=True)


@pytest.mark.parametrize(("stability", "values", "decayed"), [(1, (0.4, 1.0), 0.5), (-1, (0.4, 1.0), 0.8)])
def test_a_decayed_value_stays_among_the_candidates(stability, values, decayed):
    question = _question(candidates=values, places=(0.0, 1.0), stability=stability)
    plastic, stable = values if stability > 0 else values[::-1]
    trials = [_trial(plastic, 0.9), _trial(stable, 0.1)]
    assert protocol("chf").propose(question, trials) == (decayed,)
    assert protocol("chf").propose(question, [*trials, _trial(decayed, 0.1)]) == (), "the next one is the most plastic"


def _forgetting(value, rate, tasks=4):
    """A trial of two seeds that learns less the larger its value is, and loses a share at every later task."""
    import numpy as np

    age = np.maximum(np.arange(tasks)[:, None] - np.arange(tasks), 0)
    levels = 0.9 - 0.1 * value + np.array([0.0, 0.004])[:, None, None]
    return Trial(value, np.where(np.tri(tasks, dtype=bool), levels * np.exp(-rate * age), np.nan))


def test_extrapolated_takes_what_lasts():
    """On four tasks ε = 0 is ahead, on 30 what forgets less."""
    trials = [_forgetting(value, 0.03 * (1 - value)) for value in (0.0, 0.5, 1.0)]
    question = _question(task=3, tasks=30)
    assert protocol("cv-tasks").choose(question, trials) == 0.0
    assert protocol("extrapolated").choose(question, trials) == 1.0


def test_extrapolated_leaves_diverged_values_out_and_needs_two_that_differ():
    import numpy as np

    lost = Trial(1.0, np.full((2, 4, 4), np.nan))
    kept = [_forgetting(value, 0.03 * (1 - value)) for value in (0.0, 0.5)]
    assert protocol("extrapolated").choose(_question(task=3, tasks=30), [*kept, lost]) == 0.5
    assert protocol("extrapolated").choose(_question(task=3, tasks=30), [kept[1], lost]) == 0.5, "nothing to compare"
    same = [Trial(value, kept[0].matrices) for value in (0.5, 1.0)]
    assert protocol("extrapolated").choose(_question(task=3, tasks=30), same) == 0.5, "equal scores: the smallest"


def test_extrapolated_needs_as_many_tasks_as_its_model():
    from results.statistics.extrapolation import FEWEST_TASKS

    assert protocol("extrapolated").fewest == FEWEST_TASKS
