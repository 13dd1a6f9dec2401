"""A strategy that finally tries the point of the fitted curve."""

from collections.abc import Callable, Sequence

from search_spaces.space import Point
from search_spaces.strategy import Best, Observation, Round, Strategy, Suggestion, take_in

NAMED = "the value that the curve names"


class Naming:
    """A `Strategy` that goes on for one point when another one, `inner`, is done, unless that has tried it.

    name: called once `inner` is done; returns the point, or None where no curve names any. That point is the best,
    whatever its score: it was chosen by the scores of all others. Where it fails, the best is that of `inner`.
    """

    def __init__(self, inner: Strategy, name: Callable[[], Point | None]) -> None:
        self._inner, self._name = inner, name
        self._suggested: dict[int, Point] = {}
        self._best_of: dict[Point, Best] = {}  # of inner, the highest score of each point
        self._point: Point | None = None
        self._suggestion: Suggestion | None = None
        self._observations: dict[int, Observation] = {}  # of its own suggestion, which is at most one
        self._go_on()

    @property
    def inner(self) -> Strategy:
        """The strategy that searches."""
        return self._inner

    @property
    def named_point(self) -> Point | None:
        """The point that the curve names; None before the search is done, and without a curve."""
        return self._point

    @property
    def done(self) -> bool:
        """True if nothing is to be tried any more."""
        return self._inner.done and not self.ask()

    @property
    def best(self) -> Best | None:
        """The named point once it has a score; before, and where it fails, the best of all that were tried."""
        if (
            self._suggestion is not None
            and (observation := self._observations.get(self._suggestion.number)) is not None
            and observation.value is not None
        ):
            return Best(self._suggestion.point, observation.value, self._suggestion.number)
        best = None if self._point is None else self._best_of.get(self._point)
        return self._inner.best if best is None else best

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Those of the search, and one of the named point alone."""
        rounds = self._inner.rounds
        if self._suggestion is None:
            return rounds
        observation = self._observations.get(self._suggestion.number)
        score = None if observation is None else observation.value
        return (*rounds, Round(len(rounds) + 1, (self._suggestion.point,), (score,), note=NAMED, named=True))

    def ask(self) -> list[Suggestion]:
        """Returns the open suggestions of the search, then that of the named point."""
        suggestions = self._inner.ask()
        self._suggested |= {suggestion.number: suggestion.point for suggestion in suggestions}
        return suggestions or [
            suggestion
            for suggestion in (self._suggestion,)
            if suggestion is not None and suggestion.number not in self._observations
        ]

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores. Raises ValueError, and takes nothing, as `Strategy.tell` does."""
        number = -1 if self._suggestion is None else self._suggestion.number
        every = take_in(
            self._observations, (observation for observation in observations if observation.number == number), {number}
        )
        self.ask()
        self._inner.tell([observation for observation in observations if observation.number != number])
        self._observations = every
        for observation in observations:
            if observation.number != number and observation.value is not None:
                point = self._suggested[observation.number]
                before = self._best_of.get(point)
                if before is None or (observation.value, -observation.number) > (before.value, -before.number):
                    self._best_of[point] = Best(point, observation.value, observation.number)
        self._go_on()

    def _go_on(self) -> None:
        if self._suggestion is None and self._point is None and self._inner.done:
            self._point = self._name()
            if self._point is not None and self._point not in self._best_of:
                tried = sum(len(round.points) for round in self._inner.rounds)
                self._suggestion = Suggestion(max([tried - 1, *self._suggested]) + 1, self._point)
