"""What a search on k tasks says about T > k tasks: a model of its accuracy matrices a[k, j].

On the scale of the logarithm, on which what is lost is a share of what is left, a member's accuracies are

    log a[k, j] = l − [n > 0] (b + c h(n)) + task(j) + step(k) + noise,   n = k − j,   h(n) = (n^p − 1)/p.

l: accuracy when a task was learned; b: what the first task afterwards takes; c and p: what later ones take. Tasks
differ in difficulty, a step moves all earlier tasks alike, and what was learned last has more noise; in fixed ratios of
these, generalized least squares (Aitken 1935) is one product with the same matrix for every member. Of p three tasks
say nothing: it has a prior, and a posterior from what all values have in common.

Each coefficient is a Gaussian process over the values, its size, length and warp weighted by restricted likelihood
(Rasmussen & Williams 2006, §2.7, §5.4), with a free effect of every seed: seeds are the units. Intervals have the noise
between seeds, p, and the error of the model itself, as large as it was on stored streams (docs/along.md). Where all
seeds share their tasks, as splits of classes do, those to come are others: the level then has their spread, too.

No protocol of the literature extrapolates over the number of tasks.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.special import ndtri

from results.statistics.gaussian_process import Axis, Process, Shape, in_one_thread
from results.statistics.paired import student_quantile

POWERS, POWER, POWER_SPREAD = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0), 0.6, 0.5
"""p that are tried, mean and standard deviation of its prior. 0 is the logarithm; below it the loss has an end."""

STEP, TASK, LEARNED = 0.3, 1.0, 10.0
"""Variance of steps, of tasks, and of what was learned last, beside that of the noise."""

KINDS, LENGTHS, STRETCHES = ("smooth", "kinked"), (0.1, 0.3, 0.6, 1.3), (0.0, 0.1, 0.03)
"""Processes over the values that are tried: kind, length in widths of the axis, end near 0 that is stretched."""

RATIOS = (0.0, 0.3, 1.0, 4.0, 16.0, 64.0, 1e3, 1e6)
"""Variances of a process that are tried, in that of the noise between seeds."""

OWN_ERROR, APART_ERROR = 0.5, 0.6
"""Standard deviation of the model's own error of a value, and of a difference, as a share of the loss, and of the
difference of losses, that it predicts from k to T tasks."""

LEAST_ERROR = 0.008
"""What no such deviation is below, accuracy, times (T − k)/k: where little was lost by k tasks, more may be later."""

FLOOR = 0.005
"""Lower accuracies count as this one, whose logarithm there is."""

FEWEST_TASKS = 3
"""With two tasks nothing tells what the first task afterwards takes from what later ones take."""

INDIFFERENCE = 0.01
"""A difference of accuracies that does not matter, as in docs/along.md: a search need not go on for it."""

MOST_VALUES = 100
"""Values of a fit, which takes the cube of their number; of more, neighbours count as one."""

LEVEL = 0.95


@dataclass(frozen=True)
class Extrapolation:
    """Predicted A_T [K] of every value, NaN where a member diverged, and what is known of the differences."""

    mean: np.ndarray
    """[K] expected accuracy after T tasks, in the mean over seeds."""
    low: np.ndarray
    """[K] lower end of its 95 % interval, at least 0; 0 with one seed, which says nothing about others."""
    high: np.ndarray
    """[K] upper end, at most 1."""
    seen: np.ndarray
    """[K] A_k as the model has it, without its noise."""
    choice: int
    """The value with the highest mean."""
    behind_low: np.ndarray
    """[K] lower end of the 95 % interval of A_T at the choice minus A_T; 0 at the choice."""
    behind_high: np.ndarray
    """[K] upper end."""

    def resolved(self, indifference: float = 0.0) -> bool:
        """Returns whether no value can be better than the choice by more than this, in the unit of accuracies."""
        return bool(np.nanmin(self.behind_low) >= -indifference)

    @classmethod
    def fit(cls, x: np.ndarray, accuracies: np.ndarray, tasks: int, present: np.ndarray | None = None) -> Self:
        """Returns the prediction for `tasks` tasks.

        x: [K, d] the values in the unit cube of their space, with a log axis logarithmic; accuracies: [K, S, k, k] in
        [0, 1], a[k, j] on task j after k, of every seed; only j ≤ k counts. present: [K, S], whether there is such a
        member; all without it. A value of which a member diverged (NaN) has no prediction and informs no other.
        Of more than `MOST_VALUES`, neighbours have one prediction, from the mean of their members of each seed.

        Raises ValueError for fewer than 3 tasks, fewer tasks than were seen, and where no value has a member.
        """
        k, present = accuracies.shape[-1], np.ones(accuracies.shape[:2], bool) if present is None else present
        if not FEWEST_TASKS <= k <= tasks:
            raise ValueError(f"seen tasks must lie in {FEWEST_TASKS}…{tasks}, got {k}")
        rows, columns = np.tril_indices(k)
        lower = np.log(np.maximum(accuracies[:, :, rows, columns], FLOOR))
        usable = present.any(axis=1) & ~(np.isnan(lower).any(axis=2) & present).any(axis=1)
        if not usable.any():
            raise ValueError("no value has members that did not diverge")
        seeds = present[usable].any(axis=0)
        lower, present, x = lower[usable][:, seeds], present[usable][:, seeds], np.asarray(x, float)[usable]
        group, last = _groups(x), np.nanmean(np.where(present, lower[:, :, -k:].mean(axis=2), np.nan), axis=1)
        mean, measured, covariance, level = _forecast(*_pool(group, x, lower, present), tasks)
        best, loss, normal = int(np.argmax(mean)), measured - mean, float(ndtri((1 + LEVEL) / 2))
        least = LEAST_ERROR * (tasks - k) / k
        errors, apart = np.hypot(OWN_ERROR * loss, least), np.hypot(APART_ERROR * (loss - loss[best]), least)
        learned = np.where(present[:, :, None], np.exp(lower[:, :, rows == columns]), np.nan)
        level = math.hypot(level, _of_tasks(np.nanmean(learned, axis=0), tasks))
        half = np.hypot(normal * np.sqrt(np.diag(covariance) + errors**2), level)
        wide = normal * np.sqrt(_of_differences(covariance, best) + apart**2) * (np.arange(len(mean)) != best)
        ahead = mean[best] - mean

        def everywhere(values: np.ndarray) -> np.ndarray:
            full = np.full(len(usable), np.nan)
            full[usable] = values[group]
            return full

        return cls(
            mean=everywhere(mean),
            low=everywhere(np.maximum(mean - half, 0.0)),
            high=everywhere(np.minimum(mean + half, 1.0)),
            seen=everywhere(measured),
            choice=int(np.flatnonzero(usable)[np.argmax(np.where(group == best, last, -np.inf))]),
            behind_low=everywhere(ahead - wide),
            behind_high=everywhere(ahead + wide),
        )


def _groups(x: np.ndarray) -> np.ndarray:
    """Returns the group [K] of each value: itself, or its cell of the cube [0, 1]^d where there are too many."""
    if len(x) <= MOST_VALUES:
        return np.arange(len(x))
    cells = max(2, int(MOST_VALUES ** (1 / x.shape[1])))
    cell = np.minimum((x * cells).astype(int), cells - 1)
    return np.asarray(np.unique(cell, axis=0, return_inverse=True)[1]).ravel()


def _pool(
    group: np.ndarray, x: np.ndarray, lower: np.ndarray, present: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns x [G, d], lower [G, S, N] and present [G, S] of groups: means over those of their values that are."""
    if len(x) == group.max() + 1:
        return x, lower, present
    membership = (group == np.arange(group.max() + 1)[:, None]).astype(float)
    counts = membership @ present
    sums = np.einsum("gv,vsn->gsn", membership, np.where(present[:, :, None], lower, 0.0))
    return membership @ x / membership.sum(axis=1)[:, None], sums / np.maximum(counts, 1)[:, :, None], counts > 0


def _of_differences(covariance: np.ndarray, best: int) -> np.ndarray:
    """Returns the variances [K] of the differences from one of them, 0 and above."""
    variances = np.diag(covariance) + covariance[best, best] - 2 * covariance[best]
    return np.asarray(np.maximum(variances, 0.0))


@in_one_thread
def _forecast(
    x: np.ndarray, lower: np.ndarray, present: np.ndarray, tasks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Returns the mean over p: A_T [K], A_k [K], covariance [K, K] of A_T, and what is common to all values of a seed.

    x: [K, d] the values; lower: [K, S, N] log a[k, j], j ≤ k, row by row; present: [K, S]. The covariance is by p and
    by the noise between members of a seed; the last, by the noise between seeds, is the half width of an interval.
    """
    k = math.isqrt(2 * lower.shape[2])  # N = k (k + 1)/2
    weights, means, seens, scores = _weights(lower, present, k), [], [], np.zeros(present.shape)
    every = np.concatenate([lower @ _estimator(k, power).T for power in POWERS], axis=2)
    smoothed = _smooth(x, every, present)
    for number, (power, weight) in enumerate(zip(POWERS, weights, strict=True)):
        part = slice(3 * number, 3 * number + 3)
        coefficients, smooth = every[:, :, part], smoothed[:, part]
        mean, slope = _accuracy(smooth, power, tasks)
        means.append(mean)
        seens.append(_accuracy(smooth, power, k)[0])
        # To first order, what each member says about A_T: its coefficients have their errors in common.
        scores += weight * (mean[:, None] + (slope[:, None] * (coefficients - smooth[:, None])).sum(axis=2))
    mean = weights @ np.array(means)
    by_power = np.array(means) - mean
    covariance, level = _noise(x, np.where(present, scores, np.nan))
    return mean, weights @ np.array(seens), covariance + (by_power.T * weights) @ by_power, level


def _noise(x: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns (covariance [K, K] of the mean of scores [K, S] over seeds, half width of the level)."""
    count, process = scores.shape[1], Process.fit(x, scores)  # which knows that neighbours of a seed are alike
    covariance = np.zeros((len(x), len(x))) if process is None else process.covariance(x)
    covariance = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    if count < 2:
        return covariance, math.inf
    effects = np.nanmean(scores - np.nanmean(scores, axis=1, keepdims=True), axis=0)
    return covariance, float(student_quantile((1 + LEVEL) / 2, count - 1) * effects.std(ddof=1) / math.sqrt(count))


def _of_tasks(learned: np.ndarray, tasks: int) -> float:
    """Returns the half width of the level because the tasks to come are others than those that were seen.

    learned: [S, k], accuracy when learned, mean over values. Its variance between tasks is what seeds have in common of
    it (a variance component of two crossed factors; Searle, Casella & McCulloch 1992, §4.4): about 0 where each seed
    draws tasks of its own, so that the noise between seeds has it already.
    """
    seeds, k = learned.shape
    if seeds < 2:  # which has no interval
        return 0.0
    of_task = learned.mean(axis=0)
    crossed = learned - of_task - learned.mean(axis=1, keepdims=True) + of_task.mean()
    noise = float(np.square(crossed).sum()) / ((seeds - 1) * (k - 1))
    variance = max(float(of_task.var(ddof=1)) - noise / seeds, 0.0)
    return float(student_quantile((1 + LEVEL) / 2, k - 1)) * math.sqrt(variance * (1 / k + 1 / tasks))


def _weights(lower: np.ndarray, present: np.ndarray, k: int) -> np.ndarray:
    """Returns the posterior probabilities of `POWERS`, from the mean over values of every seed."""
    log = -0.5 * np.square((np.array(POWERS) - POWER) / POWER_SPREAD)
    seeds = np.array([lower[present[:, seed], seed].mean(axis=0) for seed in range(present.shape[1])])
    free = len(seeds) * (seeds.shape[1] - 3)
    if k > FEWEST_TASKS:  # of three tasks any p fits as well
        squares = np.array([_misfit(seeds, k, power) for power in POWERS])
        log = log - 0.5 * free * np.log(np.maximum(squares, np.finfo(float).tiny))
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum())


def _misfit(lower: np.ndarray, k: int, power: float) -> float:
    """Returns the weighted sum of squares that a power leaves of log accuracies [S, N]."""
    design, root = _design(k, power), np.linalg.cholesky(_covariance(k))
    left = lower - lower @ _estimator(k, power).T @ design.T
    return float(np.square(np.linalg.solve(root, left.T)).sum())


@lru_cache(maxsize=256)
def _estimator(k: int, power: float) -> np.ndarray:
    """Returns [3, N]: its product with log accuracies [N], row by row, are the coefficients (l, b, c)."""
    design = _design(k, power)
    weighted = np.linalg.solve(_covariance(k), design)
    return np.asarray(np.linalg.solve(design.T @ weighted, weighted.T))


def _design(k: int, power: float) -> np.ndarray:
    """Returns [N, 3], what each log accuracy has of (l, b, c)."""
    rows, columns = np.tril_indices(k)
    return _by_age(rows - columns, power)


def _by_age(age: np.ndarray, power: float) -> np.ndarray:
    """Returns [n, 3], what tasks of these ages have of (l, b, c)."""
    later = np.maximum(age, 1.0)
    lost = np.log(later) if power == 0 else (later**power - 1) / power
    return np.stack([np.ones(len(age)), -1.0 * (age > 0), -lost], axis=1)


def _covariance(k: int) -> np.ndarray:
    """Returns [N, N], up to a factor."""
    rows, columns = np.tril_indices(k)
    old = rows > columns
    task = columns[:, None] == columns
    step = (rows[:, None] == rows) & old[:, None] & old
    return np.asarray(np.diag(1 + LEARNED * ~old) + TASK * task + STEP * step)


def _accuracy(coefficients: np.ndarray, power: float, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (A_T [K], its slope [K, 3]) for coefficients [K, 3] and T tasks."""
    parts = _by_age(np.arange(tasks), power)
    accuracies = np.exp(np.minimum(coefficients @ parts.T, 0.0))
    return accuracies.mean(axis=1), accuracies @ parts / tasks


def _smooth(x: np.ndarray, coefficients: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Returns [K, C] coefficients [K, S, C] of members as smooth functions of the value, in the mean over seeds.

    Every column has weights of the processes of its own. Unlike `Process` it has a level one among them: of three tasks
    all values may have the same rate as far as anyone can tell.
    """
    value, seed = np.nonzero(present)
    y, seeds, parts = coefficients[present], np.eye(present.shape[1])[seed], []
    counts, free = present.sum(axis=1), len(y) - seeds.shape[1]
    # Only the mean of a value's members says where its process is; what is left of them is the same for all processes.
    members = np.column_stack([seeds, y])
    means = np.eye(len(x))[value].T @ members / counts[:, None]
    inside, within = np.split(members - means[value], [seeds.shape[1]], axis=1)
    for ratio, correlation in _processes(x):
        near = ratio * correlation
        root = np.linalg.cholesky(near + np.diag(1 / counts))
        white = np.linalg.solve(root, np.column_stack([means, near]))
        one, two, three = np.split(white, [seeds.shape[1], members.shape[1]], axis=1)
        inner = inside.T @ inside + one.T @ one
        effects = np.linalg.solve(inner, inside.T @ within + one.T @ two)
        rest = two - one @ effects
        squares = np.square(rest).sum(axis=0) + np.square(within - inside @ effects).sum(axis=0)
        squares = np.maximum(squares, np.finfo(float).tiny)
        evidence = -np.log(np.diag(root)).sum() - np.linalg.slogdet(inner)[1] / 2 - free / 2 * np.log(squares)
        parts.append((evidence, effects.mean(axis=0) + three.T @ rest))
    evidence, means = (np.array(part) for part in zip(*parts, strict=True))
    weights = np.exp(evidence - evidence.max(axis=0))
    return np.asarray((weights[:, None] * means).sum(axis=0) / weights.sum(axis=0))


def _processes(x: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Returns (variance beside the noise, correlation [K, K]) of the processes over values x [K, d]; level first."""
    shapes = [
        Shape(kind, (Axis(length, stretch),) * x.shape[1])
        for kind in KINDS
        for length in LENGTHS
        for stretch in STRETCHES
    ]
    curved = [(ratio, shape.correlation(x, x)) for shape in shapes for ratio in RATIOS[1:]]
    return [(0.0, np.ones((len(x), len(x)))), *(curved if len(x) > 1 else [])]
