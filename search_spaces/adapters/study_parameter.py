"""Numeric parameters and trials of an Optuna study, for interval searches."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from search_spaces.interval import exact
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.space import Parameter, Point
from search_spaces.strategy import Observation, Suggestion

SUGGESTION = "interval_narrowing"
"""Name of the attribute of a trial that holds [name of the parameter, number of the suggestion]."""


@dataclass(frozen=True)
class StudyParameter:
    """A numeric parameter of a study. If it has a step, the search counts its values from 0."""

    name: str
    """The name of the parameter in the study."""
    distribution: FloatDistribution | IntDistribution
    """Its range, with a step or on a logarithmic axis."""

    def search(self, points: int, repeats: int, trials: Sequence[FrozenTrial], sign: float) -> IntervalNarrowing:
        """Returns the search in the state to which the finished trials lead; sign −1 where lower is better.

        Raises ValueError when the parameter has fewer than N = `points` different values.
        """
        try:
            search = IntervalNarrowing(self._parameter(), points, repeats)
        except ValueError as error:
            raise ValueError(f"{self.name} must have room for {points} values, got {self.distribution}") from error
        scores = self._scores(trials, sign)
        while scored := [suggestion for suggestion in search.ask() if self._key(suggestion) in scores]:
            search.tell([Observation(suggestion.number, scores[self._key(suggestion)]) for suggestion in scored])
        return search

    def value(self, point: Point) -> float | int:
        """Returns a point of the search as a value of the study's parameter."""
        number, distribution, step = point[0], self.distribution, self._step
        if isinstance(distribution, IntDistribution):
            return int(number) if step is None else distribution.low + int(number) * distribution.step
        return float(number) if step is None else float(exact(distribution.low) + int(number) * exact(step))

    @property
    def _step(self) -> float | None:
        """The step by which values are counted; None where they are searched themselves."""
        # Every IntDistribution has a step, and 1 is none; a FloatDistribution without one has None.
        step = self.distribution.step
        return None if step == 1 and isinstance(self.distribution, IntDistribution) else step

    def _parameter(self) -> Parameter:
        """Returns the parameter of the search: the values themselves, or their numbers if there is a step."""
        distribution, step = self.distribution, self._step
        if step is not None:
            return Parameter(self.name, 0, round((distribution.high - distribution.low) / step), whole=True)
        return Parameter(
            self.name,
            distribution.low,
            distribution.high,
            log=distribution.log,
            whole=isinstance(distribution, IntDistribution),
        )

    def _key(self, suggestion: Suggestion) -> tuple[int, float]:
        return suggestion.number, self.value(suggestion.point)

    def _scores(self, trials: Sequence[FrozenTrial], sign: float) -> dict[tuple[int, float], float | None]:
        """Returns (number, value) of a suggestion -> score of the trial that finished first; None where it failed.

        The value is part of the key, because a number is another point if the study was begun with other arguments.
        """
        retried = {number for trial in trials for number in trial.system_attrs.get("retry_history", ())}
        scores: dict[tuple[int, float], float | None] = {}
        for trial in sorted(trials, key=lambda trial: (trial.datetime_complete or datetime.max, trial.number)):
            number, same_range = number_of(trial, self.name), trial.distributions.get(self.name) == self.distribution
            if trial.state.is_finished() and trial.number not in retried and number is not None and same_range:
                scores.setdefault((number, trial.params[self.name]), _score(trial, sign))
        return scores


def number_of(trial: FrozenTrial, name: str) -> int | None:
    """Returns the number of the suggestion for parameter `name` that a trial evaluates; None if it evaluates none."""
    # A suggestion that was given back (`_must_be_alone`) is stored as None.
    parameter, number = trial.system_attrs.get(SUGGESTION) or (None, None)
    return number if parameter == name else None


def narrowed_parameters(trials: Sequence[FrozenTrial]) -> set[str]:
    """Returns the names of all parameters for which trials took suggestions."""
    return {trial.system_attrs[SUGGESTION][0] for trial in trials if trial.system_attrs.get(SUGGESTION)}


def finished_trial(trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> FrozenTrial:
    """Returns a trial as it will be when its end is stored."""
    ended = copy.copy(trial)
    ended.state, ended.values, ended.datetime_complete = state, None if values is None else list(values), datetime.now()
    return ended


def numeric(distribution: BaseDistribution | None) -> FloatDistribution | IntDistribution | None:
    """Returns the distribution if it is one of numbers; None otherwise."""
    return distribution if isinstance(distribution, FloatDistribution | IntDistribution) else None


def _score(trial: FrozenTrial, sign: float) -> float | None:
    """Returns the score, higher is better; None for a trial that failed, was pruned or has no finite value."""
    if trial.state != TrialState.COMPLETE or trial.value is None or not math.isfinite(trial.value):
        return None
    return sign * trial.value
