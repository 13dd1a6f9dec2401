"""The bookkeeping that strategies share: points in rounds, numbered through, and what was told of them."""

from collections.abc import Sequence

from search_spaces.space import Point
from search_spaces.strategy import Best, Observation, Round, Suggestion, take_in


class Rounds:
    """Rounds of suggestions: the first point of a round has the number after the last one of the round before."""

    def __init__(self, first: Sequence[Point]) -> None:
        self._rounds: list[list[Suggestion]] = []
        self._told: dict[int, Observation] = {}
        self.begin(first)

    def begin(self, points: Sequence[Point]) -> None:
        """Open a round; the one before must be complete."""
        start = sum(map(len, self._rounds))
        self._rounds.append([Suggestion(number, point) for number, point in enumerate(points, start)])

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def complete(self) -> bool:
        """Whether all of the last round was told."""
        return not self.ask()

    def ask(self) -> list[Suggestion]:
        """The suggestions of the last round that were not told yet, ascending."""
        return [one for one in self._rounds[-1] if one.number not in self._told]

    def tell(self, observations: Sequence[Observation]) -> bool:
        """Take in scores; whether they completed the last round. Raises ValueError as `Strategy.tell` does."""
        was_open = not self.complete
        self._told = take_in(self._told, observations, range(sum(map(len, self._rounds))))
        return was_open and self.complete

    def told(self) -> list[tuple[Suggestion, Observation]]:
        """Every suggestion that was told, with its observation, by number: whatever order they came in."""
        return [(one, self._told[one.number]) for row in self._rounds for one in row if one.number in self._told]

    def scored(self) -> list[Best]:
        """The successes, by number."""
        return [Best(one.point, seen.value, one.number) for one, seen in self.told() if seen.value is not None]

    @property
    def best(self) -> Best | None:
        """The highest score; of equal ones the smaller number."""
        return min(self.scored(), key=lambda one: (-one.value, one.number), default=None)

    def show(
        self,
        index: int,
        span: tuple[float, float] | None = None,
        winners: tuple[int, int] | None = None,
        note: str = "",
    ) -> Round:
        """Round `index` (from 0) as a reader sees it."""
        row = self._rounds[index]
        told = (self._told.get(one.number) for one in row)
        scores = tuple(None if one is None else one.value for one in told)
        return Round(index + 1, tuple(one.point for one in row), scores, span, winners, note)


class InRounds:
    """What strategies answer whose rounds have neither intervals nor notes, whatever it is that they suggest."""

    _rounds: Rounds

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        return tuple(map(self._rounds.show, range(len(self._rounds))))

    @property
    def best(self) -> Best | None:
        """The highest score so far; of equal ones the smaller number."""
        return self._rounds.best

    def ask(self) -> list[Suggestion]:
        """The suggestions of the current round that are not told yet, ascending."""
        return self._rounds.ask()
