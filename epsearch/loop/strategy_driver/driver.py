"""Drives the strategy of a study with the scores of stored members."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.strategy_driver.prediction import predict, predicted_scores
from epsearch.loop.strategy_driver.race import FIRST_SEEDS, RecordOf, assign_seeds, score_table
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
    """Asks a study's strategy for points, and tells it the scores of their members.

    record_of: returns the record of a point and a seed, if any. The state follows from the records and the study alone,
    so a resumed search has the same state. before: points of earlier versions of the study, with their seeds; a curve
    is fitted to these, too.
    """

    def __init__(
        self, study: Search, record_of: RecordOf, before: Mapping[Point, tuple[int, ...]] | None = None
    ) -> None:
        self._study, self._record_of, self._kind = study, record_of, strategy(study.strategy)
        self._before = {} if before is None else before
        self.choice: Choice | None = None
        """The choice by a curve, once the search is done; None before, and with `choose tried`."""
        self._search = make_strategy(study)
        self.strategy: Strategy = Naming(self._search, self._name) if study.choose == CURVE else self._search
        self._planned = self._kind.planned(study.space, _budget(study)) if self._kind.planned else 0

    @property
    def unit(self) -> str:
        """Name of a round."""
        return "repeat" if self._kind.by_repeats else "batch"

    @property
    def stage(self) -> str:
        """The open round, in words."""
        if self._search.done:
            return NAMED
        rounds, size = len(self._search.rounds), self._study.points
        most = rounds + -(-self.later() // size) if self._kind.planned else self._study.repeats
        return f"{self.unit} {rounds} of {most}"

    def open_seeds(self) -> dict[Point, tuple[int, ...]]:
        """Returns the seeds of open suggestions."""
        return self._shares([suggestion.point for suggestion in self.strategy.ask()])

    def assigned_seeds(self) -> dict[Point, tuple[int, ...]]:
        """Returns the seeds of every point so far, open ones included."""
        return self._seeds_of(self.strategy)

    def dropped_points(self) -> dict[Point, int]:
        """Returns points that a race dropped in their round of the most seeds, with that number."""
        most: dict[Point, tuple[int, bool]] = {}
        for round in self.strategy.rounds if self._study.race else ():
            for point, state in self._race(round.points).items():
                most[point] = max(most.get(point, state), state, key=lambda state: state[0])
        return {point: seeds for point, (seeds, dropped) in most.items() if dropped}

    def scores(self) -> NDArray[np.float64]:
        """Returns the scores of all points and all `seeds` [K, R]; NaN without one."""
        points = list(self.assigned_seeds())
        return score_table(points, self._study.units, self._record_of, self._study.objective)[0]

    def later(self) -> int:
        """Returns the largest number of suggestions of later rounds."""
        study, rounds = self._study, self._search.rounds
        if self._kind.planned:
            return self._planned - sum(len(round.points) for round in rounds)
        fresh = study.points - (2 if self._kind.by_repeats else 0)  # a new grid shares its ends with the old one
        return (study.repeats - len(rounds)) * fresh

    def later_members(self) -> tuple[int, int]:
        """Returns the fewest and the most members of later suggestions.

        The fewest are 0 where points may repeat. The most include seeds that a race may still give to the open round.
        """
        trials, seeds = self.later(), len(self._study.search_units)
        named = seeds if self._names() and not self._search.done else 0
        fewest = min(FIRST_SEEDS, seeds) if self._study.race else seeds
        may_repeat = self._kind.may_repeat or self._study.space.finite
        most = trials * seeds + self._study.points * (seeds - fewest) + named
        return 0 if may_repeat else trials * fewest, most

    def observations(self) -> list[Observation]:
        """Returns the mean score over the seeds of every open suggestion; None for a point that loses any seed.

        In a race, with different seeds, means are adjusted to those of the best point, up to the seeds of every round.
        Stored seeds beyond a point's share do not count, as they depend on other studies of the ledger.
        """
        suggestions, seeds, first = self.strategy.ask(), self._study.search_units, len(self._study.units)
        points = [suggestion.point for suggestion in suggestions]
        shares = self._shares(points)
        scores, diverged = self._scores(points, seeds, self.assigned_seeds())
        beyond = np.arange(len(seeds)) >= np.array([len(shares[point]) for point in points])[:, None]
        lost = np.asarray((diverged & ~beyond).any(axis=1))
        scores = np.where(lost[:, None] | beyond, np.nan, scores)
        # Added in the order of the seeds, as in stored searches: another order may change the last digit.
        means = (
            adjusted_means(scores, over=first).tolist()
            if self._study.race
            else [sum(row) / len(seeds) for row in scores.tolist()]
        )
        return [
            Observation(
                suggestion.number, None if gone else mean, tuple(None if np.isnan(score) else score for score in row)
            )
            for suggestion, mean, gone, row in zip(suggestions, means, lost, scores.tolist(), strict=True)
        ]

    def _scores(
        self, points: Sequence[Point], seeds: Sequence[int], every: Iterable[Point]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Returns the scores by which the study chooses [K, R], NaN without one, and which members diverged.

        every: all points so far, whose members are all there, so that a resumed search predicts the same.
        """
        study, known = self._study, tuple(every)
        scores, diverged = score_table(points, seeds, self._record_of, study.objective)
        if not study.extrapolates:
            return scores, diverged
        members = tuple(tuple(self._record_of(point, seed) for seed in study.units) for point in known)
        model = predict(study.space, known, members, study.tasks - study.cv_tasks)
        if model is None:
            return scores, diverged
        mean = dict(zip(known, model.mean.tolist(), strict=True))
        return predicted_scores(scores, [mean[point] for point in points]), diverged

    def _seeds_of(self, strategy: Strategy) -> dict[Point, tuple[int, ...]]:
        assigned: dict[Point, tuple[int, ...]] = {}
        for round in strategy.rounds:
            for point, seeds in self._shares(round.points).items():
                assigned[point] = max(assigned.get(point, ()), seeds, key=len)
        return assigned

    def _names(self) -> bool:
        """Returns whether a curve may choose an untried value."""
        study = self._study
        curved = len(study.units) > 1 and any(not parameter.choices for parameter in study.space.parameters)
        return curved and study.choose == CURVE

    def _name(self) -> Point | None:
        """Returns the choice of a curve through all scores, without points that lose a seed."""
        from epsearch.loop.strategy_driver.choice_cache import choose_once  # brings scipy along

        assigned = {**self._before, **self._seeds_of(self._search)}
        seeds = sorted({seed for seeds_of_point in assigned.values() for seed in seeds_of_point})
        scores, diverged = self._scores(list(assigned), seeds, assigned)
        counts = np.array(
            [[seed in seeds_of_point for seed in seeds] for seeds_of_point in assigned.values()], dtype=bool
        )
        whole = ~(diverged & counts).any(axis=1)
        scores = np.where(counts & whole[:, None], scores, np.nan)
        self.choice = choose_once(self._study.space, list(assigned), scores)
        return self.choice.point

    def _shares(self, points: Sequence[Point]) -> dict[Point, tuple[int, ...]]:
        """Returns the seeds of points of one round: all, except in a race."""
        if not self._study.race:
            return dict.fromkeys(points, self._study.units)
        return {point: self._study.search_units[:count] for point, (count, _) in self._race(points).items()}

    def _race(self, points: Sequence[Point]) -> dict[Point, tuple[int, bool]]:
        """Returns (number of seeds, whether dropped) of points of one round of a race."""
        study, different = self._study, list(dict.fromkeys(points))
        table = score_table(different, study.search_units, self._record_of, study.objective)
        return dict(zip(different, assign_seeds(*table, len(study.units)), strict=True))


def make_strategy(study: Search) -> Strategy:
    """Returns a study's strategy, before its first round. Raises ValueError where it cannot search the space."""
    kind = strategy(study.strategy)
    if kind.fits_with_torch:
        import torch

        torch.set_num_threads(1)  # more are slower on so few points, and their number would change the last digits
    return kind(study.space, _budget(study))


def _budget(study: Search) -> Budget:
    """Returns the budget of a strategy, with statistics, which `search_spaces` may not import."""
    return Budget(study.points, study.repeats, study.strategy_seed, confidence, model)


def confidence(
    values: Sequence[float], scores: Sequence[Sequence[float | None]], low: float, high: float
) -> tuple[float, float] | None:
    """Returns the ends of the confidence set of a curve's maximum, or None; as `search_spaces.strategy.Confidence`.

    None means that the scores do not determine one.
    """
    from results.statistics.quadratic_hull import confidence_hull  # brings scipy along

    return confidence_hull(values, np.array(scores, dtype=np.float64), low, high)  # None becomes NaN


def model(
    x: Sequence[Sequence[float]],
    scores: Sequence[Sequence[float | None]],
    at: Sequence[Sequence[float]],
    fresh: Sequence[bool],
    count: int,
) -> tuple[list[int], float] | None:
    """Returns the batch of the highest expected gain, and that gain; as `search_spaces.strategy.Model`."""
    from results.statistics.gaussian_process import Process  # as above

    most = max(map(len, scores), default=0)
    table = np.array([(*row, *[None] * (most - len(row))) for row in scores], dtype=np.float64).reshape(len(x), most)
    process = Process.fit(np.array(x, dtype=np.float64), table)
    return None if process is None else process.batch(np.array(at), np.array(fresh), count, most)
