"""Inert searches, whose scores are all equal bit for bit.

Nothing was measured, so nothing is fitted or tested.
"""

import numpy as np

from results.labels import count_text

INERT = "inert"


def all_equal(scores: np.ndarray) -> bool:
    """Returns whether two or more points have scores in [K, R], and their scores are equal for every seed; NaN is none.

    >>> all_equal(np.array([[0.5, 0.6], [0.5, np.nan]])), all_equal(np.array([[0.5, 0.6], [0.5, 0.7]]))
    (True, False)
    >>> all_equal(np.array([[0.5, 0.6]]))  # there is nothing to be equal to
    False
    """
    scored = scores[~np.isnan(scores).all(axis=1)] if scores.size else scores
    # At least one seed that every point has: in a race, a seed of one point alone is equal to itself.
    if len(scored) < 2 or not (~np.isnan(scored)).all(axis=0).any():
        return False
    seeds = scored[:, ~np.isnan(scored).all(axis=0)]
    return bool((np.nanmin(seeds, axis=0) == np.nanmax(seeds, axis=0)).all())


def inert(
    scores: np.ndarray, of: str, subject: str, same_networks: bool = False, widest: bool = False
) -> tuple[str, str] | None:
    """Returns (finding, advice) in a sentence each for scores [K, R] that are all equal, None for other scores.

    of             the plural of the points: "values of ε", "points of ε and learning rate"
    subject        the searched hyperparameters: "ε", "learning rate and λ"
    same_networks  whether the members of each seed also have the same final parameters
    widest         whether no wider range could be searched
    """
    if not all_equal(scores):
        return None
    points, seeds = (int((~np.isnan(scores).all(axis=axis)).sum()) for axis in (1, 0))
    same = f"All {points} {of} have the same score bit for bit ({count_text(seeds, 'seed')})"
    text = f"{same}, so the search says nothing about {subject}"
    # The same networks mean that the hyperparameter had no effect at all; else the tests were too coarse to show one.
    if same_networks:
        advice = f"Search {subject} where it has an effect (on more or longer tasks), or search another hyperparameter."
        return f"{text}: the trained networks are the same, too.", advice
    finer = "more tasks or test examples, which show finer differences."
    advice = f"Use {finer}" if widest else f"Search a wider range of {subject}, or use {finer}"
    return f"{text}.", advice
