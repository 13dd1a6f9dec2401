"""A quadratic curve with a level of its own for every seed, and errors that trust the seeds only.

score[k, s] = u_s + b₁·z_k + b₂·z_k² + noise, z = (x − centre)/scale. The curve is fitted by least squares over all
single scores, so an x with more seeds weighs more. Noise may be correlated in any way within a seed: the seed is
the unit of replication, and covariances come from leaving out one seed at a time. Where every seed has every x, all
this is the mean and the standard error of quadratics fitted to each seed alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from results.statistics.paired import RELATIVE_ZERO

FEWEST_POINTS = 4
"""Fewest distinct x for a curve: a quadratic goes through any three, and nothing is left to check it."""


class Estimate(NamedTuple):
    """An estimate and its jackknife standard error, in units of the score."""

    value: float
    error: float


class SeedFit(NamedTuple):
    """A fit over R seeds. beta and gram refer to z; beta is in units of the score."""

    centre: float
    scale: float
    beta: np.ndarray
    """[2] b₁, b₂."""
    left_out: np.ndarray
    """[R, 2] the same without each seed."""
    gram: np.ndarray
    """[R, 2, 2] what each seed knows: Σ (Z − Z̄)ᵀ(Z − Z̄) with rows Z = (z, z²)."""
    moment: np.ndarray
    """[R, 2] Σ (Z − Z̄)ᵀ y."""
    design: np.ndarray
    """[R, 2] mean of (z, z²) over the points of each seed."""
    level: np.ndarray
    """[R] mean score of each seed."""
    seeds: np.ndarray
    """[R] columns of the table that the fit used."""
    rounding: float
    """Estimates and errors below this are rounding."""

    @property
    def effective_seeds(self) -> float:
        """R where the table is complete; fewer where some seeds know little of the curve: 1/Σ w², w_s = the share of
        seed s in the information (after Carter, Schnepel & Steigerwald 2017).
        """
        weights = np.trace(np.linalg.solve(self.gram.sum(axis=0), self.gram), axis1=1, axis2=2) / 2
        return float(1 / (weights**2).sum())

    def z(self, x: float) -> float:
        """x on the scale of the fit."""
        return (x - self.centre) / self.scale

    def covariance(self) -> np.ndarray:
        """[2, 2] jackknife covariance of beta: (R − 1)/R · Σ (β₍ₛ₎ − mean)(β₍ₛ₎ − mean)ᵀ (Efron & Tibshirani 1993,
        eq. 11.5).
        """
        n = len(self.left_out)
        away = self.left_out - self.left_out.mean(axis=0)
        return np.asarray((n - 1) / n * away.T @ away)

    def slope(self, x: float) -> Estimate:
        """The derivative by z at x."""
        direction = np.array([1.0, 2 * self.z(x)])
        return self._estimate(float(direction @ self.beta), self.left_out @ direction)

    def curvature(self) -> Estimate:
        """b₂."""
        return self._estimate(float(self.beta[1]), self.left_out[:, 1])

    def at(self, x: np.ndarray | float) -> np.ndarray:
        """The curve at x, at the level of the mean seed."""
        z = (np.asarray(x, dtype=np.float64) - self.centre) / self.scale
        return np.asarray(np.mean(self.level - self.design @ self.beta) + self.beta[0] * z + self.beta[1] * z * z)

    def best(self, low: float, high: float) -> float:
        """The x in [low, high] where the curve is highest."""
        return float(self.highest(self.beta[None], low, high)[0])

    def highest(self, betas: np.ndarray, low: float, high: float) -> np.ndarray:
        """[B] the same for other coefficients [B, 2]."""
        b1, b2 = betas.T
        below, above = self.z(low), self.z(high)
        end = np.where(b1 * (above - below) + b2 * (above**2 - below**2) > 0, above, below)
        bent = b2 < 0
        z = np.where(bent, np.clip(-b1 / np.where(bent, 2 * b2, 1.0), below, above), end)
        return np.asarray(np.clip(self.centre + self.scale * z, low, high))

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """[B, 2] beta where seed s counts counts[b, s] times; NaN where those seeds do not determine it."""
        return _weighted(counts, self.gram, self.moment)

    def below_curve(self, x: float, scores: np.ndarray) -> Estimate | None:
        """How far one row of scores [columns of the table] lies below the curve at x, paired by seed.

        Mean over the seeds that the row has of (the seed's curve at x − its score). None below two such seeds. In a
        complete table this is the t statistic of per-seed differences.
        """
        row = scores[self.seeds]
        there = ~np.isnan(row)
        if there.sum() < 2:
            return None
        z = self.z(x)
        gap = np.where(there, self.level - row, 0.0)
        rise = np.where(there[:, None], np.array([z, z * z]) - self.design, 0.0)
        n = int(there.sum())
        value = (gap.sum() + rise.sum(axis=0) @ self.beta) / n
        others = n - there
        left = (gap.sum() - gap + ((rise.sum(axis=0) - rise) * self.left_out).sum(axis=1)) / others
        return self._estimate(float(value), left)

    def _estimate(self, value: float, left_out: np.ndarray) -> Estimate:
        n = len(left_out)
        error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
        return Estimate(*(0.0 if abs(v) <= self.rounding else v for v in (value, error)))


def fit_by_seed(x: np.ndarray, scores: np.ndarray) -> SeedFit | None:
    """Fit x [K], scores [K, R] (NaN = missing); seeds with fewer than two scores say nothing and are left out.

    None with fewer than two seeds, fewer than `FEWEST_POINTS` distinct x, or where the other seeds would not
    determine the curve without one of them.
    """
    there = ~np.isnan(scores)
    seeds = np.flatnonzero(there.sum(axis=0) >= 2)
    if len(seeds) < 2 or len(np.unique(x[there.any(axis=1)])) < FEWEST_POINTS:
        return None
    centre, scale = float(x.max() + x.min()) / 2, float(np.ptp(x)) / 2
    z, mask = (x - centre) / scale, there[:, seeds].T[:, :, None]  # [R, K, 1]
    y = np.where(mask[:, :, 0], scores[:, seeds].T, 0.0)
    points = mask.sum(axis=1)
    powers = np.where(mask, np.stack([z, z * z], axis=1), 0.0)  # [R, K, 2]
    design, level = powers.sum(axis=1) / points, y.sum(axis=1) / points[:, 0]
    powers = np.where(mask, powers - design[:, None], 0.0)
    centred = np.where(mask[:, :, 0], y - level[:, None], 0.0)
    gram = np.einsum("ski,skj->sij", powers, powers)
    moment = np.einsum("ski,sk->si", powers, centred)
    every = np.ones((len(seeds) + 1, len(seeds)))
    every[1:] -= np.eye(len(seeds))
    betas = _weighted(every, gram, moment)
    if np.isnan(betas).any():
        return None
    rounding = RELATIVE_ZERO * float(np.abs(y).max())
    return SeedFit(centre, scale, betas[0], betas[1:], gram, moment, design, level, seeds, rounding)


def _weighted(weights: np.ndarray, gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """[B, 2] least squares with weights [B, R] of the seeds; NaN rows where the seeds do not determine it."""
    a, b, _, d = (weights @ gram.reshape(-1, 4)).T
    m1, m2 = (weights @ moment).T
    determinant = a * d - b * b
    sound = determinant > 1e-10 * np.maximum(a * d, 1e-300)
    safe = np.where(sound, determinant, 1.0)
    beta = np.stack([(d * m1 - b * m2) / safe, (a * m2 - b * m1) / safe], axis=1)
    return np.where(sound[:, None], beta, math.nan)
