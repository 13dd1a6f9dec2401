"""A race over seeds: the number of seeds of each point, by the scores of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from results.ledger.record import RunRecord
from results.objectives import of_record
from results.statistics.racing import separated
from search_spaces.space import Point

FIRST_SEEDS = 2  # fewer have no spread
ALPHA = 0.05  # the chance, a round, that a race drops the best value; where noise is unequal, too

NAN = float("nan")
_SCORES: WeakKeyDictionary[RunRecord, dict[str, float]] = WeakKeyDictionary()

RecordOf = Callable[[Point, int], RunRecord | None]
"""Returns the record of a point and a seed; None without one."""


@dataclass(frozen=True)
class Scores:
    """Scores of K points and R seeds, a row a point, in the order of the seeds."""

    scores: NDArray[np.float64]
    """[K, R]: what is maximised, NaN without one."""
    lost: NDArray[np.bool_]
    """[K, R]: members that diverged."""

    @classmethod
    def of(cls, points: Sequence[Point], seeds: Sequence[int], record_of: RecordOf, objective: str) -> "Scores":
        """Returns the table of all points and seeds, in this order.

        objective: what is maximised, as `results.objectives` has it.
        """
        records = [[record_of(point, seed) for seed in seeds] for point in points]
        lost = [[one is not None and one.status != "ok" for one in row] for row in records]
        shape = (len(points), len(seeds))
        scores = np.array([[_score(one, objective) for one in row] for row in records], dtype=np.float64)
        # Without a point, numpy makes of an empty list the shape [0], not [0, R].
        return cls(scores.reshape(shape), np.array(lost, dtype=bool).reshape(shape))

    def within(self, shares: Sequence[int]) -> "Scores":
        """Returns the table without seeds beyond each point's share, which play no part."""
        beyond = np.arange(self.scores.shape[1]) >= np.asarray(shares)[:, None]
        return Scores(np.where(beyond, np.nan, self.scores), self.lost & ~beyond)


class Standing(NamedTuple):
    """State of a point of a race."""

    seeds: int
    """How many seeds, of the first, it is to have."""
    dropped: bool
    """Whether it gets no more because these were low: its mean is biased downwards."""


def standings(table: Scores, enough: int) -> list[Standing]:
    """Returns the states of the points that began a race together, in their order.

    table   of all seeds that a point may get
    enough  seeds that points which are not dropped get in any case; they get more only while there are several

    All begin with two seeds. When these are known, points that are worse beyond doubt than the best one are dropped,
    and the others get one seed more, until they have all. A point that loses a member gets no more either. Only seeds
    that every point still in has had are looked at, so what is wanted depends on the results alone, not on the order in
    which they came.
    """
    points, most = table.scores.shape
    counts, running = np.full(points, min(FIRST_SEEDS, most)), np.ones(points, dtype=bool)
    gone = np.zeros(points, dtype=bool)
    for known in range(FIRST_SEEDS, most):
        scores, lost = table.scores[:, :known], table.lost[:, :known]
        running &= ~lost.any(axis=1)
        if not running.any() or np.isnan(scores[running]).any():
            break
        # All that began count as comparisons, also those that were dropped before: the error rate is of the whole race.
        dropped = separated(scores[running], looks=most - FIRST_SEEDS, starters=points)
        gone[np.flatnonzero(running)[dropped]] = True
        running &= ~gone
        if known >= enough and running.sum() < 2:
            break
        counts[running] = known + 1
    return [Standing(*one) for one in zip(counts.tolist(), gone.tolist(), strict=True)]


def _score(record: RunRecord | None, objective: str) -> float:
    """What is maximised; NaN without a record, and where the member diverged."""
    if record is None:
        return NAN
    # Kept, as all members of a search are looked at whenever a cohort comes back.
    known = _SCORES.setdefault(record, {})
    if objective not in known:
        known[objective] = of_record(objective, record)
    return known[objective]
