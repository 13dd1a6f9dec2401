"""Where a search for ε looks next: intervals, ask/tell strategies, published settings as data."""

from collections.abc import Callable

from search_spaces.definition import Definition, MethodSettings, UnknownDataset, definitions, load_definition
from search_spaces.interval import Interval
from search_spaces.narrowing import IntervalNarrowing, Round
from search_spaces.strategy import Best, Observation, Strategy, Suggestion, replay

# Built from (interval, points, repeats, tolerance). The contract suite runs for every entry.
STRATEGIES: dict[str, Callable[[Interval, int, int, float], Strategy]] = {
    "narrowing": IntervalNarrowing,
}

__all__ = [
    "STRATEGIES",
    "Best",
    "Definition",
    "Interval",
    "IntervalNarrowing",
    "MethodSettings",
    "Observation",
    "Round",
    "Strategy",
    "Suggestion",
    "UnknownDataset",
    "definitions",
    "load_definition",
    "replay",
]
