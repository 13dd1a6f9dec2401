"""The objective of a search: a number of each accuracy matrix.

A_T unless a study says otherwise. Worst task and anytime accuracy: De Lange et al. 2023, "Continual evaluation for
lifelong learning" (minimum and average over time, here over tasks after the last one, and of A_k over k). WC-ACC and
min-ACC, of the same paper, need tests inside tasks: see `continual_evaluation`.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from results.continual_evaluation import lowest_accuracy, worst_case_accuracy
from results.labels import A_T, ANYTIME, MIXED, OF_POINTS, WORST
from results.ledger.record import RunRecord
from results.metrics import METRICS, PERCENT, Metric, average_accuracy, average_accuracy_curve, forgetting

Score = Callable[[NDArray[np.float64]], float]

PLUGGED: dict[str, Score] = {}
"""Plug-in functions in this process: maps module:attribute to a function of accuracies [T, T] in [0, 1], NaN where not
measured."""


def score(name: str, accuracies: NDArray[np.float64], inside: NDArray[np.float64] | None = None) -> float:
    """Returns a run's objective for accuracies [T, T]; a fraction if it is built in.

    inside: as `RunRecord.inside`; without it an objective of points is NaN. Raises KeyError where
    it is a plug-in function that is not loaded.

    >>> a = np.array([[0.9, np.nan], [0.5, 0.7]])
    >>> [round(score(one, a), 3) for one in ("A_T", "A_T-0.5F_T", "worst-task", "anytime")]
    [0.6, 0.4, 0.5, 0.75]
    """
    if name in OF_POINTS:
        return math.nan if inside is None else POINTS[name](inside)
    return float(_function(name)(accuracies))


def metric(name: str) -> Metric:
    """Returns the metric that tables show, in percent."""
    if name == A_T:
        return METRICS[A_T]
    return Metric(lambda run: np.asarray(score(name, run.accuracies, run.inside)), METRICS[A_T].digits, PERCENT)


def of_record(name: str, record: RunRecord) -> float:
    """Returns the number of a run; NaN for one that diverged."""
    return score(name, record.accuracies, record.inside) if record.status == "ok" else math.nan


def _function(name: str) -> Score:
    if (mixed := MIXED.fullmatch(name)) is not None:
        return partial(_mixed, float(mixed[1]))
    return OURS[name] if name in OURS else PLUGGED[name]


def _mixed(weight: float, accuracies: NDArray[np.float64]) -> float:
    """A_T − λ·F_T; with one task there is nothing to forget."""
    lost = 0.0 if accuracies.shape[-1] == 1 else float(forgetting(accuracies))
    return float(average_accuracy(accuracies)) - weight * lost


OURS: dict[str, Score] = {
    A_T: lambda a: float(average_accuracy(a)),
    WORST: lambda a: float(a[-1].min()),
    ANYTIME: lambda a: float(average_accuracy_curve(a).mean()),
}

POINTS: dict[str, Score] = dict(zip(OF_POINTS, (worst_case_accuracy, lowest_accuracy), strict=True))
"""Those of tests inside tasks: functions of points [P, 2 + T]."""
