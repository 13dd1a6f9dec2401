"""The search for ε of the paper: a grid, the interval around its best points, a finer grid, and so on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from search_spaces.interval import Grid, Interval, exact
from search_spaces.rule import Step, narrow
from search_spaces.strategy import Best, Observation, Suggestion, take_in


@dataclass(frozen=True)
class Round:
    """One grid of the search.

    number    from 1
    epsilons  ascending, both ends of the interval included
    scores    one per ε; None where it failed or is still open
    winners   indices of the best two points, ascending; None while open, or when fewer than two succeeded
    note      where the search departed from the plain rule or stopped early, and why; empty otherwise
    """

    number: int
    interval: Interval
    epsilons: tuple[float, ...]
    scores: tuple[float | None, ...]
    winners: tuple[int, int] | None = None
    note: str = ""


class IntervalNarrowing:
    """Narrow an interval of ε grid by grid (ε-SOFT-GEM, exploration of ε).

    points      N of every grid, both ends included; 11 on Permuted MNIST and 7 on Split CIFAR in the paper
    repeats     M, the number of grids; 5 in the paper. The search may stop sooner, and then says why.
    tolerance   smallest δ (distance of neighbouring ε) worth another grid; 0 = no limit

    The suggestion of index i in round r (from 1) has the number (r − 1)·N + i. An ε that recurs in a later
    round is suggested again, as the same float. A Strategy; raises ValueError on settings out of range.
    """

    def __init__(self, interval: Interval, points: int, repeats: int, tolerance: float = 0.0) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be >= 1, got {repeats}")
        if not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance must be >= 0 and finite, got {tolerance}")
        interval.grid(points)
        self._repeats, self._tolerance = repeats, tolerance
        self._grids = [Grid.over(interval, points)]
        self._closed: list[Round] = []
        self._told: dict[int, float | None] = {}

    @property
    def done(self) -> bool:
        """Whether the last round is finished."""
        return len(self._closed) == len(self._grids)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        return tuple(self._closed) if self.done else (*self._closed, self._round(Step(None, None)))

    @property
    def best(self) -> Best | None:
        """The best observation of all rounds; equal values: the smaller ε, then the smaller number."""
        scored = [
            Best(epsilon, score, first + index)
            for first, one in zip(self._starts(), self.rounds, strict=True)
            for index, (epsilon, score) in enumerate(zip(one.epsilons, one.scores, strict=True))
            if score is not None
        ]
        return min(scored, key=lambda one: (-one.value, one.epsilon, one.number), default=None)

    def ask(self) -> list[Suggestion]:
        """The suggestions of the current round that are not told yet, ascending."""
        if self.done:
            return []
        numbered = enumerate(self._grids[-1].epsilons, start=self._starts()[-1])
        return [Suggestion(number, epsilon) for number, epsilon in numbered if number not in self._told]

    def tell(self, observations: Sequence[Observation]) -> None:
        """Take in scores; when those of the round are complete, open the next one or be done.

        Raises ValueError, and takes nothing in, when a number was never suggested or was told another value.
        """
        self._told = take_in(self._told, observations, range(len(self._grids) * self._grids[0].points))
        if not self.done and not self.ask():
            self._close()

    def _starts(self) -> range:
        points = self._grids[0].points
        return range(0, len(self._grids) * points, points)

    def _round(self, step: Step) -> Round:
        grid, first = self._grids[-1], self._starts()[-1]
        scores = tuple(self._told.get(first + index) for index in range(grid.points))
        return Round(len(self._grids), grid.interval, grid.epsilons, scores, step.winners, step.note)

    def _close(self) -> None:
        step, grid = narrow(self._round(Step(None, None)).scores), None
        if len(self._grids) == self._repeats:
            step = Step(step.winners, None)
        elif step.span is not None:
            grid = self._grids[-1].between(*step.span)
            if stop := self._too_fine(grid):
                step, grid = Step(step.winners, None, stop), None
        self._closed.append(self._round(step))
        if grid is not None:
            self._grids.append(grid)

    def _too_fine(self, grid: Grid) -> str:
        if grid.step < exact(self._tolerance):
            return f"stopped: the next δ, {float(grid.step):g}, is below the tolerance {self._tolerance:g}"
        return "" if grid.distinct else "stopped: the next points are closer than floats can tell apart"
