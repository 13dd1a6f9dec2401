"""Narrowing by confidence: a grid, the confidence set of the best value, a finer grid over it, and so on.

The paper's rule follows the best two points wherever noise puts them. Here a curve is fitted to all scores, seed by
seed, and only values that the scores exclude are left out. The fit itself is done by `Budget.confidence`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from search_spaces.interval import Grid, exact
from search_spaces.rounds import Rounds
from search_spaces.rule import TOO_FINE
from search_spaces.space import DIGITS, Parameter, Point
from search_spaces.strategy import Best, Confidence, Observation, Round, Suggestion

NARROWER = Fraction(9, 10)
"""The search continues only while the next interval is at most this part of the present one; otherwise it would spend
a round on almost the same values."""
TICKS = 10
"""Ends of intervals are multiples of δ/TICKS of the previous grid, so that the values of later grids are short decimals
and occur again in other searches, which then share their runs."""

UNDECIDED = "stopped: the scores do not determine where the best value lies"
NOT_NARROWER = "stopped: the scores leave {:.0f} % of the interval open"
USED_UP = "stopped: the repeats are used up; the scores leave {} open"


@dataclass(frozen=True)
class _Closed:
    """The consequence of a finished round."""

    hull: tuple[float, float] | None
    """Ends of the confidence set, on the axis; None where the scores do not determine one."""
    grid: Grid | None
    """The next grid; None when the search stops."""
    note: str
    """Why the search stops; empty otherwise."""


class IntervalConfidence:
    """A `Strategy` that narrows an interval, grid by grid, to the confidence set of the maximum of a fitted curve.

    points      N of every grid, both ends included
    repeats     M, the largest number of grids
    confidence  see `Confidence`; it gets every value tried so far once, with the scores of the round that has more
                seeds, or else of the latest. Failed values and those `apart` are left out; it is not called when none
                remains.

    The search stops, with a note on the round, when there is no confidence set or when it is not clearly smaller than
    the present interval. The next interval is always inside the present one. Raises ValueError for arguments out of
    range.
    """

    def __init__(self, parameter: Parameter, points: int, repeats: int, confidence: Confidence) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be >= 1, got {repeats}")
        self._parameter, self._repeats, self._confidence = parameter, repeats, confidence
        self._grids = [Grid.over(parameter.axis(), points)]
        if not parameter.has_room(self._grids[0]):
            raise ValueError(f"interval must have room for {points} distinct points, got {parameter}")
        self._rounds, self._closed = Rounds(parameter.points(self._grids[0])), list[_Closed]()

    @property
    def done(self) -> bool:
        """Whether the last round is finished."""
        return len(self._closed) == len(self._grids)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The finished rounds and, unless done, the open one."""
        notes = [*(one.note for one in self._closed), ""]
        spans = map(self._parameter.span, self._grids)
        return tuple(self._rounds.show(index, span, note=notes[index]) for index, span in enumerate(spans))

    @property
    def best(self) -> Best | None:
        """The best score among the values in the confidence set; among all before the first round is finished.

        If no tried value lies in the set, the values next to it count. Values `apart` always count, because no curve
        can exclude them. Of equal scores the smaller value is the best, then the smaller number.
        """
        scored, hull = self._rounds.scored(), next((one.hull for one in reversed(self._closed) if one.hull), None)
        on_curve = [one for one in scored if not self._is_apart(one.point)]
        if hull is not None and on_curve:
            nearest = min(self._outside(one, hull) for one in on_curve)
            scored = [one for one in scored if self._is_apart(one.point) or self._outside(one, hull) <= nearest]
        return min(scored, key=lambda one: (-one.value, one.point, one.number), default=None)

    def ask(self) -> list[Suggestion]:
        """Returns the suggestions of the current round that have no score yet, ascending."""
        return self._rounds.ask()

    def tell(self, observations: Sequence[Observation]) -> None:
        """Takes scores; when those of the round are complete, opens the next round or is done.

        Raises ValueError, and takes nothing, for a number that was never suggested or was told another value.
        """
        if self._rounds.tell(observations):
            closed = self._close()
            self._closed.append(closed)
            if closed.grid is not None:
                self._grids.append(closed.grid)
                self._rounds.begin(self._parameter.points(closed.grid))

    def _close(self) -> _Closed:
        """Returns what follows from all scores so far, in the order in which the reasons to stop are checked."""
        hull = self._hull()
        if hull is None:
            return _Closed(None, None, UNDECIDED)
        present = self._grids[-1]
        following = snap_outward(present, hull)
        # The budget first: after the last round the reader wants to know what is left open, not how narrow it is.
        if len(self._grids) == self._repeats:
            return _Closed(hull, None, USED_UP.format("{:.6g}..{:.6g}".format(*self._parameter.span(following))))
        part = (following.high - following.low) / (present.high - present.low)
        if part > NARROWER:
            return _Closed(hull, None, NOT_NARROWER.format(100 * float(part)))
        if not self._parameter.has_room(following):
            return _Closed(hull, None, TOO_FINE.format("whole numbers" if self._parameter.whole else "floats"))
        return _Closed(hull, following, "")

    def _hull(self) -> tuple[float, float] | None:
        """Returns the ends of the confidence set, on the axis, clipped to the present interval; None without one."""
        known = self._known()
        if not known:
            return None
        seeds = max(map(len, known.values()))
        coordinates = sorted(known)
        scores = [(*known[one], *[None] * (seeds - len(known[one]))) for one in coordinates]
        # All scores, over the whole axis: the fit uses the values outside of the present interval, too.
        whole, present = self._grids[0].interval, self._grids[-1].interval
        found = self._confidence(coordinates, scores, whole.low, whole.high)
        if found is None:
            return None
        low, high = (min(max(end, present.low), present.high) for end in found)
        return low, high

    def _known(self) -> dict[float, tuple[float | None, ...]]:
        """Returns coordinate -> scores by seed, of the round in which a race gave the value the most seeds."""
        found: dict[float, tuple[float | None, ...]] = {}
        for one, seen in self._rounds.told():
            if seen.value is not None and not self._is_apart(one.point):
                at, scores = self._parameter.coordinate(float(one.point[0])), _by_seed(seen)
                found[at] = max(scores, found.get(at, ()), key=_size)
        return found

    def _is_apart(self, point: Point) -> bool:
        return point[0] in self._parameter.apart

    def _outside(self, one: Best, hull: tuple[float, float]) -> float:
        """Returns how far outside the confidence set a point lies, in widths of the axis; 0 inside."""
        at = self._parameter.coordinate(float(one.point[0]))
        # Rounded, because neighbours on both sides of the set are equally far from it but for the last bits.
        return max(round(max(hull[0] - at, at - hull[1]) / self._grids[0].interval.width, DIGITS - 3), 0.0)


def _by_seed(seen: Observation) -> tuple[float | None, ...]:
    """Returns the scores by seed; the value as the score of one seed where only that is known."""
    return seen.scores if any(score is not None for score in seen.scores) else (seen.value,)


def _size(scores: Sequence[float | None]) -> int:
    """Returns the number of seeds that have a score."""
    return sum(score is not None for score in scores)


def snap_outward(grid: Grid, hull: tuple[float, float]) -> Grid:
    """Returns a grid of N points over the hull, widened to multiples of δ/TICKS, inside the present grid.

    >>> snap_outward(Grid(Fraction(0), Fraction(1), 11), (0.123, 0.3)).interval
    Interval(low=0.12, high=0.3)
    """
    tick, last = grid.step / TICKS, (grid.points - 1) * TICKS
    first, final = ((exact(end) - grid.low) / tick for end in hull)
    low, high = max(math.floor(first), 0), min(math.ceil(final), last)
    if low >= high:  # a hull of one value, or one beyond an end: an interval needs a width
        low, high = max(min(low, last) - 1, 0), min(max(high, 0) + 1, last)
    return Grid(grid.low + low * tick, grid.low + high * tick, grid.points)
