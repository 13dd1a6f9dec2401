"""The narrowing rule on indices: from the scores of one grid to the part of it that is searched next.

ε-SOFT-GEM, exploration of ε: the two best points, widened by one step δ where they are not an end, become the
next interval; if they are the two ends, the search stops. The paper leaves open what happens on ties, after
failures and when the next interval would be the present one: `rank` and `narrow` say what is done here, and
every departure from the plain rule is noted in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ENDS_WON = "stopped: the best two points are the two ends of the interval"
NO_SUCCESS = "stopped: every point failed"
NO_SMALLER = "stopped: best ± δ is the whole interval"
SAME_AGAIN = "the best two points would give the same interval again: searching best ± δ"
TOO_FINE = "stopped: the next points would be closer together than {} can represent"
ONE_SUCCESS = "only one point succeeded: searching best ± δ"


@dataclass(frozen=True)
class Step:
    """What one grid of scores leads to.

    winners  indices of the best two points, ascending; None when fewer than two succeeded
    span     indices of the ends of the next interval, narrower than the grid; None = stop
    note     why the plain rule was not followed, or why the search stops; empty otherwise
    """

    winners: tuple[int, int] | None
    span: tuple[int, int] | None
    note: str = ""


def narrow(scores: Sequence[float | None]) -> Step:
    """Apply the rule to the scores of one grid (ascending ε, higher is better, None = failed).

    The next interval never leaves the grid and is always smaller than it. Where the plain rule would give the
    same interval again, the next one is best ± δ; on three points around an inner best this is no smaller
    either, and the search stops.

    >>> narrow([0.5, 0.7, 0.8, 0.4, 0.3])
    Step(winners=(1, 2), span=(0, 3), note='')
    """
    best, second = rank(scores)
    last = len(scores) - 1
    if best is None:
        return Step(None, None, NO_SUCCESS)
    if second is None:
        return _around(best, None, last, ONE_SUCCESS)
    winners = (min(best, second), max(best, second))
    if winners == (0, last):
        return Step(winners, None, ENDS_WON)
    span = (max(winners[0] - 1, 0), min(winners[1] + 1, last))
    if span == (0, last):
        return _around(best, winners, last, SAME_AGAIN)
    return Step(winners, span)


def rank(scores: Sequence[float | None]) -> tuple[int | None, int | None]:
    """Indices of the best and the second-best point; None where there is none. Failed points never win.

    Equal scores: the best is the one of smaller ε; the second is the one next to the best, then of smaller ε.

    >>> rank([0.9, 0.7, 0.9, 0.9])
    (0, 2)
    """
    values = {index: score for index, score in enumerate(scores) if score is not None}
    best = min(values, key=lambda index: (-values[index], index), default=None)
    if best is None:
        return None, None
    others = values.keys() - {best}
    return best, min(others, key=lambda index: (-values[index], abs(index - best) != 1, index), default=None)


def _around(best: int, winners: tuple[int, int] | None, last: int, note: str) -> Step:
    span = (max(best - 1, 0), min(best + 1, last))
    return Step(winners, None, NO_SMALLER) if span == (0, last) else Step(winners, span, note)
