"""Rounds of points and their scores, as all strategies record them."""

from collections.abc import Sequence

from search_spaces.space import Point
from search_spaces.strategy import Best, Observation, Round, Suggestion, take_in


class InRounds:
    """Base class of strategies that suggest points in rounds.

    The first point of a round has the number after the last one of the round before. A subclass says in `tell` which
    points the next round has, and when it is `done`.
    """

    def __init__(self, first: Sequence[Point]) -> None:
        self._rounds: list[list[Suggestion]] = []
        self._observations: dict[int, Observation] = {}
        self._begin(first)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        return tuple(map(self._show, range(len(self._rounds))))

    @property
    def best(self) -> Best | None:
        """The suggestion with the highest score so far; of equal scores the smaller number."""
        return min(self._scored_suggestions(), key=lambda candidate: (-candidate.value, candidate.number), default=None)

    def ask(self) -> list[Suggestion]:
        """Returns the suggestions of the current round that have no score yet, ascending."""
        return [suggestion for suggestion in self._rounds[-1] if suggestion.number not in self._observations]

    def _begin(self, points: Sequence[Point]) -> None:
        """Opens a round; the one before must be complete."""
        start = sum(map(len, self._rounds))  # numbers go on, so that an observation names its round, too
        self._rounds.append([Suggestion(number, point) for number, point in enumerate(points, start)])

    @property
    def _complete(self) -> bool:
        """True if every score of the last round was told."""
        return not self.ask()

    def _take(self, observations: Sequence[Observation]) -> bool:
        """Takes scores and returns whether they completed the last round. Raises ValueError as `Strategy.tell` does."""
        was_open = not self._complete
        self._observations = take_in(self._observations, observations, range(sum(map(len, self._rounds))))
        return was_open and self._complete

    def _observed_suggestions(self) -> list[tuple[Suggestion, Observation]]:
        """Returns every suggestion whose score was told, with its observation, in the order of the numbers.

        Never in the order of arrival: what a strategy does next must not depend on which member finished first.
        """
        return [
            (suggestion, self._observations[suggestion.number])
            for row in self._rounds
            for suggestion in row
            if suggestion.number in self._observations
        ]

    def _scored_suggestions(self) -> list[Best]:
        """Returns the suggestions that have a score, in the order of their numbers."""
        return [
            Best(suggestion.point, observation.value, suggestion.number)
            for suggestion, observation in self._observed_suggestions()
            if observation.value is not None
        ]

    def _show(
        self,
        index: int,
        span: tuple[float, float] | None = None,
        winners: tuple[int, int] | None = None,
        note: str = "",
    ) -> Round:
        """Returns round `index` (from 0) with what its strategy says about it."""
        row = self._rounds[index]
        observations = (self._observations.get(suggestion.number) for suggestion in row)
        scores = tuple(None if observation is None else observation.value for observation in observations)
        return Round(index + 1, tuple(suggestion.point for suggestion in row), scores, span, winners, note)
