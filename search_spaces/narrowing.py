"""The paper's search for ε: a grid, the interval around its best two points, a finer grid, and so on."""

from collections.abc import Sequence

from search_spaces.interval import Grid
from search_spaces.rounds import Rounds
from search_spaces.rule import TOO_FINE, Step, narrow
from search_spaces.space import Parameter
from search_spaces.strategy import Best, Observation, Round, Suggestion


class IntervalNarrowing:
    """A `Strategy` that narrows an interval grid by grid (ε-SOFT-GEM paper, exploration of ε), for any one parameter.

    points      N of every grid, both ends included; 11 on Permuted MNIST and 7 on Split CIFAR in the paper
    repeats     M, the number of grids; 5 in the paper. The search may stop earlier, and then its note says why.

    The suggestion of index i in round r (from 1) has the number (r − 1)·N + i. A value that occurs again in a later
    round is suggested again, as the same float. Raises ValueError for arguments out of range.
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
        """The best observation of all rounds; of equal scores the smaller value, then the smaller number."""
        return min(self._rounds.scored(), key=lambda one: (-one.value, one.point, one.number), default=None)

    def ask(self) -> list[Suggestion]:
        """Returns the suggestions of the current round that have no score yet, ascending."""
        return self._rounds.ask()

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores; when those of the round are complete, opens the next round or is done.

        Raises ValueError, and takes nothing, for a number that was never suggested or was told another value.
        """
        if self._rounds.tell(observations):
            step = self._close()
            self._steps.append(step)
            if step.span is not None:
                self._grids.append(self._grids[-1].between(*step.span))
                self._rounds.begin(self._parameter.points(self._grids[-1]))

    def _close(self) -> Step:
        """Returns what the scores of the finished round lead to."""
        step = narrow(self._rounds.show(len(self._grids) - 1).scores)
        if len(self._grids) == self._repeats:
            return Step(step.winners, None)
        # A grid whose points coincide would suggest some values twice and others never.
        stop = "" if step.span is None else self._too_fine(self._grids[-1].between(*step.span))
        return Step(step.winners, None, stop) if stop else step

    def _too_fine(self, grid: Grid) -> str:
        """Returns why a grid is not worth evaluating, or ""."""
        if self._parameter.has_room(grid):
            return ""
        return TOO_FINE.format("whole numbers" if self._parameter.whole else "floats")
