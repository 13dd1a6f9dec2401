"""The usual length of a search that may end early: that of searches of curves that are known."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.strategy_driver.driver import confidence
from search_spaces.curves.candidates import places
from search_spaces.space import Point, Space
from search_spaces.strategies import strategy
from search_spaces.strategy import Budget, Observation

NOISE = 0.0058
"""Standard deviation of A_T once value and seed are taken out: on Permuted MNIST, 2,000 images a task, 3 tasks."""

ROUNDS_OF_KG = 3
"""Batches after which `kg` stops on these curves, which would take seconds to compute."""

CURVES: tuple[Callable[[NDArray[np.float64]], float], ...] = (
    lambda x: float(-0.09 * ((x - 0.6) ** 2).sum()),
    lambda x: float(0.06 * x.sum()),
    lambda x: float(-0.025 * (np.log((x + 0.02) / 0.09) ** 2).sum()),
)
"""A_T less a constant, by the place in [0, 1]^d: highest inside, at an end, near the other one (docs/strategies.md)."""


@lru_cache(maxsize=64)
def usual_points(name: str, space: Space, points: int, repeats: int, seeds: int) -> int | None:
    """Returns the usual number of different points of a search: the median over `CURVES`.

    name: of the strategy; points, repeats, seeds: as in its budget. None for a strategy that never ends early, for one
    whose model takes seconds, and for choices, which have no curve.
    """
    kind = strategy(name)
    if name == "kg":
        return points * min(repeats, ROUNDS_OF_KG)
    if not kind.may_repeat or kind.fits_with_torch or any(parameter.choices for parameter in space.parameters):
        return None
    budget = Budget(points, repeats, 0, confidence)
    return int(np.median([_count_points(name, space, budget, seeds, curve) for curve in CURVES]))


def _count_points(
    name: str, space: Space, budget: Budget, seeds: int, curve: Callable[[NDArray[np.float64]], float]
) -> int:
    """Returns how many different points a search of a curve tries."""
    search, rng, scores_of = strategy(name)(space, budget), np.random.default_rng(0), dict[Point, tuple[float, ...]]()
    while not search.done:
        suggestions = search.ask()
        for suggestion in suggestions:
            if suggestion.point not in scores_of:
                (place,) = places(space, [suggestion.point])
                scores = curve(np.array(place)) + NOISE * rng.standard_normal(seeds)
                scores_of[suggestion.point] = tuple(scores.tolist())
        search.tell(
            [
                Observation(suggestion.number, float(np.mean(scores_of[suggestion.point])), scores_of[suggestion.point])
                for suggestion in suggestions
            ]
        )
    return len(scores_of)
