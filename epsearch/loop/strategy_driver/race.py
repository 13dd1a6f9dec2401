"""A race over seeds: the number of seeds of each point, by the scores of all."""

from collections.abc import Callable, Sequence
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
"""Returns the record of a point and a seed; None if there is none."""


def score_table(
    points: Sequence[Point], seeds: Sequence[int], record_of: RecordOf, objective: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns scores [K, R], NaN without one, and which members diverged [K, R], of K points and R seeds.

    objective: a name of `results.objectives`.
    """
    records = [[record_of(point, seed) for seed in seeds] for point in points]
    diverged = [[record is not None and record.status != "ok" for record in row] for row in records]
    shape = (len(points), len(seeds))
    scores = np.array([[_score(record, objective) for record in row] for row in records], dtype=np.float64)
    # Without a point, numpy makes of an empty list the shape [0], not [0, R].
    return scores.reshape(shape), np.array(diverged, dtype=bool).reshape(shape)


def assign_seeds(scores: NDArray[np.float64], diverged: NDArray[np.bool_], enough: int) -> list[tuple[int, bool]]:
    """Returns (number of seeds, whether dropped) of each of K points that began a race together.

    scores, diverged: [K, R], with all seeds that a point may get; enough: seeds of all points that are not dropped,
    which get more only while there are several.

    All points begin with two seeds. With their scores, points that are significantly worse than the best are dropped,
    and the others get one seed more, until they have all. A point that loses a member gets no more either. Only seeds
    of all remaining points count, so the answer does not depend on the order of results. The mean of a dropped point is
    biased downwards.
    """
    points, most = scores.shape
    counts, running = np.full(points, min(FIRST_SEEDS, most)), np.ones(points, dtype=bool)
    dropped = np.zeros(points, dtype=bool)
    for seeds in range(FIRST_SEEDS, most):
        running &= ~diverged[:, :seeds].any(axis=1)
        if not running.any() or np.isnan(scores[running, :seeds]).any():
            break
        # Points that were dropped before count as comparisons, too: the error rate is of the whole race.
        worse = separated(scores[running, :seeds], looks=most - FIRST_SEEDS, starters=points)
        dropped[np.flatnonzero(running)[worse]] = True
        running &= ~dropped
        if seeds >= enough and running.sum() < 2:
            break
        counts[running] = seeds + 1
    return list(zip(counts.tolist(), dropped.tolist(), strict=True))


def _score(record: RunRecord | None, objective: str) -> float:
    """Returns a record's score; NaN without one, and where the member diverged."""
    if record is None:
        return NAN
    # Cached, as all members of a search are scored after every cohort.
    scores = _SCORES.setdefault(record, {})
    if objective not in scores:
        scores[objective] = of_record(objective, record)
    return scores[objective]
