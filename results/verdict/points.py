"""The verdict on points that lie on no curve, in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from results.inert import INERT, inert
from results.labels import count_text
from results.statistics.paired import CONFIDENCE
from results.statistics.racing import adjusted_means
from results.statistics.rivals import Rivals, rivals
from results.verdict.curve import diverging, seeds_advice, stable


class SettingsVerdict(NamedTuple):
    """A verdict on points that lie on no curve."""

    kind: str
    """As in `Verdict`."""
    best: int | None
    """Index of the best point; None without a score."""
    rivals: tuple[int, ...]
    """Indices of the points that cannot be told apart from it."""
    text: str
    """What was found, in a sentence."""
    advice: str
    """What to do, in a sentence."""


def verdict_of_settings(
    scores: np.ndarray,
    lost: np.ndarray | None = None,
    *,
    at_bound: np.ndarray | None = None,
    label: str = "point",
    members: int | None = None,
) -> SettingsVerdict:
    """Returns the verdict on scores [K, R] of points that lie on no curve, by the tests of `rivals.rivals`.

    at_bound       bool [K]: points at a bound of a parameter that could be moved
    label          what a row is: "point", or "value" in a search of one parameter
    lost, members  as in `verdict`

    The kind is flat if no point is separated from the best one, edge if some are but the best or a rival is at a bound,
    else resolved.
    """
    found = rivals(scores, CONFIDENCE)
    if nothing := inert(scores, f"{label}s", f"the {label}s"):
        return SettingsVerdict(INERT, found.best, found.rivals, *nothing)
    if reason := diverging(scores, lost, 1, label, members):
        return SettingsVerdict("diverging", found.best, found.rivals, reason, stable(label))
    seeds, others = int((~np.isnan(scores)).any(axis=0).sum()), int((~np.isnan(adjusted_means(scores))).sum()) - 1
    if reason := _nothing_to_compare(others, label):
        return SettingsVerdict("flat", found.best, found.rivals, reason, f"Try more than one {label}.")
    if seeds < 2:
        text = f"1 seed gave scores, so there is no estimate of the noise: the best {label} is unknown."
        return SettingsVerdict("flat", found.best, found.rivals, text, f"Train at least 3 seeds of every {label}.")
    text = f"{_told(found, others, label)} ({count_text(seeds, 'seed')})."
    if len(found.rivals) == others:
        advice = seeds_advice(max(found.seeds_needed, seeds + 1), f"Take the cheapest {label} or the usual one.")
        return SettingsVerdict("flat", found.best, found.rivals, text, advice)
    bounds = np.zeros(len(scores), dtype=bool) if at_bound is None else at_bound
    if any(bounds[k] for k in (found.best, *found.rivals) if k is not None):
        advice = f"The best {label} is, or may be, at a bound: widen the ranges."
        return SettingsVerdict("edge", found.best, found.rivals, text, advice)
    equals = f", or the cheapest of the {label}s that cannot be told apart from it" if found.rivals else ""
    advice = f"Take the best {label}{equals}."
    return SettingsVerdict("resolved", found.best, found.rivals, text, advice)


def _nothing_to_compare(others: int, label: str) -> str:
    """Returns why there is nothing to compare, or ""."""
    if others > 0:
        return ""
    return (
        f"Only one {label} has a score: there is nothing to compare it with."
        if others == 0
        else f"No {label} has a score."
    )


def _told(found: Rivals, others: int, label: str) -> str:
    """Returns how many of the others cannot be told apart from the best, in words."""
    if not found.rivals:
        than = "the other" if others == 1 else f"all {others} others"
        return f"The best {label} is significantly better than {than}"
    count = len(found.rivals)
    if others == 1:
        return f"The two {label}s cannot be told apart"
    which = f"{count} of the {others}" if count < others else f"None of the {others}"
    return f"{which} other {label}s {'cannot' if count < others else 'can'} be told apart from the best"
