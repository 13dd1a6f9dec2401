"""Driving strategies in tests."""

from search_spaces import Observation


def run(strategy, score):
    """Ask and tell whole rounds until done; score(suggestion) -> float | None. All observations, in order."""
    told = []
    while not strategy.done:
        observations = [Observation(one.number, score(one)) for one in strategy.ask()]
        strategy.tell(observations)
        told += observations
        assert len(told) < 10_000, "the search does not end"
    return told


def scores_of(table):
    """A score function that runs through a list of values by number, again from the start at its end."""
    return lambda suggestion: table[suggestion.number % len(table)]
