"""Driving strategies in tests."""

from epsearch.loop.strategy_driver.driver import model
from epsearch.testing.searches import StrategyCase
from epsearch.testing.searches import observe as observe
from epsearch.testing.searches import run as run
from epsearch.testing.searches import scores_of as scores_of
from search_spaces import STRATEGIES, Budget, Parameter, Space
from tests.support.confidence import parabola_hull

EPSILON = Parameter("epsilon", 0.1, 0.8)
LR = Parameter("lr", 0.0003, 0.3, log=True)
MEMORY = Parameter("memory", 1, 40, whole=True)
METHOD = Parameter("method", choices=("agem", 7, 0.5))

SPACES = {
    "linear": Space((EPSILON,)),
    "from zero": Space((Parameter("epsilon", 0, 1, apart=(0.0,)),)),
    "log": Space((LR,)),
    "whole": Space((MEMORY,)),
    "choices": Space((METHOD,)),
    "plane": Space((LR, MEMORY)),
    "mixed": Space((LR, METHOD, MEMORY)),
}
LINES = ["linear", "from zero", "log", "whole"]
SEARCHES = {
    "grid": list(SPACES),
    **{name: ["linear", "log", "whole", "choices", "mixed"] for name in ("random", "qmc", "tpe")},
    "narrowing": LINES,
    "interval-ci": LINES,
    "cmaes": ["linear", "whole", "plane"],
    "kg": [*LINES, "plane"],
    "gp": ["log", "mixed"],  # slow; the others differ from these in nothing that is ours
}
CASES = [(name, space) for name in STRATEGIES for space in SEARCHES[name]]
POINTS, REPEATS = 5, 3


def build(name, space, points=None, repeats=None, seed=0):
    """A strategy by name over a space of SPACES; by default 5 × 3 points, of the slow GP 3 × 2."""
    return case(name, space, points, repeats, seed).build()


def case(name, space, points=None, repeats=None, seed=0):
    """The same, not built yet."""
    points, repeats = points or (3 if name == "gp" else POINTS), repeats or (2 if name == "gp" else REPEATS)
    return StrategyCase(STRATEGIES[name], SPACES[space], Budget(points, repeats, seed, parabola_hull, model))
