"""The contract of a search protocol: what it may see, which values it tries, and which one it chooses.

A protocol never trains and never measures. It declares a `View`, proposes values, and chooses by the accuracies of
trials within that view alone; the loop trains, and compares by hashes what chose with what judges.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SEARCH, EVALUATION = "search", "evaluation"
STREAMS = (SEARCH, EVALUATION)
"""Streams that a protocol may see: D^CV, whose tasks nobody judges, and D^EV, which is judged."""
TEST, VALIDATION, MEMORY = "test", "validation", "memory"
TESTS = (TEST, VALIDATION, MEMORY)
"""Examples that measure a trial: the test sets; a share of each task's training data that is held out; of that share as
many examples per class as an episodic memory holds."""


@dataclass(frozen=True)
class View:
    """The accuracies that a protocol sees before its choice. Raises ValueError, in one line, for an impossible view."""

    stream: str = EVALUATION
    """One of STREAMS."""
    tests: str = VALIDATION
    """One of TESTS; the tasks of D^CV are measured by their test sets, as nobody judges by these."""
    tasks: int | None = None
    """Number of the first tasks; None for all. A protocol that chooses at every task sees those so far."""
    share: float = 1.0
    """Share of the steps of the stream, from its start on."""

    def __post_init__(self) -> None:
        for name, value, allowed in (("stream", self.stream, STREAMS), ("tests", self.tests, TESTS)):
            if value not in allowed:
                raise ValueError(f"{name} of a view must be one of {', '.join(allowed)}, got {value!r}")
        if self.tasks is not None and self.tasks < 1:
            raise ValueError(f"tasks of a view must be >= 1, got {self.tasks}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share of a view must lie in (0, 1], got {self.share:g}")
        if self.stream == SEARCH and self.tests != TEST:
            raise ValueError(f"tests of the search stream must be its test sets, got {self.tests!r}")

    @property
    def phase(self) -> str:
        """The phase whose members are seen."""
        return "cv" if self.stream == SEARCH else "eval" if self.tests == TEST else self.tests


@dataclass(frozen=True, eq=False)
class Trial:
    """A value, and the accuracies of its members within the view."""

    value: float
    matrices: NDArray[np.float64]
    """[S, k, k] of S seeds in one order of tasks: on task j after task i, fractions; NaN where a member diverged."""

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """[k]: accuracy on each task so far, after the newest one, mean over seeds; NaN where a seed diverged."""
        return np.asarray(self.matrices[:, -1].mean(axis=0))


@dataclass(frozen=True)
class Question:
    """The choice that a protocol is asked for: once, or at a task."""

    candidates: tuple[float, ...]
    """Values that may be chosen, ascending."""
    places: tuple[float, ...]
    """Positions of the candidates on the searched axis, from 0 to 1."""
    task: int
    """Position of the task that is trained, from 0; of a choice that is made once, the last one in view."""
    tasks: int
    """Tasks of the evaluation stream."""
    last: float | None = None
    """The value of the task before; None where none was chosen yet."""
    stability: int = 0
    """1 if larger values protect earlier tasks more, −1 if smaller ones do, 0 where the method does not say."""
    known: Mapping[str, float] | None = None
    """Values that need no trial: "default" of the method, "published" for the data set."""


@dataclass(frozen=True)
class Protocol:
    """A search protocol. Subclasses say otherwise what is tried, how a trial scores, and which value is chosen."""

    title: str
    """For tables."""
    source: str
    """Paper and arXiv number; "" for epsearch's own."""
    view: View | None
    """None for a protocol that sees nothing."""
    per_task: bool = False
    """True for a choice at every task, each of which continues the training of the last one."""
    bound: bool = False
    """Whether it needs what nobody has, and so is a bound, no rival."""
    fewest: int = 1
    """Fewest tasks in view with which it can choose."""
    newest: bool = False
    """Whether the task that was trained last scores alone."""

    def __post_init__(self) -> None:
        """Raises ValueError, in one line, where a choice at every task has no tasks to go along."""
        if self.per_task and (self.view is None or replace(self.view, tests=TEST) != View(tests=TEST)):
            raise ValueError(f"view of a protocol per task must be all of the evaluation stream, got {self.view}")

    def needs(self, question: Question) -> str:
        """Returns why it cannot choose here, in one line; "" where it can."""
        return ""

    def propose(self, question: Question, trials: Sequence[Trial]) -> tuple[float, ...]:
        """Returns the values to try next, those of trials not again; () once it can choose. Here, all candidates."""
        tried = {trial.value for trial in trials}
        return tuple(value for value in question.candidates if value not in tried) if self.view else ()

    def score(self, trial: Trial) -> float:
        """Returns the score of a trial, higher is better; NaN never wins. Here, the accuracy on the task or tasks."""
        return float(trial.accuracies[-1] if self.newest else trial.accuracies.mean())

    def choose(self, question: Question, trials: Sequence[Trial]) -> float:
        """Returns the value to train with: of equal scores that of the task before, else the smallest one.

        Raises ValueError where no trial has a score.
        """
        scores = {trial.value: score for trial in trials if not math.isnan(score := self.score(trial))}
        if not scores:
            raise ValueError(f"{self.title} has no trial to choose from: all have diverged")
        best = [value for value, score in scores.items() if score == max(scores.values())]
        return question.last if question.last in best else min(best)
