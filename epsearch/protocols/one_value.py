"""Protocols that choose one value for the whole stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsearch.protocols.protocol import Protocol, Question, Trial


@dataclass(frozen=True)
class Known(Protocol):
    """Takes a value that is known without a trial."""

    of: str = "default"
    """Its name among the known values of a question."""

    def needs(self, question: Question) -> str:
        """Returns that there is no such value; "" where there is one."""
        return "" if self.of in (question.known or {}) else f"protocol {self.of} has no {self.of} value here"

    def choose(self, question: Question, trials: Sequence[Trial]) -> float:
        """Returns the known value."""
        return (question.known or {})[self.of]


@dataclass(frozen=True)
class Predicted(Protocol):
    """Takes the value whose A_T is predicted to be highest after as many tasks as are judged (docs/along.md)."""

    fewest: int = 3  # as the model has it, which is not imported for a check

    def choose(self, question: Question, trials: Sequence[Trial]) -> float:
        """Returns that value; without a difference to predict from, the best one so far. Raises as `Protocol`."""
        from results.statistics.extrapolation import Extrapolation  # brings scipy along

        whole = [trial for trial in trials if not np.isnan(trial.accuracies).any()]
        outcomes = {tuple(trial.matrices[:, -1].ravel()) for trial in whole}
        if len(outcomes) < 2:
            return super().choose(question, trials)
        places = dict(zip(question.candidates, question.places, strict=True))
        x = np.array([[places[trial.value]] for trial in whole])
        matrices = np.array([trial.matrices for trial in whole])
        model = Extrapolation.fit(x, matrices, question.tasks, np.ones(matrices.shape[:2], dtype=bool))
        return whole[model.choice].value
