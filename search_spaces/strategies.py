"""The table of all strategies by name, with their properties."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from search_spaces.curves.kg import KnowledgeGradient
from search_spaces.grid import GridSearch, grid
from search_spaces.interval_ci import IntervalConfidence
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.space import Parameter, Space
from search_spaces.strategy import Budget, Strategy


@dataclass(frozen=True)
class StrategyKind:
    """The declaration of a strategy."""

    title: str
    """Its name in reports."""
    make: Callable[[Space, Budget], Strategy]
    """Builds it; raises ValueError for a space that it cannot search."""
    by_repeats: bool = False
    """Whether a round is a repeat, as in the published search: a grid over an interval inside the one before."""
    may_repeat: bool = False
    """Whether it may suggest a point twice or end early, so that fewer members than its budget may be trained."""
    decides_alone: bool = False
    """Whether it may exclude points with a high mean; if not, the best of all rounds is the choice."""
    has_choices: bool = True
    """Whether it can search a list of choices."""
    planned: Callable[[Space, Budget], int] | None = None
    """Returns the number of its suggestions, if that is known before the first one; None: as many as the budget has."""
    fits_with_torch: bool = False
    """Whether it fits a model with torch, whose number of threads changes the last digits."""

    def __call__(self, space: Space, budget: Budget) -> Strategy:
        """Returns the strategy for a space and a budget; ValueError as `make`."""
        return self.make(space, budget)


def _interval(space: Space, strategy: str) -> Parameter:
    """The only parameter, which has an interval; ValueError, with the strategies that can, for another space."""
    if len(space.parameters) > 1 or space.parameters[0].choices:
        choices = any(len(parameter.choices) > 1 for parameter in space.parameters)
        others = (
            name for name, kind in STRATEGIES.items() if not kind.by_repeats and (kind.has_choices or not choices)
        )
        raise ValueError(
            f"strategy {strategy} searches one interval LOW..HIGH, got {space}; {', '.join(others)} can search this"
        )
    return space.parameters[0]


def _interval_ci(space: Space, budget: Budget) -> Strategy:
    parameter = _interval(space, "interval-ci")
    if budget.confidence is None:
        raise ValueError("strategy interval-ci must have a confidence function in its budget, got none")
    return IntervalConfidence(parameter, budget.points, budget.repeats, budget.confidence)


def _knowledge_gradient(space: Space, budget: Budget) -> Strategy:
    if choices := [parameter.name for parameter in space.parameters if parameter.choices]:
        others = ", ".join(name for name, kind in STRATEGIES.items() if kind.has_choices and not kind.by_repeats)
        raise ValueError(f"strategy kg searches intervals, got choices of {choices[0]}; {others} can search this")
    if budget.model is None:
        raise ValueError("strategy kg must have a model in its budget, got none")
    return KnowledgeGradient(space, budget.points, budget.repeats, budget.model)


def _sampler(name: str, space: Space, budget: Budget) -> Strategy:
    """Returns a strategy that is a sampler of Optuna."""
    # Imported here because Optuna takes half a second, which most commands do not need.
    from search_spaces.adapters.optuna_strategies import optuna_strategy

    return optuna_strategy(name, space, budget)


STRATEGIES: dict[str, StrategyKind] = {
    "narrowing": StrategyKind(
        "interval narrowing",
        lambda space, budget: IntervalNarrowing(_interval(space, "narrowing"), budget.points, budget.repeats),
        by_repeats=True,
        may_repeat=True,
    ),
    "interval-ci": StrategyKind(
        "narrowing by confidence intervals", _interval_ci, by_repeats=True, may_repeat=True, decides_alone=True
    ),
    "grid": StrategyKind(
        "grid search",
        lambda space, budget: GridSearch(space, budget.points, budget.repeats),
        planned=lambda space, budget: len(grid(space, budget.points * budget.repeats)),
    ),
    "random": StrategyKind("random search", partial(_sampler, "random")),
    "qmc": StrategyKind("quasi-random search (QMC)", partial(_sampler, "qmc")),
    "tpe": StrategyKind("tree-structured Parzen estimator (TPE)", partial(_sampler, "tpe")),
    "gp": StrategyKind("Gaussian process", partial(_sampler, "gp"), may_repeat=True, fits_with_torch=True),
    "cmaes": StrategyKind("CMA-ES", partial(_sampler, "cmaes"), has_choices=False),
    "kg": StrategyKind("knowledge gradient", _knowledge_gradient, may_repeat=True, has_choices=False),
}
"""Name -> declaration. The contract suite runs for every entry."""

PLUGGED: dict[str, StrategyKind] = {}
"""Strategies of others, by module:attribute, which this process has loaded."""


def strategy(name: str) -> StrategyKind:
    """Returns the declaration of a strategy, ours or plugged. Raises KeyError where there is none."""
    return PLUGGED[name] if name in PLUGGED else STRATEGIES[name]
