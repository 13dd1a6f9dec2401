"""The verdict on points that lie on no curve, in words."""

import math
from collections.abc import Sequence

import numpy as np

from results.inert import INERT, inert
from results.labels import count_text
from results.statistics.paired import CONFIDENCE
from results.statistics.racing import adjusted_means
from results.statistics.slope_tests import Rivals, rivals
from results.verdict.curve import Verdict, diverging, more_seeds, seeds_advice, stable


def verdict_of_points(
    scores: np.ndarray,
    lost: np.ndarray | None = None,
    *,
    bounds: Sequence[str] = (),
    label: str = "point",
    members: int | None = None,
) -> Verdict:
    """Returns the verdict on scores [K, R] of points that lie on no curve, by the tests of `rivals.rivals`.

    bounds         of each point the value at a bound that could be moved, like "λ = 100", or ""; () where none is
    label          what a row is: "point", or "value" in a search of one parameter
    lost, members  as in `verdict`

    The kind is open if no point is separated from the best one, edge if some are but the best or a rival is at a bound,
    else resolved.
    """
    comparison = rivals(scores, CONFIDENCE)
    kind, text, advice = _judge(scores, lost, comparison, bounds, label, members)
    return Verdict(kind, math.nan, math.nan, text, advice, comparison.best, comparison.rivals)


def _judge(
    scores: np.ndarray,
    lost: np.ndarray | None,
    comparison: Rivals,
    bounds: Sequence[str],
    label: str,
    members: int | None,
) -> tuple[str, str, str]:
    """Returns kind, text and advice of `Verdict`."""
    if nothing := inert(scores, f"{label}s", f"the {label}s"):
        return INERT, *nothing
    if reason := diverging(scores, lost, 1, label, members):
        return "diverging", reason, stable(label)
    seeds, others = int((~np.isnan(scores)).any(axis=0).sum()), int((~np.isnan(adjusted_means(scores))).sum()) - 1
    if others < 1:
        only = f"Only one {label} has a score: there is nothing to compare it with."
        return "open", f"No {label} has a score." if others < 0 else only, f"Try more than one {label}."
    if seeds < 2:
        text = f"1 seed gave scores, so there is no estimate of the noise: the best {label} is unknown."
        return "open", text, more_seeds(label)
    text = f"{_comparison(comparison, others, label)} ({count_text(seeds, 'seed')})."
    if len(comparison.rivals) == others:
        # The scores at hand have not decided, so it takes one seed more at least.
        needed = max(comparison.seeds_needed, seeds + 1)
        return "open", text, seeds_advice(needed, f"Take the best tried {label}.")
    # A rival, too: it may be the true best, and then something beyond its bound may be better still.
    near = [bounds[k] for k in (comparison.best, *comparison.rivals) if k is not None and bounds and bounds[k]]
    if near:
        return "edge", text, f"The best {label} is, or may be, at a bound ({near[0]}): widen that range."
    return "resolved", text, f"Take the best {label}."


def _comparison(comparison: Rivals, others: int, label: str) -> str:
    """Returns how many of the others cannot be told apart from the best, in words."""
    if not comparison.rivals:
        than = "the other" if others == 1 else f"all {others} others"
        return f"The best {label} is significantly better than {than}"
    count = len(comparison.rivals)
    if others == 1:
        return f"The two {label}s cannot be told apart"
    which = f"{count} of the {others}" if count < others else f"None of the {others}"
    return f"{which} other {label}s {'cannot' if count < others else 'can'} be told apart from the best"
