"""Metrics as other papers and tools define them, by name, where they differ from `results.metrics`.

`a[..., k, j]` as there: the accuracy on task j after training task k, 0-based, a fraction in [0, 1]. Formulas count
from 1: R_kj is that accuracy, T the number of tasks. Every function takes [..., T, T] and returns [...], a fraction,
NaN where it is undefined; it raises ValueError for other shapes. Sources are files, with the month of their version.
"""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from results.metrics import PERCENT, TWO_TASKS, Metric, average_accuracy_curve, backward_transfer, task_count

__all__ = [
    "SHORT_NAMES",
    "VARIANTS",
    "accuracy_continuum",
    "average_incremental_accuracy",
    "bwt_continuum",
    "bwt_libcontinual",
    "forgetting_avalanche",
    "forgetting_continuum",
    "forgetting_libcontinual",
    "forgetting_mammoth",
    "forgetting_pycil",
    "fwt_continuum",
    "min_accuracy",
    "relative_forgetting_contilab",
    "short_name",
    "worst_case_accuracy",
]

Array = NDArray[np.float64]

THREE_TASKS = "a third task"


def average_incremental_accuracy(a: Array) -> Array:
    """Returns AIA = (1/T) Σ_k A_k, the mean of the average accuracy over the stream; in [0, 1], higher is better.

    Source: PyCIL, trainer.py, "Average Accuracy" (2025-03), and LUCIR, eval_cumul_acc.py (Hou et al. 2019), which weigh
    tasks by their test examples; LibContinual, core/trainer.py, "[Task] Overall Avg Acc" (2025-12), and contilab,
    `aia`, which weigh them equally, as here.

    >>> round(float(average_incremental_accuracy(np.array([[0.9, np.nan], [0.5, 0.7]]))), 3)
    0.75
    """
    return np.asarray(average_accuracy_curve(a).mean(axis=-1))


def accuracy_continuum(a: Array) -> Array:
    """Returns the mean of R_ij over all i >= j; in [0, 1], higher is better.

    Source: Continuum, continuum/metrics/metrics.py, `accuracy_A` (2023-05), after Díaz-Rodríguez et al. 2018
    (arXiv 1810.13166).

    >>> round(float(accuracy_continuum(np.array([[0.9, np.nan], [0.5, 0.7]]))), 3)
    0.7
    """
    tasks = task_count(a)
    return np.asarray(_lower(a, 0.0).sum(axis=(-2, -1)) / (tasks * (tasks + 1) / 2))


def bwt_continuum(a: Array) -> Array:
    """Returns the mean of R_ij − R_jj over all i > j; in [−1, 1], higher is better; NaN where T = 1.

    Source: Continuum, continuum/metrics/metrics.py, `backward_transfer` (2023-05; 0 where T = 1), after Díaz-Rodríguez
    et al. 2018 (arXiv 1810.13166).

    >>> rows = np.array([[0.9, np.nan, np.nan], [0.5, 0.7, np.nan], [0.6, 0.4, 0.8]])
    >>> round(float(bwt_continuum(rows)), 3)
    -0.333
    """
    return _backward(a, gap=1)


def bwt_libcontinual(a: Array) -> Array:
    """Returns Σ_{i>=3} Σ_{j<=i−2} (R_ij − R_jj) / (T(T−1)/2); in (−1, 1), higher is better; NaN where T < 3.

    The sum has (T−1)(T−2)/2 terms, fewer than its divisor, and leaves out the task before the newest.

    Source: LibContinual, core/utils/utils.py, `compute_bwt` (2025-12; 0 where T < 3).

    >>> rows = np.array([[0.9, np.nan, np.nan], [0.5, 0.7, np.nan], [0.6, 0.4, 0.8]])
    >>> round(float(bwt_libcontinual(rows)), 3)
    -0.1
    """
    return _backward(a, gap=2)


def forgetting_avalanche(a: Array) -> Array:
    """Returns the mean of R_jj − R_Tj over j < T, which is −BWT; in [−1, 1], lower is better; NaN where T = 1.

    Source: Avalanche, avalanche/evaluation/metrics/forgetting_bwt.py, `StreamForgetting` after the last task (2025-03).

    >>> round(float(forgetting_avalanche(np.array([[0.9, np.nan], [0.5, 0.7]]))), 3)
    0.4
    """
    return -backward_transfer(a)


def forgetting_continuum(a: Array) -> Array:
    """Returns the mean of max_{j<=l<T} R_lj − R_Tj over j < T; in [−1, 1], lower is better; NaN where T = 1.

    F_T also takes the maximum over tests of a task before its own training.

    Source: Continuum, continuum/metrics/metrics.py, `forgetting` (2023-05; 0 where T = 1), after Chaudhry et al. 2018,
    "Riemannian Walk"; contilab, `forgetting`.

    >>> round(float(forgetting_continuum(np.array([[0.9, np.nan], [0.95, 0.7]]))), 3)
    -0.05
    """
    return _mean(_best_before_last(a) - a[..., -1, :-1])


def forgetting_libcontinual(a: Array) -> Array:
    """Returns Σ_{j<=T−2} (R_jj − R_Tj) / (T−1); in (−1, 1), lower is better; NaN where T < 3.

    The sum has T−2 terms and leaves out the task before the newest. Its docstring has the other sign; this is its code.

    Source: LibContinual, core/utils/utils.py, `compute_frgt` (2025-12; 0 where T < 3).

    >>> rows = np.array([[0.9, np.nan, np.nan], [0.5, 0.7, np.nan], [0.6, 0.4, 0.8]])
    >>> round(float(forgetting_libcontinual(rows)), 3)
    0.15
    """
    tasks = task_count(a)
    if tasks < 3:
        return np.full(a.shape[:-2], np.nan)
    learned = np.diagonal(a, axis1=-2, axis2=-1)
    return np.asarray((learned[..., :-2] - a[..., -1, :-2]).sum(axis=-1) / (tasks - 1))


def forgetting_mammoth(a: Array) -> Array:
    """Returns the mean of max_l R_lj − R_Tj over j < T, the last row included; in [0, 1], lower is better.

    NaN where T = 1. A missing test counts as 0, which changes no maximum; the last row makes every term at least 0.

    Source: Mammoth, utils/metrics.py, `forgetting` (2026-05), whose rows have the next task before its training, too.

    >>> float(forgetting_mammoth(np.array([[0.9, np.nan], [0.95, 0.7]])))
    0.0
    """
    missing = np.isnan(a) & ~np.tri(task_count(a), dtype=bool)
    best = np.where(missing, 0.0, a).max(axis=-2)
    return _mean((best - a[..., -1, :])[..., :-1])


def forgetting_pycil(a: Array) -> Array:
    """Returns the mean of max_{l>=j} R_lj − R_Tj over j < T, the last row included; in [0, 1], lower is better.

    NaN where T = 1. As Mammoth's, but without tests of a task before its training.

    Source: PyCIL, trainer.py, "Forgetting" (2025-03), which prints the matrix transposed.

    >>> float(forgetting_pycil(np.array([[0.9, 0.8], [0.6, 0.7]]))), float(forgetting_pycil(np.eye(1)))
    (0.30000000000000004, nan)
    """
    return _mean((_lower(a, 0.0).max(axis=-2) - a[..., -1, :])[..., :-1])


def relative_forgetting_contilab(a: Array) -> Array:
    """Returns the mean of f_j / m_j over j < T, where m_j = max_{j<=l<T} R_lj and f_j = m_j − R_Tj; lower is better.

    At most 1, without a lower bound; NaN where T = 1 or an m_j is 0.

    Source: contilab, page "Metrics" of its wiki (2026-10). It does not name the rows of m_j: those of f_j are taken.

    >>> round(float(relative_forgetting_contilab(np.array([[0.8, np.nan], [0.6, 0.7]]))), 3)
    0.25
    """
    best = _best_before_last(a)
    return _mean(1.0 - np.divide(a[..., -1, :-1], best, out=np.full(best.shape, np.nan), where=best > 0))


def fwt_continuum(a: Array) -> Array:
    """Returns the mean of R_(j−1)j over j > 1; in [0, 1], higher is better; NaN where T = 1.

    The accuracy of the untrained network is not subtracted.

    Source: Continuum, continuum/metrics/metrics.py, `forward_transfer` (2023-05; 0 where T = 1).

    >>> float(fwt_continuum(np.array([[0.9, 0.15], [0.5, 0.7]])))
    0.15
    """
    task_count(a)
    return _mean(np.diagonal(a, offset=1, axis1=-2, axis2=-1))


def min_accuracy(a: Array) -> Array:
    """Returns min-ACC, the mean of min_{k>j} R_kj over j < T; in [0, 1], higher is better; NaN where T = 1.

    The paper tests after every step. Tests at the ends of tasks miss drops between them: the value is an upper bound.

    Source: De Lange et al. 2023 (arXiv 2205.13452); ContinualEvaluation, src/eval/continual_eval_metrics.py,
    `TaskTrackingMINAccuracyPluginMetric` (2023-04).

    >>> rows = np.array([[0.9, np.nan, np.nan], [0.5, 0.7, np.nan], [0.6, 0.4, 0.8]])
    >>> round(float(min_accuracy(rows)), 3)
    0.45
    """
    return _mean(_lowest_since(a))


def worst_case_accuracy(a: Array) -> Array:
    """Returns WC-ACC = R_TT/T + (1 − 1/T)·min-ACC, with `min_accuracy`; in [0, 1], higher is better; R_11 where T = 1.

    Source: De Lange et al. 2023 (arXiv 2205.13452); ContinualEvaluation, src/eval/continual_eval_metrics.py,
    `WCACCPluginMetric` (2023-04).

    >>> rows = np.array([[0.9, np.nan, np.nan], [0.5, 0.7, np.nan], [0.6, 0.4, 0.8]])
    >>> round(float(worst_case_accuracy(rows)), 3)
    0.567
    """
    return np.asarray((a[..., -1, -1] + _lowest_since(a).sum(axis=-1)) / task_count(a))


def _lower(a: Array, other: float, below: int = 0) -> Array:
    """Returns the matrix with another value above its diagonal, or above the one so many rows below it."""
    return np.where(np.tri(task_count(a), k=-below, dtype=bool), a, other)


def _best_before_last(a: Array) -> Array:
    """Returns max_{j<=l<T} R_lj of every j < T. [..., T, T] -> [..., T − 1]."""
    # Zeros change no maximum; the initial value is for T = 1.
    return np.asarray(_lower(a, 0.0)[..., :-1, :-1].max(axis=-2, initial=0.0))


def _lowest_since(a: Array) -> Array:
    """Returns min_{k>j} R_kj of every j < T. [..., T, T] -> [..., T − 1]."""
    return np.asarray(_lower(a, 1.0, below=1).min(axis=-2)[..., :-1])


def _backward(a: Array, gap: int) -> Array:
    """Returns Σ (R_ij − R_jj) over i >= j + gap, divided by T(T−1)/2; NaN where there is no such i."""
    tasks = task_count(a)
    if tasks <= gap:
        return np.full(a.shape[:-2], np.nan)
    learned = np.diagonal(a, axis1=-2, axis2=-1)[..., None, :]
    return np.asarray(_lower(a - learned, 0.0, below=gap).sum(axis=(-2, -1)) / (tasks * (tasks - 1) / 2))


def _mean(terms: Array) -> Array:
    """Returns the mean over the last axis; NaN where it is empty, without NumPy's warning."""
    return np.asarray(terms.mean(axis=-1)) if terms.shape[-1] else np.full(terms.shape[:-1], np.nan)


def _variant(function: Callable[[Array], Array], needs: str = "", lower_is_better: bool = False) -> Metric:
    """Returns the declaration of a function of the accuracy matrix, in percent."""
    return Metric(lambda run: function(run.accuracies), 2, PERCENT, needs=needs, lower_is_better=lower_is_better)


VARIANTS: dict[str, Metric] = {
    "AIA": _variant(average_incremental_accuracy),
    "Accuracy (Continuum)": _variant(accuracy_continuum),
    "BWT (Continuum)": _variant(bwt_continuum, TWO_TASKS),
    "BWT (LibContinual)": _variant(bwt_libcontinual, THREE_TASKS),
    "FWT (Continuum)": _variant(fwt_continuum, TWO_TASKS),
    "Forgetting (Avalanche)": _variant(forgetting_avalanche, TWO_TASKS, lower_is_better=True),
    "Forgetting (Continuum)": _variant(forgetting_continuum, TWO_TASKS, lower_is_better=True),
    "Forgetting (LibContinual)": _variant(forgetting_libcontinual, THREE_TASKS, lower_is_better=True),
    "Forgetting (Mammoth)": _variant(forgetting_mammoth, TWO_TASKS, lower_is_better=True),
    "Forgetting (PyCIL)": _variant(forgetting_pycil, TWO_TASKS, lower_is_better=True),
    "Relative forgetting (contilab)": _variant(relative_forgetting_contilab, TWO_TASKS, lower_is_better=True),
    "min-ACC (task ends)": _variant(min_accuracy, TWO_TASKS),
    "WC-ACC (task ends)": _variant(worst_case_accuracy),
}
"""The metrics by their titles in tables."""


def short_name(title: str) -> str:
    """Returns the name of a metric for command lines: its words in lower case, with hyphens between.

    >>> short_name("BWT (LibContinual)"), short_name("AIA")
    ('bwt-libcontinual', 'aia')
    """
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


SHORT_NAMES = {short_name(title): title for title in VARIANTS}
"""Name for command lines -> title."""
