"""Scores that are all equal bit for bit: nothing was measured, so there is nothing to choose, to fit or to test."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from results.labels import count_text

INERT = "inert"


class Inert(NamedTuple):
    """What to say of such scores."""

    text: str
    advice: str


def all_equal(scores: np.ndarray) -> bool:
    """Whether two or more settings have scores [K, R], and no seed tells any of them from another; NaN is no score.

    >>> all_equal(np.array([[0.5, 0.6], [0.5, np.nan]])), all_equal(np.array([[0.5, 0.6], [0.5, 0.7]]))
    (True, False)
    >>> all_equal(np.array([[0.5, 0.6]]))  # there is nothing to be equal to
    False
    """
    scored = scores[~np.isnan(scores).all(axis=1)] if scores.size else scores
    if len(scored) < 2 or not (~np.isnan(scored)).all(axis=0).any():
        return False
    seeds = scored[:, ~np.isnan(scored).all(axis=0)]
    return bool((np.nanmin(seeds, axis=0) == np.nanmax(seeds, axis=0)).all())


def inert(scores: np.ndarray, of: str, subject: str, same_networks: bool = False) -> Inert | None:
    """Words for scores [K, R] that are all equal, None for others.

    of: what they are scores of, as a plural: "values of ε", "settings". subject: what was searched: "ε", "learning rate
    and λ". same_networks: whether the members of each seed have the same final parameters, too.
    """
    if not all_equal(scores):
        return None
    count = int((~np.isnan(scores).all(axis=1)).sum())
    seeds = count_text(int((~np.isnan(scores).all(axis=0)).sum()), "seed")
    text = f"All {count} {of} have the same score bit for bit ({seeds}), so the search says nothing about {subject}"
    if same_networks:
        text += ": the trained networks are the same, too"
        advice = f"Search {subject} where it has an effect (on more or longer tasks), or search another hyperparameter."
    else:
        advice = f"Search a wider range of {subject}, or use more tasks or test examples, which show finer differences."
    return Inert(f"{text}.", advice)
