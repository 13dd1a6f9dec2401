"""Metrics of tests inside tasks, which runs have with `--measure-every`.

`points` [P, 2 + T] as `RunRecord.inside`: the task that is trained, 0-based, steps taken in it, then the accuracy on
part of the test set of each task, a fraction. Source of the first three: De Lange et al. 2023, "Continual evaluation
for lifelong learning: identifying the stability gap" (arXiv 2205.13452); ContinualEvaluation,
src/eval/continual_eval_metrics.py (2023-04), which measures after every step. Every function returns a fraction, but
`gap_length` steps; NaN without points, or without a second task where it needs one.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from results.metric_variants import VARIANTS, short_name
from results.metrics import PERCENT, Metric

__all__ = [
    "BY_NAME",
    "INSIDE_METRICS",
    "OPTIONAL",
    "gap_depth",
    "gap_length",
    "lowest_accuracy",
    "windowed_forgetting",
    "worst_case_accuracy",
]

Array = NDArray[np.float64]

NEEDS = "tests inside tasks (--measure-every)"
EARLIER = f"{NEEDS}, and a second task"


def lowest_accuracy(points: Array) -> float:
    """Returns min-ACC: the mean over tasks but the last of the lowest accuracy at any point after the task's end.

    >>> rows = np.array([[0, 2, 0.9, np.nan], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8]])
    >>> lowest_accuracy(rows)
    0.4
    """
    lowest = [points[points[:, 0] > j, 2 + j].min(initial=math.inf) for j in range(_tasks(points) - 1)]
    return _mean(lowest) if np.isfinite(lowest).all() else math.nan


def worst_case_accuracy(points: Array) -> float:
    """Returns WC-ACC = A(T)/T + (1 − 1/T)·min-ACC, with A(T) the last point on the last task; A(1) where T = 1.

    >>> rows = np.array([[0, 2, 0.9, np.nan], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8]])
    >>> round(worst_case_accuracy(rows), 3)
    0.6
    """
    if not len(points):
        return math.nan
    share = 1 / _tasks(points)
    earlier = lowest_accuracy(points) if share < 1 else 0.0
    return float(share * points[-1, -1] + (1 - share) * earlier)


def windowed_forgetting(points: Array, window: int, worst: bool = False) -> float:
    """Returns WF: the largest drop of a task's accuracy within `window` consecutive points, the mean over tasks.

    worst: the largest of them instead. The paper's windows of 10 and 100 points are steps; here a window spans as many
    distances of `--measure-every`. A task counts from its own first step on; a task that never drops has 0.

    >>> rows = np.array([[0, 1, 0.9, np.nan], [0, 2, 0.8, np.nan], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8]])
    >>> round(windowed_forgetting(rows, 2), 3), round(windowed_forgetting(rows, 3, worst=True), 3)
    (0.2, 0.5)
    """
    drops = []
    for task in range(_tasks(points) if len(points) else 0):
        curve = points[points[:, 0] >= task, 2 + task]
        later = [curve[: len(curve) - gap] - curve[gap:] for gap in range(1, min(window, len(curve)))]
        drops.append(max(0.0, *(float(differences.max()) for differences in later)) if later else 0.0)
    return max(drops, default=math.nan) if worst else _mean(drops)


def gap_depth(points: Array) -> float:
    """Returns the depth of the stability gap, the mean over task switches and the tasks before them.

    Of a task: its accuracy at the last point before the switch, minus its lowest one within the next task; negative
    where it only rises. After De Lange et al. 2023, section 4, which show the gap without a number; the number is ours.

    >>> rows = np.array([[0, 2, 0.9, np.nan], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8]])
    >>> gap_depth(rows)
    0.5
    """
    return _mean([before - float(curve.min()) for before, curve, _ in _switches(points)])


def gap_length(points: Array) -> float:
    """Returns the length of the stability gap in steps, the mean over task switches and the tasks before them.

    Of a task: steps of the next task until its accuracy, after its lowest point there, is again that of the next task's
    last point; 0 where it does not fall below its accuracy before the switch. What is not recovered by then is
    forgetting, not a gap. Our definition, see `gap_depth`; its resolution is the distance of points.

    >>> rows = np.array([[0, 2, 0.9, np.nan], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8], [1, 3, 0.6, 0.8]])
    >>> gap_length(rows)
    2.0
    """
    lengths = []
    for before, curve, steps in _switches(points):
        lowest = int(curve.argmin())
        recovered = lowest + int(np.argmax(curve[lowest:] >= curve[-1]))
        lengths.append(float(steps[recovered]) if curve[lowest] < before else 0.0)
    return _mean(lengths)


def _switches(points: Array) -> list[tuple[float, Array, Array]]:
    """Returns, of each task switch and each task before it: (accuracy before, [p] after it in the next task, steps)."""
    switches = []
    for task in range(1, _tasks(points)):
        before, after = points[points[:, 0] == task - 1], points[points[:, 0] == task]
        if len(before) and len(after):
            switches += [(float(before[-1, 2 + j]), after[:, 2 + j], after[:, 1]) for j in range(task)]
    return switches


def _tasks(points: Array) -> int:
    return int(points.shape[1]) - 2


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _metric(
    measure: Callable[[Array], float], needs: str, lower_is_better: bool = False, steps: bool = False
) -> Metric:
    """Returns the declaration of a function of points, in percent or in steps."""
    return Metric(
        lambda run: np.asarray(math.nan if run.inside is None else measure(run.inside)),
        1 if steps else 2,
        "" if steps else PERCENT,
        needs=needs,
        lower_is_better=lower_is_better,
    )


INSIDE_METRICS: dict[str, Metric] = {
    "min-ACC": _metric(lowest_accuracy, EARLIER),
    "WC-ACC": _metric(worst_case_accuracy, NEEDS),
    "WF (10 points)": _metric(lambda points: windowed_forgetting(points, 10), NEEDS, lower_is_better=True),
    "WF (100 points)": _metric(lambda points: windowed_forgetting(points, 100), NEEDS, lower_is_better=True),
    "WF (10 points, worst task)": _metric(lambda points: windowed_forgetting(points, 10, True), NEEDS, True),
    "Stability gap, depth": _metric(gap_depth, EARLIER, lower_is_better=True),
    "Stability gap, length": _metric(gap_length, EARLIER, lower_is_better=True, steps=True),
}
"""The metrics by their titles in tables."""

OPTIONAL = VARIANTS | INSIDE_METRICS
"""All metrics that a study may add, by title."""
BY_NAME = {short_name(title): title for title in OPTIONAL}
"""Name for command lines -> title."""
