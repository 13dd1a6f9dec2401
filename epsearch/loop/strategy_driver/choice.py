"""The choice of a search: the top of a curve through all scores."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from results.inert import all_equal
from results.search import Choice
from results.statistics.confidence_set import best_interval
from results.statistics.curve import FEWEST_POINTS
from results.statistics.gaussian_process import SAME, Process
from results.statistics.outliers import outliers, without
from results.statistics.racing import adjusted_means
from search_spaces.curves.candidates import candidates, places, ticks
from search_spaces.space import Parameter, Point, Space

PASSES = 3
"""How often the ticks of each of several axes are looked through for the top."""


def choose(space: Space, points: Sequence[Point], scores: NDArray[np.float64]) -> Choice:
    """Returns the choice for points [K] of a space and their scores [K, R], NaN where there is none.

    The curve is the mean of a Gaussian process (`results.statistics.gaussian_process`); members that lie far off, which
    may have failed, do not count. Of one number, only values in the confidence set of the maximum are named, between
    the smallest and the largest that were tried. A point with a value that stands apart (ε = 0 is A-GEM, another
    formula) is no part of the curve; it is named where its mean is above the whole curve. Points outside of the space
    count as `tried` alone. Without a curve nothing is named, and `why` says so: for points without order, too few
    values or seeds, or scores that are all equal.
    """
    means = adjusted_means(scores)
    if np.isnan(means).all():
        return Choice(None, None, np.nan, "no value has a score")
    tried = points[int(np.nanargmax(means))]
    within = np.array([_within(space, point) for point in points])
    apart = [any(value in one.apart for one, value in zip(space.parameters, point, strict=True)) for point in points]
    usual = ~np.isnan(means) & ~np.array(apart) & within
    if why := _no_curve(space, points, scores, usual):
        return Choice(None, tried, np.nan, why)
    rows = np.flatnonzero(usual).tolist()
    known = [points[row] for row in rows]
    process = Process.fit(_at(space, known), without(scores[rows], outliers(scores[rows])))
    assert process is not None  # there are points enough
    top = _top(space, known, process, _open(space, points, np.where(within[:, None], scores, np.nan), apart))
    gain = float(process.mean(_at(space, [top]))[0] - process.mean(_at(space, [tried]))[0])
    others = [row for row in range(len(points)) if apart[row] and within[row] and not np.isnan(means[row])]
    best = max(others, key=lambda row: float(means[row]), default=None)
    if best is not None and means[best] > process.mean(_at(space, [top]))[0]:
        return Choice(points[best], tried, np.nan, "")
    return Choice(top, tried, np.nan if tried in {points[row] for row in others} else gain, "")


def _within(space: Space, point: Point) -> bool:
    """Returns whether a point lies in the space; an earlier search may have been wider."""
    return all(
        value in one.choices if one.choices else one.low <= value <= one.high  # type: ignore[operator]
        for one, value in zip(space.parameters, point, strict=True)
    )


def _no_curve(space: Space, points: Sequence[Point], scores: NDArray[np.float64], usual: NDArray[np.bool_]) -> str:
    """Returns why no curve can be fitted to the usual points; "" if one can."""
    if all(one.choices for one in space.parameters):
        return "choices have no order"
    if all_equal(scores):
        return "all scores are equal"
    fewest = FEWEST_POINTS * len(space.parameters)
    if usual.sum() < fewest:
        return f"fewer than {fewest} points on a curve have a score"
    if (~np.isnan(scores[usual])).any(axis=0).sum() < 2:
        return "one seed cannot tell noise from a curve"
    return ""


def _open(
    space: Space, points: Sequence[Point], scores: NDArray[np.float64], apart: Sequence[bool]
) -> tuple[float, float] | None:
    """Returns the ends of the confidence set on a single axis; None in other spaces."""
    (one, *others) = space.parameters
    if others or one.choices:
        return None
    at, axis = [one.coordinate(float(point[0])) for point in points], one.axis()
    order = np.argsort(at, kind="stable")
    maximum = best_interval(
        [at[row] for row in order],
        scores[order],
        axis.low,
        axis.high,
        apart=[place for place, row in enumerate(order) if apart[row]],
    )
    return maximum.low, maximum.high


def _top(space: Space, known: Sequence[Point], process: Process, ends: tuple[float, float] | None) -> Point:
    """Returns the point with the highest mean, of equal ones the first; tried points come first."""
    every = list(dict.fromkeys([*known, *candidates(space)]))
    if len(space.parameters) == 1:
        return _highest(space, process, _between(space.parameters[0], every, known, ends))
    best = _highest(space, process, every)
    for _ in range(PASSES):
        for axis, parameter in enumerate(space.parameters):
            line = [
                (*best[:axis], value, *best[axis + 1 :]) for value in ticks(parameter) if value not in parameter.apart
            ]
            best = _highest(space, process, [best, *line])
    return best


def _between(
    parameter: Parameter, points: Sequence[Point], known: Collection[Point], ends: tuple[float, float] | None
) -> list[Point]:
    """Returns the points within the ends and the tried values, else the nearest ones."""
    if ends is None:
        return list(points)
    at = [parameter.coordinate(float(point[0])) for point in known]
    low, high = max(ends[0], min(at)), min(ends[1], max(at))
    away = [max(low - place, place - high, 0.0) for place in (parameter.coordinate(float(one[0])) for one in points)]
    return [one for one, far in zip(points, away, strict=True) if far <= min(away)]


def _highest(space: Space, process: Process, points: Sequence[Point]) -> Point:
    return points[int(np.argmax(process.mean(_at(space, points)).round(SAME)))]


def _at(space: Space, points: Sequence[Point]) -> NDArray[np.float64]:
    return np.array(places(space, points), dtype=np.float64)
