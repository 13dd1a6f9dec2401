"""Predicts A_T of searched values for the number of tasks of the evaluation, and selects values for further tasks."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsearch.study.kinds import Search
from results.inert import all_equal
from results.ledger.record import RunRecord
from results.search import SearchStage
from search_spaces.curves.candidates import places
from search_spaces.space import Point, Space

if TYPE_CHECKING:
    from results.statistics.extrapolation import Extrapolation

Members = tuple[tuple[RunRecord | None, ...], ...]
"""The records of each point, one a unit; None where there is none."""


@lru_cache(maxsize=64)  # asked for at every report of progress
def predict(space: Space, points: tuple[Point, ...], members: Members, tasks: int) -> "Extrapolation | None":
    """Returns the prediction of A_T for so many tasks of points; None where all scores are equal, or all diverged."""
    from results.statistics.extrapolation import Extrapolation  # brings scipy along

    records = [record for row in members for record in row if record is not None]
    present = np.array([[record is not None for record in row] for row in members])
    if not records:
        return None
    missing = np.full(records[0].accuracies.shape, math.nan)
    accuracies = np.array([[missing if record is None else record.accuracies for record in row] for row in members])
    if all_equal(accuracies[:, :, -1].mean(axis=2)):
        return None
    try:
        return Extrapolation.fit(np.array(places(space, points)), accuracies, tasks, present)
    except ValueError:  # all have diverged
        return None


def predicted_scores(scores: NDArray[np.float64], mean: Sequence[float]) -> NDArray[np.float64]:
    """Returns predicted scores of members [K, S], from those on the tasks of the search and the predicted means [K].

    A member is as far from the mean of its point as it was: paired statistics keep the noise between seeds.
    """
    scored = ~np.isnan(scores)
    level = np.where(scored, scores, 0.0).sum(axis=1) / np.maximum(scored.sum(axis=1), 1)
    return np.asarray(scores - level[:, None] + np.array(mean)[:, None])


def search_stages(
    study: Search, points: Sequence[Point], record_of: Callable[[Point, int, int], RunRecord | None]
) -> tuple[tuple[SearchStage, ...], tuple[Point, ...]]:
    """Returns the finished stages of a search along tasks, and the points that the open one trains; () at its end.

    points: all that were tried; record_of: the record of a point and a unit with so many further tasks. A stage has a
    task more than the one before, and the values of it that may be better than its choice by more than `INDIFFERENCE`.
    """
    from results.statistics.extrapolation import INDIFFERENCE

    stages, left, evaluated = list[SearchStage](), tuple(points), study.tasks - study.cv_tasks
    for more in range(study.further_tasks + 1):
        members = tuple(tuple(record_of(point, unit, more) for unit in study.units) for point in left)
        if any(record is None for row in members for record in row):
            return tuple(stages), left
        model = predict(study.space, left, members, evaluated)
        if model is None:
            break
        choice, ahead = left[model.choice], -model.behind_low
        rivals = tuple(point for point, by in zip(left, ahead, strict=True) if by > INDIFFERENCE and point != choice)
        mean, low, high = (float(end[model.choice]) for end in (model.mean, model.low, model.high))
        stages.append(SearchStage(study.cv_tasks + more, left, choice, (mean, low, high), rivals))
        if not rivals:
            break
        left = tuple(point for point in left if point == choice or point in rivals)
    return tuple(stages), ()
