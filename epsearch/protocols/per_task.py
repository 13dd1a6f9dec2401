"""Protocols that choose a value anew at every task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from epsearch.protocols.protocol import Protocol, Question, Trial

DROP = 0.2
"""Share of the accuracy of the most plastic value that may be lost: p of De Lange et al., as FACIL sets it."""
DECAY = 0.5
"""Factor of a value from try to try."""
TRIES = 7
"""Most tries at a task, beside that of the most plastic value."""


@dataclass(frozen=True)
class ContinualHyperparameterFramework(Protocol):
    """Decays the most stable value until the newest task is learned nearly as well as by the most plastic one.

    De Lange et al. 2021 (arXiv 1909.08383), algorithm 1, with the learning rate of the study. Where no try suffices it
    returns the most plastic value, which was trained, in the place of one that was not.
    """

    def needs(self, question: Question) -> str:
        """Returns that the method declares no direction; "" where it does."""
        return "" if question.stability else "protocol chf needs a hyperparameter that says which values protect more"

    def propose(self, question: Question, trials: Sequence[Trial]) -> tuple[float, ...]:
        """Returns the most plastic value, then the most stable one, then decayed ones."""
        plastic, stable = _ends(question)
        if not trials:
            return (plastic,)
        if len(trials) == 1:
            return (stable,)
        if len(trials) > TRIES or self._suffices(trials[0], trials[-1]):
            return ()
        value = _decay(question, trials[-1].value)
        return () if value in {trial.value for trial in trials} else (value,)

    def choose(self, question: Question, trials: Sequence[Trial]) -> float:
        """Returns the newest value if it suffices, else the most plastic one. Raises ValueError where that diverged."""
        if math.isnan(self.score(trials[0])):
            raise ValueError(f"{self.title} has nothing to compare with: {trials[0].value:g} has diverged")
        return trials[-1].value if self._suffices(trials[0], trials[-1]) else trials[0].value

    def _suffices(self, plastic: Trial, trial: Trial) -> bool:
        return self.score(trial) >= (1 - DROP) * self.score(plastic)


def _ends(question: Question) -> tuple[float, float]:
    """Returns the most plastic and the most stable candidate."""
    low, high = question.candidates[0], question.candidates[-1]
    return (low, high) if question.stability > 0 else (high, low)


def _decay(question: Question, value: float) -> float:
    """Returns the next more plastic value, never beyond the most plastic candidate."""
    low, high = question.candidates[0], question.candidates[-1]
    return max(low, value * DECAY) if question.stability > 0 else min(high, value / DECAY)
