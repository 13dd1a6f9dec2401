"""Search spaces, search strategies, published settings.

ROOMS lists modules and folders from the top down; each imports only what stands behind it.

strategies                the table of strategies
published                 the published settings of every dataset
interval_ci, grid         strategies that need no library, as narrowing does not
curves                    along a curve through all scores: kg, and the value that a search names
adapters                  Optuna's samplers as strategies, strategies as searchers of Ray Tune and samplers of Optuna
narrowing                 the paper's search;  narrowing_rule  how its interval shrinks
rounds, strategy          what strategies share, and their contract;  space, interval  what is searched
"""

from search_spaces.grid import GridSearch
from search_spaces.interval import Interval
from search_spaces.interval_ci import IntervalConfidence
from search_spaces.narrowing import IntervalNarrowing
from search_spaces.published.definition import Definition, UnknownDataset, definitions, load_definition
from search_spaces.space import Parameter, Point, Space, Value
from search_spaces.strategies import STRATEGIES, StrategyKind
from search_spaces.strategy import Best, Budget, Confidence, Observation, Round, Strategy, Suggestion, replay

ROOMS = (
    *(
        "strategies",
        "published",
        "interval_ci",
        "curves",
        "grid",
        "adapters",
        "narrowing",
        "narrowing_rule",
        "rounds",
        "strategy",
        "space",
    ),
    "interval",
)

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
    "Observation",
    "Parameter",
    "Point",
    "Round",
    "Space",
    "Strategy",
    "StrategyKind",
    "Suggestion",
    "UnknownDataset",
    "Value",
    "definitions",
    "load_definition",
    "replay",
]
