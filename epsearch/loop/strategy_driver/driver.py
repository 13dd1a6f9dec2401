"""Drives the strategy of a study with the scores of stored members."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.strategy_driver import race
from epsearch.loop.strategy_driver.race import RecordOf, Scores
from epsearch.study.description import CURVE
from epsearch.study.kinds import Search
from results.statistics.racing import adjusted_means
from search_spaces.curves.naming import NAMED, Naming
from search_spaces.space import Point
from search_spaces.strategies import strategy
from search_spaces.strategy import Budget, Observation, Strategy

if TYPE_CHECKING:
    from results.search import Choice


class StrategyDriver:
    """A study's strategy on one side, its members on the other.

    record_of: returns the record of a point and a seed, if there is one. All answers follow from that and the study, so
    that a search that is opened again has the same state. before: points of the study before it grew, with their seeds;
    a curve goes through these, too.
    """

    def __init__(
        self, study: Search, record_of: RecordOf, before: Mapping[Point, tuple[int, ...]] | None = None
    ) -> None:
        self._study, self._record_of, self._kind = study, record_of, strategy(study.strategy)
        self._before = {} if before is None else before
        self.choice: Choice | None = None
        """What the curve names, once the search is done; None before, and where the best tried value is chosen."""
        self._search = make_strategy(study)
        self.strategy: Strategy = Naming(self._search, self._name) if study.choose == CURVE else self._search
        self._planned = self._kind.planned(study.space, _budget(study)) if self._kind.planned else 0

    @property
    def unit(self) -> str:
        """What a round is called."""
        return "repeat" if self._kind.by_repeats else "batch"

    @property
    def stage(self) -> str:
        """The open round, in words."""
        if self._search.done:
            return NAMED
        rounds, size = len(self._search.rounds), self._study.points
        most = rounds + -(-self.later() // size) if self._kind.planned else self._study.repeats
        return f"{self.unit} {rounds} of {most}"

    def wanted(self) -> dict[Point, tuple[int, ...]]:
        """The seeds that open suggestions are to have."""
        return self._shares([suggestion.point for suggestion in self.strategy.ask()])

    def assigned_seeds(self) -> dict[Point, tuple[int, ...]]:
        """The seeds that every point tried so far had, or is to have if it is open."""
        return self._assigned(self.strategy)

    def dropped(self) -> dict[Point, int]:
        """Points that a race has dropped in the round that gave them the most seeds, and how many these are."""
        most: dict[Point, race.Standing] = {}
        for one in self.strategy.rounds if self._study.race else ():
            for point, there in self._standing(one.points).items():
                most[point] = max(most.get(point, there), there, key=lambda standing: standing.seeds)
        return {point: there.seeds for point, there in most.items() if there.dropped}

    def scores(self) -> NDArray[np.float64]:
        """What is maximised, of every point tried so far and every one of `seeds` [K, R]; NaN where it is not known."""
        return Scores.of(list(self.assigned_seeds()), self._study.seeds, self._record_of, self._study.objective).scores

    def later(self) -> int:
        """Suggestions of rounds that are not open yet, at most; those of a grid are known."""
        study, rounds = self._study, self._search.rounds
        if self._kind.planned:
            return self._planned - sum(len(one.points) for one in rounds)
        fresh = study.points - (2 if self._kind.by_repeats else 0)  # a new grid shares its ends with the old one
        return (study.repeats - len(rounds)) * fresh

    def later_members(self) -> tuple[int, int]:
        """The fewest and the most members of later suggestions.

        The fewest are none where a point may be met twice, as its members are then known. The most count the seeds that
        a race may still give to the points of the open round.
        """
        trials, seeds = self.later(), len(self._study.search_seeds)
        named = seeds if self._names() and not self._search.done else 0
        fewest = min(race.FIRST_SEEDS, seeds) if self._study.race else seeds
        may_repeat = self._kind.may_repeat or self._study.space.finite
        most = trials * seeds + self._study.points * (seeds - fewest) + named
        return 0 if may_repeat else trials * fewest, most

    def observations(self) -> list[Observation]:
        """The mean of what is maximised over the seeds of every open suggestion; a point that loses any seed has none.

        In a race points have different seeds: their means are those that all of the best one's seeds would give, but
        for those beyond the seeds that every round has.
        Known seeds beyond a point's share do not count, as they would depend on what else the ledger has.
        """
        suggestions, seeds, first = self.strategy.ask(), self._study.search_seeds, len(self._study.seeds)
        points = [one.point for one in suggestions]
        shares = self._shares(points)
        table = Scores.of(points, seeds, self._record_of, self._study.objective).within(
            [len(shares[point]) for point in points]
        )
        lost = np.asarray(table.lost.any(axis=1))
        scores = np.where(lost[:, None], np.nan, table.scores)
        # Added in the order of the seeds, as in every search that is stored: another sum may end in another digit.
        means = (
            adjusted_means(scores, over=first).tolist()
            if self._study.race
            else [sum(row) / len(seeds) for row in scores.tolist()]
        )
        return [
            Observation(one.number, None if gone else mean, tuple(None if np.isnan(score) else score for score in row))
            for one, mean, gone, row in zip(suggestions, means, lost, scores.tolist(), strict=True)
        ]

    def _assigned(self, strategy: Strategy) -> dict[Point, tuple[int, ...]]:
        assigned: dict[Point, tuple[int, ...]] = {}
        for one in strategy.rounds:
            for point, seeds in self._shares(one.points).items():
                assigned[point] = max(assigned.get(point, ()), seeds, key=len)
        return assigned

    def _names(self) -> bool:
        """Whether a curve may name a value that was not tried."""
        study = self._study
        curved = len(study.seeds) > 1 and any(not one.choices for one in study.space.parameters)
        return curved and study.choose == CURVE

    def _name(self) -> Point | None:
        """The point that a curve through all scores names; those of points that lose a seed do not count."""
        from epsearch.loop.strategy_driver.choice_cache import choose_once  # brings scipy along

        assigned = {**self._before, **self._assigned(self._search)}
        seeds = sorted({seed for own in assigned.values() for seed in own})
        table = Scores.of(list(assigned), seeds, self._record_of, self._study.objective)
        counts = np.array([[seed in own for seed in seeds] for own in assigned.values()], dtype=bool)
        whole = ~(table.lost & counts).any(axis=1)
        scores = np.where(counts & whole[:, None], table.scores, np.nan)
        self.choice = choose_once(self._study.space, list(assigned), scores)
        return self.choice.point

    def _shares(self, points: Sequence[Point]) -> dict[Point, tuple[int, ...]]:
        """The seeds that points of one round are to have: all, but in a race."""
        if not self._study.race:
            return dict.fromkeys(points, self._study.seeds)
        return {point: self._study.search_seeds[: one.seeds] for point, one in self._standing(points).items()}

    def _standing(self, points: Sequence[Point]) -> dict[Point, race.Standing]:
        """Where points of one round stand in a race."""
        study, different = self._study, list(dict.fromkeys(points))
        table = Scores.of(different, study.search_seeds, self._record_of, study.objective)
        standings = race.standings(table, len(study.seeds))
        return dict(zip(different, standings, strict=True))


def make_strategy(study: Search) -> Strategy:
    """A study's strategy, before its first round. Raises ValueError where it cannot search the space."""
    kind = strategy(study.strategy)
    if kind.fits_with_torch:
        import torch

        torch.set_num_threads(1)  # more are slower on so few points, and their number would change the last digits
    return kind(study.space, _budget(study))


def _budget(study: Search) -> Budget:
    """What a strategy may spend; statistics are handed to it, as `search_spaces` knows none."""
    return Budget(study.points, study.repeats, study.strategy_seed, confidence, model)


def confidence(
    values: Sequence[float], scores: Sequence[Sequence[float | None]], low: float, high: float
) -> tuple[float, float] | None:
    """The ends of the confidence set of the maximum of a curve; arguments as of `search_spaces.strategy.Confidence`.

    None where the scores do not determine one.
    """
    from results.statistics.confidence_set import confidence_hull  # brings scipy along

    return confidence_hull(values, np.array(scores, dtype=np.float64), low, high)  # None becomes NaN


def model(
    x: Sequence[Sequence[float]],
    scores: Sequence[Sequence[float | None]],
    at: Sequence[Sequence[float]],
    fresh: Sequence[bool],
    count: int,
) -> tuple[list[int], float] | None:
    """The batch that is worth most, and what it is worth; arguments as of `search_spaces.strategy.Model`."""
    from results.statistics.gaussian_process import Process  # as above

    most = max(map(len, scores), default=0)
    table = np.array([(*row, *[None] * (most - len(row))) for row in scores], dtype=np.float64).reshape(len(x), most)
    process = Process.fit(np.array(x, dtype=np.float64), table)
    return None if process is None else process.batch(np.array(at), np.array(fresh), count, most)
