"""The narrowing rule, on indices of a grid.

From the scores of one grid to the part of it that is searched next. ε-SOFT-GEM paper, exploration of ε: the next
interval reaches from the lower to the higher of the two best points and is widened by one step δ at each side that is
not an end; if the two best points are the two ends, the search stops. The paper does not say what to do with ties,
after failures, and when the next interval would be the present one: see `rank` and `narrow`. Every departure from the
plain rule has a note in words.
"""

from collections.abc import Sequence

ENDS_WON = "stopped: the best two points are the two ends of the interval"
NO_SUCCESS = "stopped: every point failed"
NO_SMALLER = "stopped: best ± δ is the whole interval"
SAME_AGAIN = "the best two points would give the same interval again: searching best ± δ"
ONE_SUCCESS = "only one point succeeded: searching best ± δ"


Pair = tuple[int, int] | None
"""Two indices of points of a grid, ascending."""


def narrow(scores: Sequence[float | None]) -> tuple[Pair, Pair, str]:
    """Applies the rule to the scores [N] of one grid (ascending values, higher is better, None = failed).

    winners  the best two points; None when fewer than two succeeded
    span     ends of the next interval, narrower than the grid; None to stop
    note     why the plain rule was not followed, or why the search stops; empty otherwise

    The next interval is always inside the grid and smaller than it. Where the plain rule would give the same interval
    again, the next one is best ± δ. On three points with the best in the middle this is not smaller either, and the
    search stops.

    >>> narrow([0.5, 0.7, 0.8, 0.4, 0.3])
    ((1, 2), (0, 3), '')
    """
    best, second = rank(scores)
    last = len(scores) - 1
    if best is None:
        return None, None, NO_SUCCESS
    if second is None:
        return _around(best, None, last, ONE_SUCCESS)
    winners = (min(best, second), max(best, second))
    if winners == (0, last):
        return winners, None, ENDS_WON
    span = (max(winners[0] - 1, 0), min(winners[1] + 1, last))
    if span == (0, last):
        return _around(best, winners, last, SAME_AGAIN)
    return winners, span, ""


def rank(scores: Sequence[float | None]) -> tuple[int | None, int | None]:
    """Returns the indices of the best and the second-best point; None where there is none. Failed points never win.

    Of equal scores the smaller value is the best. The second best is a neighbour of the best, or else the smaller
    value, because neighbours give the narrower interval.

    >>> rank([0.9, 0.7, 0.9, 0.9])
    (0, 2)
    """
    values = {index: score for index, score in enumerate(scores) if score is not None}
    best = min(values, key=lambda index: (-values[index], index), default=None)
    if best is None:
        return None, None
    others = values.keys() - {best}
    return best, min(others, key=lambda index: (-values[index], abs(index - best) != 1, index), default=None)


def _around(best: int, winners: Pair, last: int, note: str) -> tuple[Pair, Pair, str]:
    """Returns the result of `narrow` for best ± δ as the next interval; stops if this is the whole grid."""
    span = (max(best - 1, 0), min(best + 1, last))
    return (winners, None, NO_SMALLER) if span == (0, last) else (winners, span, note)
