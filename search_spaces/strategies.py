"""Every strategy by name, with what is to be known of it besides its suggestions."""

from collections.abc import Callable
from dataclasses import dataclass

from search_spaces.grid import GridSearch, grid
from search_spaces.interval_ci import IntervalConfidence
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.space import Space
from search_spaces.strategy import Budget, Strategy


@dataclass(frozen=True)
class StrategyKind:
    """A strategy's declaration; called with a space and a budget it makes one, or raises ValueError."""

    title: str
    """As reports write it."""
    make: Callable[[Space, Budget], Strategy]
    by_repeats: bool = False
    """Whether a round is a repeat of the published search, a grid that shares its ends with the one before."""
    may_repeat: bool = False
    """Whether it may suggest what has been suggested, so that less than its budget may be trained."""
    decides_alone: bool = False
    """Whether it rules points out, however high their means; else the best of all its rounds is the choice."""
    planned: Callable[[Space, Budget], int] | None = None
    """How many suggestions it will make, where that is known before the first one; None: as many as the budget has."""
    fits_with_torch: bool = False
    """Whether it fits a model with torch, whose number of threads changes the last digits."""

    def __call__(self, space: Space, budget: Budget) -> Strategy:
        return self.make(space, budget)


def _narrowing(space: Space, budget: Budget) -> Strategy:
    return IntervalNarrowing(space.only("narrowing"), budget.points, budget.repeats)


def _interval_ci(space: Space, budget: Budget) -> Strategy:
    parameter = space.only("interval-ci")
    if budget.confidence is None:
        raise ValueError("strategy interval-ci must have a confidence function in its budget, got none")
    return IntervalConfidence(parameter, budget.points, budget.repeats, budget.confidence)


def _grid(space: Space, budget: Budget) -> Strategy:
    return GridSearch(space, budget.points, budget.repeats)


def _sampled(name: str) -> Callable[[Space, Budget], Strategy]:
    """Returns the builder of a strategy that is a sampler of Optuna."""

    def build(space: Space, budget: Budget) -> Strategy:
        # Imported here because Optuna takes half a second, which most commands do not need.
        from search_spaces.adapters.optuna_strategies import optuna_strategy

        return optuna_strategy(name, space, budget)

    return build


# The contract suite runs for every entry.
STRATEGIES: dict[str, StrategyKind] = {
    "narrowing": StrategyKind("interval narrowing", _narrowing, by_repeats=True, may_repeat=True),
    "interval-ci": StrategyKind(
        "narrowing by confidence intervals", _interval_ci, by_repeats=True, may_repeat=True, decides_alone=True
    ),
    "grid": StrategyKind(
        "grid search", _grid, planned=lambda space, budget: len(grid(space, budget.points * budget.repeats))
    ),
    "random": StrategyKind("random search", _sampled("random")),
    "qmc": StrategyKind("quasi-random search (QMC)", _sampled("qmc")),
    "tpe": StrategyKind("tree-structured Parzen estimator (TPE)", _sampled("tpe")),
    "gp": StrategyKind("Gaussian process", _sampled("gp"), may_repeat=True, fits_with_torch=True),
    "cmaes": StrategyKind("CMA-ES", _sampled("cmaes")),
}
"""Name -> what builds the strategy for a space and a budget. It raises ValueError for a space that the strategy cannot
search. The contract suite runs for every entry."""
