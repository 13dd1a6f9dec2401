"""Drives a strategy to the end of its search, with artificial scores."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from epsearch.testing.promises import sure
from search_spaces.space import Parameter, Space
from search_spaces.strategies import StrategyKind
from search_spaces.strategy import Budget, Observation, Strategy, Suggestion

Score = Callable[[Suggestion], float | None]
MOST = 10_000  # suggestions: a search must end
TABLES, LENGTH = 4, 12  # number and length of random lists of scores


@dataclass(frozen=True)
class StrategyCase:
    """A strategy on a space, with a budget."""

    kind: StrategyKind
    space: Space
    budget: Budget

    def build(self) -> Strategy:
        """Returns a new strategy."""
        return self.kind(self.space, self.budget)


def observe(suggestion: Suggestion, value: float | None) -> Observation:
    """Returns an observation of three seeds around a value; None for a failure."""
    if value is None:
        return Observation(suggestion.number, None, (None, None, None))
    spread = 0.01 * (1 + suggestion.number % 4)
    return Observation(suggestion.number, value, (value - spread, value, value + spread))


def run(strategy: Strategy, score: Score) -> list[Observation]:
    """Runs whole rounds until the strategy is done; returns all observations."""
    history: list[Observation] = []
    while not strategy.done:
        observations = [observe(suggestion, score(suggestion)) for suggestion in strategy.ask()]
        sure(observations, "ask() must return suggestions until the search is done")
        strategy.tell(observations)
        history += observations
        sure(len(history) < MOST, f"a search must end; this one goes on after {MOST} suggestions")
    return history


def scores_of(table: Sequence[float | None]) -> Score:
    """Returns scores by the numbers of suggestions, from a cycled list."""
    return lambda suggestion: table[suggestion.number % len(table)]


def state(strategy: Strategy) -> tuple[Any, ...]:
    """Returns the visible state of a strategy."""
    return strategy.ask(), strategy.best, strategy.done, strategy.rounds


def tables() -> Iterator[tuple[list[float | None], random.Random]]:
    """Yields fixed lists of scores, each with a generator for orders."""
    for seed in range(TABLES):
        draw = random.Random(seed)
        values: Iterable[float | None] = (
            draw.choice((None, draw.uniform(-1e3, 1e3), float(draw.randint(0, 4)))) for _ in range(LENGTH)
        )
        yield list(values), draw


def is_allowed(parameter: Parameter, value: Any) -> bool:
    """Returns whether a value of the right type lies in a parameter."""
    if parameter.choices:
        return any(value is choice for choice in parameter.choices)
    low, high = parameter.low, parameter.high
    number = type(value) is (int if parameter.whole else float) and math.isfinite(value)
    return number and low is not None and high is not None and low <= value <= high
