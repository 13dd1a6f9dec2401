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
    label: str = "setting",
    members: int | None = None,
) -> SettingsVerdict:
    """How far the leader of settings [K, R] that lie on no curve can be trusted, by the tests of `rivals.rivals`.

    flat: none is separated from the leader. edge: some are, but the leader or a rival lies at a bound of its
    parameters (at_bound, bool [K]) that might be moved. lost, members as in `verdict`.
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
        advice = seeds_advice(max(found.seeds_needed, seeds + 1), "Take the cheapest or the usual one.")
        return SettingsVerdict("flat", found.best, found.rivals, text, advice)
    bounds = np.zeros(len(scores), dtype=bool) if at_bound is None else at_bound
    if any(bounds[k] for k in (found.best, *found.rivals) if k is not None):
        advice = "The best lies at a bound or may do so: widen the ranges."
        return SettingsVerdict("edge", found.best, found.rivals, text, advice)
    advice = f"Take the best {label}{', or the cheapest of its equals' if found.rivals else ''}."
    return SettingsVerdict("resolved", found.best, found.rivals, text, advice)


def _nothing_to_compare(others: int, label: str) -> str:
    if others > 0:
        return ""
    return f"Only one {label} has a score: there is nothing to compare it with." if others == 0 else "Nothing scored."


def _told(found: Rivals, others: int, label: str) -> str:
    """How many of the others are left."""
    if not found.rivals:
        return f"The best {label} is told from {'the' if others == 1 else f'all {others}'} other{'s' * (others > 1)}"
    count = len(found.rivals)
    if others == 1:
        return f"The two {label}s cannot be told apart"
    return f"{count if count < others else f'All {others}'} other {label}{'s' * (count > 1)} " + (
        f"of {others} cannot be told from the best" if count < others else "cannot be told from the best"
    )
