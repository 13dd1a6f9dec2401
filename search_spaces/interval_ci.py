"""Narrowing by confidence sets.

A grid, the confidence set of the best value, a finer grid over it, and so on. The paper's rule follows the best two
points wherever noise puts them. Here a curve is fitted to all scores, seed by seed, and only values that the scores
exclude are left out. The fit itself is done by `Budget.confidence`.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from search_spaces.interval import Grid, exact
from search_spaces.narrowing import GridRounds, RoundEnd
from search_spaces.space import DIGITS, Parameter, Point
from search_spaces.strategy import Best, Confidence, Observation

NARROWER = Fraction(9, 10)
"""The search continues only while the next interval is at most this part of the present one; otherwise it would spend
a round on almost the same values."""
TICKS = 10
"""Ends of intervals are multiples of δ/TICKS of the previous grid, so that the values of later grids are short decimals
and occur again in other searches, which then share their runs."""

UNDECIDED = "stopped: the scores do not determine where the best value lies"
NOT_NARROWER = "stopped: the scores leave {:.0f} % of the interval open"
USED_UP = "stopped: the repeats are used up; the scores leave {} open"


class IntervalConfidence(GridRounds):
    """A search that narrows an interval, grid by grid, to the confidence set of the maximum of a fitted curve.

    confidence  see `Confidence`; it gets every value tried so far once, with the scores of the round that has more
                seeds, or else of the latest. Failed values and those `apart` are left out; it is not called when none
                remains.

    The search stops, with a note on the round, when there is no confidence set or when it is not clearly smaller than
    the present interval. The next interval is always inside the present one.

    The best is the best score among the values in the confidence set; among all before the first round is finished. If
    no tried value lies in the set, the values next to it count. Values `apart` always count, because no curve can
    exclude them. Of equal scores the smaller value is the best, then the smaller number.
    """

    def __init__(self, parameter: Parameter, points: int, repeats: int, confidence: Confidence) -> None:
        super().__init__(parameter, points, repeats)
        self._confidence = confidence
        self._hull: tuple[float, float] | None = None  # ends on the axis, of the last round that determined them

    def _eligible(self) -> list[Best]:
        scored = self._scored_suggestions()
        on_curve = [candidate for candidate in scored if not self._is_apart(candidate.point)]
        if self._hull is None or not on_curve:
            return scored
        nearest = min(self._outside(candidate, self._hull) for candidate in on_curve)
        return [
            candidate
            for candidate in scored
            if self._is_apart(candidate.point) or self._outside(candidate, self._hull) <= nearest
        ]

    def _close(self) -> RoundEnd:
        """Returns what follows from all scores so far, in the order in which the reasons to stop are checked."""
        hull = self._confidence_set()
        if hull is None:
            return RoundEnd(None, UNDECIDED)
        self._hull, present = hull, self._grids[-1]
        following = snap_outward(present, hull)
        # The budget first: after the last round the reader wants to know what is left open, not how narrow it is.
        if len(self._grids) == self._repeats:
            return RoundEnd(None, USED_UP.format("{:.6g}..{:.6g}".format(*self._parameter.span(following))))
        part = (following.high - following.low) / (present.high - present.low)
        return RoundEnd(None, NOT_NARROWER.format(100 * float(part))) if part > NARROWER else self._next(following)

    def _confidence_set(self) -> tuple[float, float] | None:
        """Returns the ends of the confidence set on the axis, within the present interval; None if there is none."""
        known = self._scores_by_coordinate()
        if not known:
            return None
        seeds, coordinates = max(map(len, known.values())), sorted(known)
        scores = [(*known[coordinate], *[None] * (seeds - len(known[coordinate]))) for coordinate in coordinates]
        # All scores, over the whole axis: the fit uses the values outside of the present interval, too.
        whole, present = self._grids[0].interval, self._grids[-1].interval
        ends = self._confidence(coordinates, scores, whole.low, whole.high)
        if ends is None:
            return None
        low, high = (min(max(end, present.low), present.high) for end in ends)
        return low, high

    def _scores_by_coordinate(self) -> dict[float, tuple[float | None, ...]]:
        """Returns coordinate -> scores by seed, of the round in which a race gave the value the most seeds."""
        scores: dict[float, tuple[float | None, ...]] = {}
        for suggestion, observation in self._observed_suggestions():
            if observation.value is not None and not self._is_apart(suggestion.point):
                at = self._parameter.coordinate(float(suggestion.point[0]))
                # The later round first: `max` returns the first of equals.
                scores[at] = max(_by_seed(observation), scores.get(at, ()), key=_size)
        return scores

    def _is_apart(self, point: Point) -> bool:
        return point[0] in self._parameter.apart

    def _outside(self, candidate: Best, hull: tuple[float, float]) -> float:
        """Returns how far outside the confidence set a point lies, in widths of the axis; 0 inside."""
        at = self._parameter.coordinate(float(candidate.point[0]))
        # Rounded, because neighbours on both sides of the set are equally far from it but for the last bits.
        return max(round(max(hull[0] - at, at - hull[1]) / self._grids[0].interval.width, DIGITS - 3), 0.0)


def _by_seed(observation: Observation) -> tuple[float | None, ...]:
    """Returns the scores by seed; the value as the score of one seed where only that is known."""
    return observation.scores if any(score is not None for score in observation.scores) else (observation.value,)


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
