"""Grid search: an even grid over the whole space.

The scores change nothing.
"""

import itertools
import math
from collections.abc import Sequence

from search_spaces.interval import Grid
from search_spaces.rounds import InRounds
from search_spaces.space import Parameter, Point, Space, Value
from search_spaces.strategy import Observation


class GridSearch(InRounds):
    """A `Strategy` that suggests every point of `grid(space, points × repeats)`, in rounds of N = `points`.

    The scores change nothing, so all points could be open at once; rounds bound the memory that a cohort takes. Raises
    ValueError for points or repeats below 1, and as `grid` does.
    """

    def __init__(self, space: Space, points: int, repeats: int) -> None:
        if points < 1 or repeats < 1:
            raise ValueError(f"points and repeats must be >= 1, got {points} and {repeats}")
        every = grid(space, points * repeats)
        self._batches = [every[start : start + points] for start in range(0, len(every), points)]
        super().__init__(self._batches[0])

    @property
    def done(self) -> bool:
        """True if the score of every point was told."""
        return self._complete and len(self._rounds) == len(self._batches)

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores. Raises ValueError as `Strategy.tell` does."""
        if self._take(observations) and not self.done:
            self._begin(self._batches[len(self._rounds)])


def grid(space: Space, budget: int) -> tuple[Point, ...]:
    """Returns the finest even grid with no more than `budget` points; the last parameter varies fastest.

    Parameters with choices take all of them. Each interval takes the same number n >= 2 of values, evenly spaced on its
    axis, both ends included; an interval of whole numbers takes each at most once. Raises ValueError when the budget
    does not allow that.

    >>> grid(Space((Parameter("epsilon", 0, 1), Parameter("memory", choices=(10, 25)))), 7)
    ((0.0, 10), (0.0, 25), (0.5, 10), (0.5, 25), (1.0, 10), (1.0, 25))
    """
    combinations = math.prod(len(parameter.choices) for parameter in space.parameters if parameter.choices)
    lines = sum(not parameter.choices for parameter in space.parameters)
    # Every interval needs at least its two ends: fewer would not be a grid over it.
    if combinations * 2**lines > budget:
        raise ValueError(
            f"strategy grid must have room for {combinations * 2**lines} points ({combinations} combinations of "
            f"choices, 2 values of {lines} others), got points × repeats = {budget}"
        )
    # With a single interval the largest n is a division; with several it is searched from 2 on.
    return tuple(itertools.product(*_finest(space, budget, budget // combinations if lines == 1 else 2)))


def _finest(space: Space, budget: int, least: int) -> list[tuple[Value, ...]]:
    """Returns the values of each parameter for the largest n from `least` on that the budget allows."""
    axes = [_values(parameter, least) for parameter in space.parameters]
    for count in range(least + 1, budget + 1):
        if all(
            parameter.choices or (parameter.whole and len(axis) > int(axis[-1]) - int(axis[0]))
            for parameter, axis in zip(space.parameters, axes, strict=True)
        ):
            break  # every whole number is taken, so a larger n adds nothing
        finer = [_values(parameter, count) for parameter in space.parameters]
        if math.prod(map(len, finer)) > budget:
            break
        axes = finer
    return axes


def _values(parameter: Parameter, count: int) -> tuple[Value, ...]:
    """Returns all choices, or the values of a grid of `count` points without repetitions."""
    if parameter.choices:
        return parameter.choices
    coordinates = Grid.over(parameter.axis(), count).coordinates
    return tuple(dict.fromkeys(map(parameter.value, coordinates)))
