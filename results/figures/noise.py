"""Rounds of a search whose values differ by noise alone, which get no panels."""

import math

import numpy as np

from results.labels import count_text
from results.search import SearchResults, SearchRound
from results.search_tables import by_seed
from results.statistics.anova import no_difference
from results.statistics.paired import ALPHA

RULE = "no significant difference between values (F test, seeds as blocks, p ≥ 0.05)"
"""Why a round has no panel, in the words of a caption."""


def indistinct_rounds(results: SearchResults) -> tuple[int, ...]:
    """Returns the numbers of later rounds with an interval whose values do not differ significantly.

    The test is the F test of a two-way analysis of variance of what was maximised, with the seeds as blocks; a round
    counts if p >= 0.05. The first round with an interval never counts, nor does a round that allows no test, as one of
    a single seed. ε = 0 of ε-SOFT-GEM is left out of the test: it is A-GEM, another method.
    """
    later = [search_round for search_round in results.rounds if search_round.span is not None][1:]
    return tuple(
        search_round.number for search_round in later if no_difference(_scores(results, search_round)) >= ALPHA
    )


def left_out_text(numbers: tuple[int, ...]) -> str:
    """Returns the sentence that says how many rounds have no panel and why; "" for none.

    >>> left_out_text(())
    ''
    """
    return f"Left out: {count_text(len(numbers), 'repeat')} with {RULE}." if numbers else ""


def _scores(results: SearchResults, search_round: SearchRound) -> np.ndarray:
    """Returns what was maximised as [K, R], NaN where a member is missing or diverged."""
    points = [point for point in search_round.points if not (results.zero_is_agem and point == (0.0,))]
    rows = [by_seed(results.members_of(point), results.objective) for point in points]
    seeds = sorted({seed for row in rows for seed in row})
    # Reshaped, because without points or seeds NumPy makes an array of one dimension.
    return np.array([[row.get(seed, math.nan) for seed in seeds] for row in rows]).reshape(len(rows), len(seeds))
