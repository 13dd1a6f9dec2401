"""The plain grid: all points of an even grid over the whole space, whatever the scores."""

import itertools
import math
from collections.abc import Sequence

from search_spaces.interval import Grid
from search_spaces.rounds import InRounds, Rounds
from search_spaces.space import Parameter, Point, Space, Value
from search_spaces.strategy import Observation


class GridSearch(InRounds):
    """Every point of `grid(space, points × repeats)`, in rounds of N = `points`. A Strategy.

    The scores change nothing, so all rounds could run at once; rounds only keep the memory of a cohort bounded.
    """

    def __init__(self, space: Space, points: int, repeats: int) -> None:
        if points < 1 or repeats < 1:
            raise ValueError(f"points and repeats must be >= 1, got {points} and {repeats}")
        every = grid(space, points * repeats)
        self._batches = [every[start : start + points] for start in range(0, len(every), points)]
        self._rounds = Rounds(self._batches[0])

    @property
    def done(self) -> bool:
        """Whether every point was told."""
        return self._rounds.complete and len(self._rounds) == len(self._batches)

    def tell(self, observations: Sequence[Observation]) -> None:
        """Take in scores. Raises ValueError as `Strategy.tell` does."""
        if self._rounds.tell(observations) and not self.done:
            self._rounds.begin(self._batches[len(self._rounds)])


def grid(space: Space, budget: int) -> tuple[Point, ...]:
    """The points of the finest even grid with no more than `budget` points; the last parameter varies fastest.

    Parameters with choices take all of them. The others share what is left: the same number n >= 2 of evenly spaced
    values each, both ends included, on a logarithmic axis where they have one. Whole numbers are taken once each.
    Raises ValueError when the budget has no room for that.

    >>> grid(Space((Parameter("epsilon", 0, 1), Parameter("memory", choices=(10, 25)))), 7)
    ((0.0, 10), (0.0, 25), (0.5, 10), (0.5, 25), (1.0, 10), (1.0, 25))
    """
    combinations = math.prod(len(one.choices) for one in space.parameters if one.choices)
    lines = sum(not one.choices for one in space.parameters)
    if combinations * 2**lines > budget:
        needed = (
            f"{combinations * 2**lines} points ({combinations} combinations of choices, 2 values of {lines} others)"
        )
        raise ValueError(f"strategy grid must have room for {needed}, got points × repeats = {budget}")
    return tuple(itertools.product(*_finest(space, budget, budget // combinations if lines == 1 else 2)))


def _finest(space: Space, budget: int, least: int) -> list[tuple[Value, ...]]:
    axes = [_values(one, least) for one in space.parameters]
    for count in range(least + 1, budget + 1):
        if all(one.choices or len(axis) == _room(one) for one, axis in zip(space.parameters, axes, strict=True)):
            break  # every whole number is taken
        finer = [_values(one, count) for one in space.parameters]
        if math.prod(map(len, finer)) > budget:
            break
        axes = finer
    return axes


def _room(parameter: Parameter) -> float:
    """How many different values an interval has."""
    low, high = parameter.low, parameter.high
    return high - low + 1 if parameter.whole and low is not None and high is not None else math.inf


def _values(parameter: Parameter, count: int) -> tuple[Value, ...]:
    if parameter.choices:
        return parameter.choices
    coordinates = Grid.over(parameter.axis(), count).coordinates
    return tuple(dict.fromkeys(map(parameter.value, coordinates)))
