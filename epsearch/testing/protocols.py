"""Promises of search protocols: `protocol_checks`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epsearch.protocols.protocol import Protocol, Question, Trial
from epsearch.protocols.registry import protocol as protocol_of
from epsearch.testing.promises import Check, checks_of, sure

Accuracy = Callable[[float], float]
ACCURACIES: Sequence[Accuracy] = (
    lambda value: 0.5,
    lambda value: 0.2 + 0.5 * value,
    lambda value: 0.8 - 0.5 * value,
    lambda value: 0.9 - (value - 0.4) ** 2,
)
"""Accuracy of a task by the value: equal, rising, falling, highest inside."""

SEEDS, TASKS = 2, 3
MOST_TRIALS = 1000  # of one question: a protocol that wants more does not end
VALUES = (0.0, 0.25, 0.5, 0.75, 1.0)
QUESTION = Question(VALUES, VALUES, TASKS - 1, 17, stability=1, known={"default": 0.5, "published": 0.25})


def protocol_checks(protocol: Protocol | str) -> list[Check]:
    """Returns checks of a search protocol, or of the name of one."""
    case = protocol_of(protocol) if isinstance(protocol, str) else protocol
    return checks_of(PROMISES, case)


def proposals_end_lie_inside_and_are_new(protocol: Protocol) -> str | None:
    """A trial costs a member of every seed."""
    for question in _questions(protocol):
        for accuracy in ACCURACIES:
            tried = [trial.value for trial in ask(protocol, question, accuracy)]
            sure(len(set(tried)) == len(tried), f"a value must be proposed once, got {tried}")
            low, high = question.candidates[0], question.candidates[-1]
            sure(all(low <= value <= high for value in tried), f"values must lie in {low:g}…{high:g}, got {tried}")
            sure(protocol.view is not None or not tried, f"what sees nothing must try nothing, got {tried}")
    return None


def the_choice_is_a_value_that_was_tried(protocol: Protocol) -> str | None:
    """Nobody knows what another value would do."""
    if protocol.view is None:
        return "it sees nothing"
    for question in _questions(protocol):
        for accuracy in ACCURACIES:
            trials = ask(protocol, question, accuracy)
            tried, choice = [trial.value for trial in trials], protocol.choose(question, trials)
            sure(choice in tried, f"the choice must be one of the trials {tried}, got {choice}")
    return None


def the_same_trials_lead_to_the_same_choice(protocol: Protocol) -> str | None:
    """A killed study is resumed by the records alone."""
    for question in _questions(protocol):
        for accuracy in ACCURACIES:
            trials = ask(protocol, question, accuracy)
            copies = [Trial(trial.value, trial.matrices.copy()) for trial in trials]
            again = ask(protocol, question, accuracy)
            sure(
                [trial.value for trial in again] == [trial.value for trial in trials],
                "proposals must follow from the trials",
            )
            first, second = protocol.choose(question, trials), protocol.choose(question, again)
            sure(first == second, f"equal trials must lead to one choice, got {first} and {second}")
            same = all(
                np.array_equal(a.matrices, b.matrices, equal_nan=True) for a, b in zip(trials, copies, strict=True)
            )
            sure(same, "trials must not be changed")
    return None


def a_value_that_diverged_is_not_chosen(protocol: Protocol) -> str | None:
    """Its member has no network to go on with."""
    if protocol.view is None:
        return "it sees nothing"
    for lost in VALUES[1:]:
        trials = ask(protocol, QUESTION, _losing(lost))
        if any(trial.value == lost for trial in trials):
            choice = protocol.choose(QUESTION, trials)
            sure(choice != lost, f"{lost:g} has diverged, and was chosen")
    return None


def a_question_in_which_all_diverge_is_refused(protocol: Protocol) -> str | None:
    """Its reason stands in the report."""
    if protocol.view is None:
        return "it sees nothing"
    try:
        choice = protocol.choose(QUESTION, ask(protocol, QUESTION, lambda value: math.nan))
    except ValueError:
        return None
    raise AssertionError(f"where all trials diverge ValueError must be raised, {choice:g} was chosen")


PROMISES = (
    proposals_end_lie_inside_and_are_new,
    the_choice_is_a_value_that_was_tried,
    the_same_trials_lead_to_the_same_choice,
    a_value_that_diverged_is_not_chosen,
    a_question_in_which_all_diverge_is_refused,
)


def ask(protocol: Protocol, question: Question, accuracy: Accuracy) -> list[Trial]:
    """Returns the trials of a question with made-up accuracies. Raises AssertionError where they do not end."""
    trials: list[Trial] = []
    while values := protocol.propose(question, trials):
        trials += [Trial(value, _matrices(accuracy(value), question.task + 1)) for value in values]
        sure(len(trials) <= MOST_TRIALS, f"proposals must end, got {len(trials)} for {len(question.candidates)} values")
    return trials


def _losing(lost: float) -> Accuracy:
    return lambda value: math.nan if value == lost else 0.5 + 0.1 * value


def _matrices(accuracy: float, tasks: int) -> NDArray[np.float64]:
    """Returns matrices [S, k, k] that forget a little at every task; NaN where a member diverged."""
    age = np.maximum(np.arange(tasks)[:, None] - np.arange(tasks), 0)
    seed = np.linspace(0, 0.01, SEEDS)[:, None, None]
    return np.asarray(np.where(np.tri(tasks, dtype=bool), accuracy * 0.97**age + seed, np.nan))


def _questions(protocol: Protocol) -> Iterator[Question]:
    """Yields questions with and without an earlier choice, with either direction, on long and short lists of values."""
    yield QUESTION
    yield replace(QUESTION, candidates=VALUES[::4], places=VALUES[::4])
    yield replace(QUESTION, stability=-1)
    if protocol.per_task:
        yield replace(QUESTION, last=0.5)
