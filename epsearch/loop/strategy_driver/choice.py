"""The choice of a search: the top of a curve through all scores."""

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from results.inert import all_equal
from results.search import Choice
from results.statistics.confidence_set import eligible, fit_curve, not_below
from results.statistics.curve import FEWEST_POINTS
from results.statistics.gaussian_process import SAME, Process
from results.statistics.racing import adjusted_means
from search_spaces.curves.candidates import candidates, places, ticks
from search_spaces.space import Point, Space

PASSES = 3
"""How often the ticks of each of several axes are looked through for the top."""


def choose(space: Space, points: Sequence[Point], scores: NDArray[np.float64]) -> Choice:
    """Returns the choice for points [K] of a space and their scores [K, R], NaN where there is none.

    The curve is the mean of a Gaussian process (`confidence_set.fit_curve`), which the report draws, too. Of one
    number, only values between the smallest and the largest tried ones are named, and none that paired tests put below
    the best tried one (`confidence_set.eligible`). A point with a value that stands apart (ε = 0 is A-GEM, another
    formula) is no part of the curve; it is named where its mean is above that of the curve's choice. Points outside of
    the space count as `tried` alone. Without a curve nothing is named, and `why` says so: for points without order, too
    few values or seeds, or scores that are all equal.
    """
    means = adjusted_means(scores)
    if np.isnan(means).all():
        return Choice(None, None, "no value has a score")
    tried = points[int(np.nanargmax(means))]
    within = np.array([_within(space, point) for point in points])
    apart = [
        any(value in parameter.apart for parameter, value in zip(space.parameters, point, strict=True))
        for point in points
    ]
    usual = ~np.isnan(means) & ~np.array(apart) & within
    if why := _no_curve(space, scores, usual):
        return Choice(None, tried, why)
    rows = np.flatnonzero(usual).tolist()
    known = [points[row] for row in rows]
    process = fit_curve(_at(space, known), scores[rows])
    assert process is not None  # there are points enough
    summit, top = _tops(space, known, process, not_below(np.where(within[:, None], scores, np.nan))[rows])
    others = [row for row in range(len(points)) if apart[row] and within[row] and not np.isnan(means[row])]
    best = max(others, key=lambda row: float(means[row]), default=None)
    if best is not None and means[best] > process.mean(_at(space, [top]))[0]:
        return Choice(points[best], tried, "")
    return Choice(top, tried, "", None if top == summit else summit)


def _within(space: Space, point: Point) -> bool:
    """Returns whether a point lies in the space; an earlier search may have been wider."""
    return all(
        value in parameter.choices if parameter.choices else parameter.low <= value <= parameter.high  # type: ignore[operator]
        for parameter, value in zip(space.parameters, point, strict=True)
    )


def _no_curve(space: Space, scores: NDArray[np.float64], usual: NDArray[np.bool_]) -> str:
    """Returns why no curve can be fitted to the usual points; "" if one can."""
    if all(parameter.choices for parameter in space.parameters):
        return "choices have no order"
    if all_equal(scores):
        return "all scores are equal"
    fewest = FEWEST_POINTS * len(space.parameters)
    if usual.sum() < fewest:
        return f"fewer than {fewest} points on a curve have a score"
    if (~np.isnan(scores[usual])).any(axis=0).sum() < 2:
        return "one seed cannot tell noise from a curve"
    return ""


def _tops(space: Space, known: Sequence[Point], process: Process, open_rows: NDArray[np.bool_]) -> tuple[Point, Point]:
    """Returns the points where the curve is highest among all, and among those that may be named.

    Of equal ones the first; tried points come first. open_rows: tried points that no paired test puts below the best.
    """
    every = list(dict.fromkeys([*known, *candidates(space)]))
    if len(space.parameters) == 1:
        tried = np.array([float(point[0]) for point in known])
        # The curve is not extrapolated.
        every = [point for point in every if tried.min() <= float(point[0]) <= tried.max()]
        order = np.argsort(tried)
        named = eligible(tried[order], open_rows[order], np.array([float(point[0]) for point in every]))
        return _highest(space, process, every), _highest(space, process, list(compress(every, named)))
    best = _highest(space, process, every)
    for _ in range(PASSES):
        for axis, parameter in enumerate(space.parameters):
            line = [
                (*best[:axis], value, *best[axis + 1 :]) for value in ticks(parameter) if value not in parameter.apart
            ]
            best = _highest(space, process, [best, *line])
    return best, best


def _highest(space: Space, process: Process, points: Sequence[Point]) -> Point:
    return points[int(np.argmax(process.mean(_at(space, points)).round(SAME)))]


def _at(space: Space, points: Sequence[Point]) -> NDArray[np.float64]:
    return np.array(places(space, points), dtype=np.float64)
