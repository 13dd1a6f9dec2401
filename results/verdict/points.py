"""How far the best of settings that lie on no curve can be trusted, in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from results.inert import INERT, inert
from results.labels import count_text
from results.statistics.confidence_set import LEVEL
from results.statistics.racing import adjusted_means
from results.statistics.rivals import Rivals, rivals
from results.verdict.curve import diverging, seeds_advice, stable


class SettingsVerdict(NamedTuple):
    """A `Verdict` on settings that lie on no curve."""

    kind: str
    best: int | None
    """Index of the leader; None without a score."""
    rivals: tuple[int, ...]
    """Indices of the settings that cannot be told from it."""
    text: str
    advice: str


def verdict_of_settings(
    scores: np.ndarray,
    lost: np.ndarray | None = None,
    *,
    at_bound: np.ndarray | None = None,
    label: str = "point",
    members: int | None = None,
) -> SettingsVerdict:
    """How far the leader of settings [K, R] that lie on no curve can be trusted, by the tests of `rivals.rivals`.

    flat: none is separated from the leader. edge: some are, but the leader or a rival lies at a bound of its
    parameters (at_bound, bool [K]) that might be moved. lost, members as in `curve.verdict`.
    """
    found = rivals(scores, LEVEL)
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
    if others > 0:
        return ""
    return (
        f"Only one {label} has a score: there is nothing to compare it with."
        if others == 0
        else f"No {label} has a score."
    )


def _told(found: Rivals, others: int, label: str) -> str:
    """How many of the others are left."""
    if not found.rivals:
        than = "the other" if others == 1 else f"all {others} others"
        return f"The best {label} is significantly better than {than}"
    count = len(found.rivals)
    if others == 1:
        return f"The two {label}s cannot be told apart"
    which = f"{count} of the {others}" if count < others else f"None of the {others}"
    return f"{which} other {label}s {'cannot' if count < others else 'can'} be told apart from the best"
