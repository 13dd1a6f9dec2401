"""Driving strategies in tests."""

from search_spaces import STRATEGIES, Budget, Observation, Parameter, Space
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
    "gp": ["log", "mixed"],  # slow; the others differ from these in nothing that is ours
}
CASES = [(name, space) for name in STRATEGIES for space in SEARCHES[name]]
POINTS, REPEATS = 5, 3


def build(name, space, points=None, repeats=None, seed=0):
    """A strategy by name over a space of SPACES; by default 5 × 3 points, of the slow GP 3 × 2."""
    points, repeats = points or (3 if name == "gp" else POINTS), repeats or (2 if name == "gp" else REPEATS)
    return STRATEGIES[name](SPACES[space], Budget(points, repeats, seed, parabola_hull))


def observe(suggestion, value):
    """An observation of three seeds around a value; None: failed."""
    if value is None:
        return Observation(suggestion.number, None, (None, None, None))
    spread = 0.01 * (1 + suggestion.number % 4)
    return Observation(suggestion.number, value, (value - spread, value, value + spread))


def run(strategy, score):
    """Ask and tell whole rounds until done; score(suggestion) -> float | None. All observations, in order."""
    told = []
    while not strategy.done:
        observations = [observe(one, score(one)) for one in strategy.ask()]
        strategy.tell(observations)
        told += observations
        assert len(told) < 10_000, "the search does not end"
    return told


def scores_of(table):
    """A score function that runs through a list of values by number, again from the start at its end."""
    return lambda suggestion: table[suggestion.number % len(table)]
