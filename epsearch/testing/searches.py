"""A strategy driven to the end of its search, by scores that are made."""

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
MOST = 10_000  # suggestions: a search has an end
TABLES, LENGTH = 4, 12  # lists of scores that are drawn for a check, and of how many


@dataclass(frozen=True)
class Searches:
    """A strategy on a space, made anew for every search."""

    kind: StrategyKind
    space: Space
    budget: Budget

    def build(self) -> Strategy:
        """A new one."""
        return self.kind(self.space, self.budget)


def observe(suggestion: Suggestion, value: float | None) -> Observation:
    """An observation of three seeds around a value; None: failed."""
    if value is None:
        return Observation(suggestion.number, None, (None, None, None))
    spread = 0.01 * (1 + suggestion.number % 4)
    return Observation(suggestion.number, value, (value - spread, value, value + spread))


def run(strategy: Strategy, score: Score) -> list[Observation]:
    """Asks and tells whole rounds until it is done; all observations, in order."""
    told: list[Observation] = []
    while not strategy.done:
        observations = [observe(one, score(one)) for one in strategy.ask()]
        sure(observations, "ask() must return suggestions until the search is done")
        strategy.tell(observations)
        told += observations
        sure(len(told) < MOST, f"a search must end; this one goes on after {MOST} suggestions")
    return told


def scores_of(table: Sequence[float | None]) -> Score:
    """Runs through a list of scores by number, again from the start at its end."""
    return lambda suggestion: table[suggestion.number % len(table)]


def state(strategy: Strategy) -> tuple[Any, ...]:
    """All that can be seen of it."""
    return strategy.ask(), strategy.best, strategy.done, strategy.rounds


def tables() -> Iterator[tuple[list[float | None], random.Random]]:
    """Lists of scores, the same every time, each with a generator for orders."""
    for seed in range(TABLES):
        draw = random.Random(seed)
        values: Iterable[float | None] = (
            draw.choice((None, draw.uniform(-1e3, 1e3), float(draw.randint(0, 4)))) for _ in range(LENGTH)
        )
        yield list(values), draw


def allowed(parameter: Parameter, value: Any) -> bool:
    """Whether a parameter may have the value, of its type."""
    if parameter.choices:
        return any(value is one for one in parameter.choices)
    low, high = parameter.low, parameter.high
    number = type(value) is (int if parameter.whole else float) and math.isfinite(value)
    return number and low is not None and high is not None and low <= value <= high
