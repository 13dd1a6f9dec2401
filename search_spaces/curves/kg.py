"""Batches by knowledge gradient.

The points from which the top of a model's mean can be expected to rise most.
"""

from collections.abc import Sequence

from search_spaces.curves.candidates import candidates, places
from search_spaces.grid import grid
from search_spaces.rounds import InRounds
from search_spaces.space import Point, Space
from search_spaces.strategy import Model, Observation, Round

WORTH = 0.0001
"""Gain of a batch in units of the score, below which the search ends: a hundredth of a percentage point of A_T."""

EVERY = 5
"""Every fifth tick of a single parameter may be suggested: a model of that many values is quick to ask."""


class KnowledgeGradient(InRounds):
    """A `Strategy` of at most M = `repeats` batches of N = `points` different points.

    The first batch is spread evenly over the space. For the others `model` is fitted to all scores, seed by seed, and
    says which points are worth most and what they are worth; below `WORTH` the search ends, but not before a batch of
    the model's own has confirmed it. Failed points are left out of the fit and not suggested again;
    of points that stand apart only those of the first batch are tried, and no curve runs through them.
    """

    def __init__(self, space: Space, points: int, repeats: int, model: Model) -> None:
        self._space, self._size, self._repeats, self._model = space, points, repeats, model
        self._all = candidates(space, EVERY)
        self._ended = ""  # why no batch follows
        super().__init__(_first(space, points, self._all))

    @property
    def done(self) -> bool:
        """True if the budget is used up, or another batch is worth too little."""
        return self._complete and (bool(self._ended) or len(self._rounds) == self._repeats)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished batches and, unless done, the open one; the last one says why the search ended early."""
        last = len(self._rounds) - 1
        return tuple(self._show(index, note=self._ended if index == last else "") for index in range(last + 1))

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores; a complete batch decides about the next one. Raises ValueError as `Strategy.tell` does."""
        if self._take(observations) and not self.done:
            batch = self._next()
            if batch:
                self._begin(batch)

    def _next(self) -> list[Point]:
        """Returns the points of the next batch; none, with the reason stored, where the search ends."""
        trials = [
            (suggestion.point, observation.scores or (observation.value,))
            for suggestion, observation in self._observed_suggestions()
            if observation.value is not None and self._on_the_curve(suggestion.point)
        ]
        tried = {suggestion.point for suggestion, _ in self._observed_suggestions()}
        fresh_ones = (point for point in self._all if point not in tried and self._on_the_curve(point))
        every = [*dict.fromkeys(point for point, _ in trials), *fresh_ones]
        fresh = [point not in tried for point in every]
        batch = self._model(
            places(self._space, (point for point, _ in trials)),
            [scores for _, scores in trials],
            places(self._space, every),
            fresh,
            self._size,
        )
        if batch is None:
            self._ended = "the scores determine no curve"
        elif not batch[0]:
            self._ended = "no untried point is left"
        elif batch[1] < WORTH and len(self._rounds) > 1:
            self._ended = f"another batch is expected to raise the top of the curve by less than {100 * WORTH:g} points"
        return [] if batch is None or self._ended else [every[row] for row in batch[0]]

    def _on_the_curve(self, point: Point) -> bool:
        """Returns whether no value of a point stands apart: ε = 0 is A-GEM, another formula."""
        return not any(value in parameter.apart for parameter, value in zip(self._space.parameters, point, strict=True))


def _first(space: Space, points: int, every: Sequence[Point]) -> Sequence[Point]:
    """Returns the first batch: a grid of one parameter, else the beginning of what is spread over the space."""
    if len(space.parameters) > 1:
        return every[:points]
    return grid(space, points) if points > 1 else [every[len(every) // 2]]
