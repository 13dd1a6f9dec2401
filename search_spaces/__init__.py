"""Where a search looks next: spaces, ask/tell strategies, published settings as data."""

from search_spaces.definition import Definition, MethodSettings, UnknownDataset, definitions, load_definition
from search_spaces.grid import GridSearch
from search_spaces.interval import Interval
from search_spaces.interval_ci import IntervalConfidence
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.space import Parameter, Point, Space, Value
from search_spaces.strategies import STRATEGIES
from search_spaces.strategy import Best, Budget, Confidence, Observation, Round, Strategy, Suggestion, replay

__all__ = [
    "STRATEGIES",
    "Best",
    "Budget",
    "Confidence",
    "Definition",
    "GridSearch",
    "Interval",
    "IntervalConfidence",
    "IntervalNarrowing",
    "MethodSettings",
    "Observation",
    "Parameter",
    "Point",
    "Round",
    "Space",
    "Strategy",
    "Suggestion",
    "UnknownDataset",
    "Value",
    "definitions",
    "load_definition",
    "replay",
]
