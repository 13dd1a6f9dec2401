"""Optuna's samplers as strategies, batch by batch, with studies in memory."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState

from search_spaces.adapters.samplers import SAMPLERS, distributions
from search_spaces.rounds import InRounds
from search_spaces.space import Point, Space
from search_spaces.strategy import Budget, Observation


def optuna_strategy(name: str, space: Space, budget: Budget) -> "_OptunaStrategy":
    """Returns the strategy of a name in SAMPLERS. Raises ValueError for a space that its sampler cannot search."""
    return _OptunaStrategy(space, SAMPLERS[name](space, budget), budget.points, budget.repeats)


class _OptunaStrategy(InRounds):
    """A `Strategy` of M = `repeats` batches of N = `points` suggestions of a sampler.

    The sampler is told a batch when it is complete, in the order of its numbers, so the next suggestions depend on the
    scores alone and not on the order in which they arrived. A failed point is told as the worst score so far, its own
    batch included, so that the sampler avoids it: all samplers ignore Optuna's own state FAIL. Only while nothing has
    succeeded, a failure is told as FAIL.
    """

    def __init__(self, space: Space, sampler: BaseSampler, points: int, repeats: int) -> None:
        self._names, self._distributions = space.names, distributions(space)
        self._size, self._repeats = points, repeats
        with _silence():
            self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._trials: list[Trial] = []
        super().__init__(self._draw())

    @property
    def done(self) -> bool:
        """True if the last batch is complete."""
        return self._complete and len(self._rounds) == self._repeats

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores; a complete batch is told to the sampler. Raises ValueError as `Strategy.tell` does."""
        if self._take(observations) and not self.done:
            self._learn()
            self._begin(self._draw())

    def _draw(self) -> list[Point]:
        """Returns the points of the next batch."""
        with _silence():  # Optuna logs the values of every trial
            self._trials = [self._study.ask(self._distributions) for _ in range(self._size)]
        return [tuple(trial.params[name] for name in self._names) for trial in self._trials]

    def _learn(self) -> None:
        """Tells the sampler the last batch."""
        worst = min((candidate.value for candidate in self._scored_suggestions()), default=None)
        # In the order of the numbers, not of arrival: timing must not change what is suggested next.
        scores = self._show(len(self._rounds) - 1).scores
        for trial, score in zip(self._trials, scores, strict=True):
            value = worst if score is None else score
            self._study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)


class _Silence:
    """A context in which Optuna's log is silent.

    The log level belongs to the whole process, so it is restored when the last thread leaves.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._level = threading.Lock(), 0, optuna.logging.WARNING

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._move(1)
        try:
            yield
        finally:
            self._move(-1)

    def _move(self, step: int) -> None:
        with self._lock:
            if self._inside == 0:
                self._level = optuna.logging.get_verbosity()
                optuna.logging.set_verbosity(optuna.logging.CRITICAL)
            self._inside += step
            if self._inside == 0:
                optuna.logging.set_verbosity(self._level)


_silence = _Silence()
