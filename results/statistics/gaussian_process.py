"""A Gaussian process over the tried points, with seed effects.

score[k, s] = u_s + f(x_k) + noise. The effects u_s of the seeds are free, so that only differences within a seed count,
and f has no level of its own. f ~ GP(0, a²·exp(−½ Σ ((x − x′)/ℓ)²)) (Rasmussen & Williams 2006, ch. 2 and 5). The
variance of the noise is that of the two-way analysis of variance; amplitude and length scales are those of a fixed grid
with the highest restricted likelihood, and no optimiser's, so that the same scores give the same curve everywhere.

The time grows as the cube of the number of places. Of many points those that lie close together share one f.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from results.statistics.anova import residuals
from results.statistics.paired import SEED
from results.statistics.racing import adjusted_means

LENGTHS = tuple(float(f"{0.05 * 2 ** (step / 2):.6g}") for step in range(11))
"""Length scales that are tried, in widths of the axis: 0.05 … 1.6."""

AMPLITUDES = tuple(float(2**step) for step in range(-3, 7))
"""Amplitudes that are tried, in standard deviations of the points' means."""

NOISES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of the noise that are tried where the scores do not tell it, in the same unit."""

LEAST_NOISE = 1e-4
"""The same for the smallest noise: without any, the curve would have to go through rounding errors."""

PASSES = 3
"""How often the length scales of several axes are tried in turn, at most."""

MANY = 512
"""Points from which on those in one cell of a grid share their place; no more than so many cells have points."""

FINER = 1.1
"""Ratio of the sides of the grids that are tried."""

JITTER = 1e-10
"""Added to the diagonal of the correlations, so that points close together do not make them singular."""

ROUNDED = 1e-12
"""Information in a direction of f, beside the largest, that is nothing but rounding."""

SAME = 9
"""Decimals in which two expected scores are the same: processors differ in the last bits, and the first is taken."""

DRAWS = 128
"""Joint draws of what a batch may show, by which its points are chosen; the same ones every time."""

WORTH_DRAWS = 8192
"""The same for the gain of the whole batch, which decides about another one."""


@dataclass(frozen=True)
class Process:
    """The posterior of f. Axes are [0, 1] wide; f and its noise are in units of the score."""

    x: np.ndarray
    """[K, d] the tried points; of more than `MANY`, the places [G, d] of their groups. G is K below."""
    amplitude: float
    """a: standard deviation of f."""
    lengths: tuple[float, ...]
    """[d] ℓ of each axis."""
    noise: float
    """Standard deviation of a single score."""
    level: float
    """What is to be added to f, so that it is the mean score of a point with every seed."""
    weights: np.ndarray
    """[K] α: the mean of f at x* is k(x*, x)·α."""
    root: np.ndarray
    """[K, K] L: LLᵀ is the correlation of the places, in directions of f that the scores make independent."""
    variances: np.ndarray
    """[K] the variance of f in these directions, given the scores."""

    @classmethod
    def fit(cls, x: np.ndarray, scores: np.ndarray) -> Self | None:
        """Returns the process for x [K, d] and scores [K, R], NaN where there is none; None below two points with one.

        Where no degree of freedom is left for the noise, as with one seed, it is of a grid, too, like the amplitude.
        """
        rows = ~np.isnan(scores).all(axis=1)
        x, scores = x[rows], scores[rows]
        if len(x) < 2:
            return None
        spread, found = float(np.nanstd(adjusted_means(scores))) or 1.0, residuals(scores)
        known = found.spare > 0
        noises = [math.sqrt(found.pure / found.spare) / spread] if known else NOISES
        fits = [_best(_data(x, scores, spread * max(noise, LEAST_NOISE)), spread) for noise in noises]
        data, (_, amplitude, lengths) = max(fits, key=lambda fit: fit[1][0] + fit[0].evidence)
        return cls._of(data, amplitude, lengths, scores)

    @classmethod
    def with_hyperparameters(
        cls, x: np.ndarray, scores: np.ndarray, amplitude: float, lengths: tuple[float, ...], noise: float
    ) -> Self:
        """Returns it with these hyperparameters; every point must have a score."""
        return cls._of(_data(x, scores, noise), amplitude, lengths, scores)

    @classmethod
    def _of(cls, data: "_Data", amplitude: float, lengths: tuple[float, ...], scores: np.ndarray) -> Self:
        root, values, total = _diagonalised(data, lengths)
        kept = amplitude**2 / (1 + amplitude**2 * values)
        mean = root @ (kept * total)  # of f at the places
        weights = data.total - data.precision @ mean
        level = float(np.nanmean(adjusted_means(scores) - mean[data.place]))
        # Of the level the scores tell nothing, which is 0 but for rounding.
        informed = np.where(values > ROUNDED * values.max(), values, 0.0)
        variances = amplitude**2 / (1 + amplitude**2 * informed)
        return cls(data.x, amplitude, lengths, data.noise, level, weights, root, variances)

    def mean(self, at: np.ndarray) -> np.ndarray:
        """Returns the expected score [C] of points [C, d], in the mean over all seeds."""
        return np.asarray(self.level + self.amplitude**2 * _correlation(at, self.x, self.lengths) @ self.weights)

    def covariance(self, at: np.ndarray) -> np.ndarray:
        """Returns the covariance [C, C] of f at [C, d], given the scores."""
        # From the directions, not as a difference of large numbers: of f's level the scores tell nothing.
        near = np.linalg.solve(self.root, _correlation(self.x, at, self.lengths))
        free = _correlation(at, at, self.lengths) - near.T @ near
        return np.asarray(self.amplitude**2 * free + (near.T * self.variances) @ near)

    def batch(self, at: np.ndarray, fresh: np.ndarray, count: int, seeds: int) -> tuple[list[int], float]:
        """Returns the rows of `at` [C, d] to try next, and by how much the top of the mean is then expected to rise.

        The knowledge gradient of a batch (Wu & Frazier 2016): E[max μ′] − max μ, where μ′ is the mean over `at` once
        the batch is known. Only differences from the present top are drawn: the level of f, which the seeds' effects
        leave free, changes no top, and so no outcome is worth less than 0. The batch is chosen one point at a time,
        each with the others' outcomes drawn jointly, from the same draws every time. fresh: bool [C], the rows that may
        be chosen; count: points of the batch, or fewer where no more are fresh; seeds: scores that each of them will
        have.
        """
        mean, covariance = self.mean(at), self._outcomes(at, seeds)
        top, noise = int(np.argmax(mean.round(SAME))), self.noise**2 / seeds
        gaps, rows, left = np.repeat((mean - mean[top])[:, None], DRAWS, axis=1), list[int](), fresh.copy()
        chosen = list[np.ndarray]()
        for normal in _normals(count, DRAWS)[: int(fresh.sum())]:
            open_rows = np.flatnonzero(left)
            spreads = covariance[:, open_rows] / np.sqrt(np.maximum(np.diag(covariance)[open_rows], 0.0) + noise)
            above = spreads - spreads[top]
            worth = np.array([(gaps + one[:, None] * normal).max(axis=0).mean() for one in above.T])
            best = int(np.argmax(worth.round(SAME)))
            rows.append(int(open_rows[best]))
            left[rows[-1]] = False
            gaps += above[:, best, None] * normal
            chosen.append(above[:, best])
            covariance = covariance - np.outer(spreads[:, best], spreads[:, best])
        if not rows:
            return [], 0.0
        # What is chosen last is the best of many by the draws that chose it: its worth is that of other, more draws.
        outcomes = np.array(chosen).T @ _normals(len(rows), WORTH_DRAWS)
        return rows, float(((mean - mean[top])[:, None] + outcomes).max(axis=0).mean())

    def _outcomes(self, at: np.ndarray, seeds: int) -> np.ndarray:
        """Returns the covariance [C, C] of the mean scores that points of `at` would show, but for their own noise.

        A score shows f above the seed's effect, which is known from the tried points: of f their mean comes off, with
        the noise of that mean.
        """
        both = np.concatenate([at, self.x])
        covariance = self.covariance(both)
        centred = covariance - covariance[:, len(at) :].mean(axis=1, keepdims=True)
        centred -= centred[len(at) :].mean(axis=0)
        return np.asarray(centred[: len(at), : len(at)] + self.noise**2 / (seeds * len(self.x)))


class _Data(NamedTuple):
    """Sufficient statistics of the scores for f, without the effects of the seeds."""

    x: np.ndarray
    """[G, d] the places of the points."""
    place: np.ndarray
    """[K] the row of each point in x."""
    noise: float
    precision: np.ndarray
    """[G, G] (diag(n_g) − N diag(1/n_s) Nᵀ)/σ² for the counts N [G, R] of scores; singular along the level."""
    total: np.ndarray
    """[G] the sum over a place's scores of what each lies above its seed's mean, over σ²."""
    evidence: float
    """Logarithm of the restricted likelihood without f, but for a constant."""


def _normals(count: int, draws: int) -> np.ndarray:
    """Returns standard normal numbers [count, draws], every second column the negative of the one before.

    The same for one (count, draws) every time; pairs of opposite signs make their mean exactly 0.
    """
    half = np.random.default_rng((SEED, draws)).standard_normal((count, draws // 2))
    return np.stack([half, -half], axis=2).reshape(count, draws)


def _data(x: np.ndarray, scores: np.ndarray, noise: float) -> _Data:
    there = ~np.isnan(scores)
    counts = np.maximum(there.sum(axis=0), 1)
    above = np.where(there, scores - np.where(there, scores, 0.0).sum(axis=0) / counts, 0.0)
    free = int(there.sum() - there.any(axis=0).sum())
    evidence = -free * math.log(noise) - float((above**2).sum()) / (2 * noise**2)
    total, place = above.sum(axis=1), np.arange(len(x))
    if len(x) > MANY:
        place = _cells(x)
        x, there, total = (_summed(one, place) for one in (x, there, total))
        x /= np.bincount(place)[:, None]
    precision = np.diag(there.sum(axis=1)) - (there / counts) @ there.T
    return _Data(x, place, noise, precision / noise**2, total / noise**2, evidence)


def _cells(x: np.ndarray) -> np.ndarray:
    """Returns the number of each point's cell, [K], in the finest grid of which no more than `MANY` cells have one."""
    side = 1 / MANY
    while True:
        cells, place = np.unique(np.floor(x / side), axis=0, return_inverse=True)
        if len(cells) <= MANY:
            return np.asarray(place).reshape(len(x))
        side *= FINER


def _summed(rows: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Returns the sums [G, …] of the rows [K, …] of each place."""
    sums = np.zeros((place.max() + 1, *rows.shape[1:]))
    np.add.at(sums, place, rows)
    return sums


def _best(data: _Data, spread: float) -> tuple[_Data, tuple[float, float, tuple[float, ...]]]:
    """Returns the data, and (evidence, amplitude, length scales) with the highest evidence.

    From the longest length scales on, which are the smoothest; each axis in turn is tried with all amplitudes.
    """
    amplitudes, axes = spread * np.array(AMPLITUDES), data.x.shape[1]
    best = _best_amplitude(data, (LENGTHS[-1],) * axes, amplitudes)
    for _ in range(PASSES):
        before = best
        for axis in range(axes):
            lengths = best[2]
            tried = [(*lengths[:axis], length, *lengths[axis + 1 :]) for length in LENGTHS]
            best = max(best, *(_best_amplitude(data, one, amplitudes) for one in tried))
        if best == before or axes == 1:
            break
    return data, best


def _best_amplitude(
    data: _Data, lengths: tuple[float, ...], amplitudes: np.ndarray
) -> tuple[float, float, tuple[float, ...]]:
    """Returns (evidence, amplitude, lengths) of the amplitude with the highest evidence.

    The evidence is the logarithm of the restricted likelihood, but for a constant; equal ones are ordered by amplitude.
    """
    _, values, total = _diagonalised(data, lengths)
    grown = 1 + np.square(amplitudes)[:, None] * values
    explained = (np.square(amplitudes)[:, None] * total**2 / grown).sum(axis=1)
    evidence = (explained - np.log(grown).sum(axis=1)) / 2
    return (*max(zip(evidence.tolist(), amplitudes.tolist(), strict=True)), lengths)


def _diagonalised(data: _Data, lengths: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the information in the directions of f that it makes independent, for these length scales.

    A root [K, K] of the correlation, turned so that the precision is diagonal; that diagonal [K]; `_Data.total` [K] in
    the same directions.
    """
    root = np.linalg.cholesky(_correlation(data.x, data.x, lengths) + JITTER * np.eye(len(data.x)))
    values, vectors = np.linalg.eigh(root.T @ data.precision @ root)
    turned = root @ vectors
    return turned, np.maximum(values, 0.0), turned.T @ data.total


def _correlation(one: np.ndarray, other: np.ndarray, lengths: tuple[float, ...]) -> np.ndarray:
    """Returns [C, K] exp(−½ Σ ((x − x′)/ℓ)²) for x [C, d] and x′ [K, d]."""
    away = (one[:, None] - other[None]) / np.asarray(lengths)
    return np.asarray(np.exp(-0.5 * (away**2).sum(axis=2)))
