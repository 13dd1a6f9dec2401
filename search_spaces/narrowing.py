"""The search for ε of the paper: a grid, the interval around its best points, a finer grid, and so on."""

from collections.abc import Sequence

from search_spaces.interval import Grid
from search_spaces.rounds import Rounds
from search_spaces.rule import TOO_FINE, Step, narrow
from search_spaces.space import Parameter
from search_spaces.strategy import Best, Observation, Round, Suggestion


class IntervalNarrowing:
    """Narrow an interval grid by grid (ε-SOFT-GEM, exploration of ε), along the axis of any one parameter.

    points      N of every grid, both ends included; 11 on Permuted MNIST and 7 on Split CIFAR in the paper
    repeats     M, the number of grids; 5 in the paper. The search may stop sooner, and then says why.

    The suggestion of index i in round r (from 1) has the number (r − 1)·N + i. A value that recurs in a later
    round is suggested again, as the same float. A Strategy; raises ValueError on settings out of range.
    """

    def __init__(self, parameter: Parameter, points: int, repeats: int) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be >= 1, got {repeats}")
        self._parameter, self._repeats = parameter, repeats
        self._grids = [Grid.over(parameter.axis(), points)]
        if not parameter.has_room(self._grids[0]):
            raise ValueError(f"interval must have room for {points} distinct points, got {parameter}")
        self._rounds, self._steps = Rounds(parameter.points(self._grids[0])), list[Step]()

    @property
    def done(self) -> bool:
        """Whether the last round is finished."""
        return len(self._steps) == len(self._grids)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        return tuple(
            self._rounds.show(index, self._parameter.span(grid), step.winners, step.note)
            for index, (grid, step) in enumerate(zip(self._grids, [*self._steps, Step(None, None)], strict=False))
        )

    @property
    def best(self) -> Best | None:
        """The best observation of all rounds; equal scores: the smaller value, then the smaller number."""
        return min(self._rounds.scored(), key=lambda one: (-one.value, one.point, one.number), default=None)

    def ask(self) -> list[Suggestion]:
        """The suggestions of the current round that are not told yet, ascending."""
        return self._rounds.ask()

    def tell(self, observations: Sequence[Observation]) -> None:
        """Take in scores; when those of the round are complete, open the next one or be done.

        Raises ValueError, and takes nothing in, when a number was never suggested or was told another value.
        """
        if self._rounds.tell(observations):
            step = self._close()
            self._steps.append(step)
            if step.span is not None:
                self._grids.append(self._grids[-1].between(*step.span))
                self._rounds.begin(self._parameter.points(self._grids[-1]))

    def _close(self) -> Step:
        step = narrow(self._rounds.show(len(self._grids) - 1).scores)
        if len(self._grids) == self._repeats:
            return Step(step.winners, None)
        stop = "" if step.span is None else self._too_fine(self._grids[-1].between(*step.span))
        return Step(step.winners, None, stop) if stop else step

    def _too_fine(self, grid: Grid) -> str:
        if self._parameter.has_room(grid):
            return ""
        return TOO_FINE.format("whole numbers" if self._parameter.whole else "floats")
