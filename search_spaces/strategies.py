"""The table of all strategies by name."""

from collections.abc import Callable

from search_spaces.grid import GridSearch
from search_spaces.interval_ci import IntervalConfidence
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.space import Space
from search_spaces.strategy import Budget, Strategy


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


STRATEGIES: dict[str, Callable[[Space, Budget], Strategy]] = {
    "narrowing": _narrowing,
    "interval-ci": _interval_ci,
    "grid": _grid,
    "random": _sampled("random"),
    "qmc": _sampled("qmc"),
    "tpe": _sampled("tpe"),
    "gp": _sampled("gp"),
    "cmaes": _sampled("cmaes"),
}
"""Name -> what builds the strategy for a space and a budget. It raises ValueError for a space that the strategy cannot
search. The contract suite runs for every entry."""
