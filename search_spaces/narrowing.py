"""Searches that narrow an interval grid by grid.

The paper's search for ε is one of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from search_spaces.interval import Grid
from search_spaces.narrowing_rule import narrow
from search_spaces.rounds import InRounds
from search_spaces.space import Parameter
from search_spaces.strategy import Best, Observation, Round

TOO_FINE = "stopped: the next points would be closer together than {} can represent"


@dataclass(frozen=True)
class RoundEnd:
    """The consequence of a finished round."""

    grid: Grid | None
    """The next grid; None when the search stops."""
    note: str = ""
    """Why the plain rule was not followed, or why the search stops; empty otherwise."""
    winners: tuple[int, int] | None = None
    """Indices of the best two points, ascending; None when fewer than two succeeded, or when they play no part."""


class GridRounds(InRounds, ABC):
    """A `Strategy` that evaluates a grid over the interval of one parameter, then a finer one over a part of it, ….

    points   N of every grid, both ends included
    repeats  M, the largest number of grids. The search may stop earlier, and then its note says why.

    A subclass says which part it is. The suggestion of index i in round r (from 1) has the number (r − 1)·N + i. A
    value that occurs again in a later round is suggested again, as the same float. Raises ValueError for arguments out
    of range.
    """

    def __init__(self, parameter: Parameter, points: int, repeats: int) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be >= 1, got {repeats}")
        self._parameter, self._repeats, self._closed = parameter, repeats, list[RoundEnd]()
        self._grids = [Grid.over(parameter.axis(), points)]
        if not parameter.has_room(self._grids[0]):
            raise ValueError(f"interval must have room for {points} distinct points, got {parameter}")
        super().__init__(parameter.points(self._grids[0]))

    @property
    def done(self) -> bool:
        """True if the last round is finished."""
        return len(self._closed) == len(self._grids)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        # The open round has no consequence yet.
        closed = [*self._closed, RoundEnd(None)]
        return tuple(
            self._show(index, self._parameter.span(grid), closed[index].winners, closed[index].note)
            for index, grid in enumerate(self._grids)
        )

    @property
    def best(self) -> Best | None:
        """The best observation of all rounds; of equal ones the smaller one, as of a round (`narrowing_rule.rank`)."""
        return min(
            self._eligible(), key=lambda candidate: (-candidate.value, candidate.point, candidate.number), default=None
        )

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores; when those of the round are complete, opens the next round or is done.

        Raises ValueError, and takes nothing, for a number that was never suggested or was told another value.
        """
        if self._take(observations):
            closed = self._close()
            self._closed.append(closed)
            if closed.grid is not None:
                self._grids.append(closed.grid)
                self._begin(self._parameter.points(closed.grid))

    @abstractmethod
    def _close(self) -> RoundEnd:
        """Returns what the scores of the round that is now complete lead to."""

    def _eligible(self) -> list[Best]:
        """Returns the observations of which one is the best."""
        return self._scored_suggestions()

    def _next(self, grid: Grid, note: str = "", winners: tuple[int, int] | None = None) -> RoundEnd:
        """Returns the consequence that a grid is next, or that the search stops where the grid is too fine."""
        # A grid whose points coincide would suggest some values twice and others never.
        if self._parameter.has_room(grid):
            return RoundEnd(grid, note, winners)
        return RoundEnd(None, TOO_FINE.format("whole numbers" if self._parameter.whole else "floats"), winners)


class IntervalNarrowing(GridRounds):
    """The search of the ε-SOFT-GEM paper (exploration of ε), for any one parameter: see `narrow`.

    In the paper N is 11 on Permuted MNIST and 7 on Split CIFAR, and M is 5.
    """

    def _close(self) -> RoundEnd:
        winners, span, note = narrow(self._show(len(self._grids) - 1).scores)
        # After the last grid nothing is left to stop, so its note would explain nothing.
        if len(self._grids) == self._repeats:
            return RoundEnd(None, winners=winners)
        if span is None:
            return RoundEnd(None, note, winners)
        return self._next(self._grids[-1].between(*span), note, winners)
