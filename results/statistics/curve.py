"""A quadratic curve with an intercept and a jackknife by seed.

score[k, s] = u_s + b₁·z_k + b₂·z_k² + noise, z = (x − centre)/scale. The curve is fitted by least squares over all
single scores, so an x with more seeds has more weight. Noise may be correlated in any way within a seed: the seed is
the unit of replication, and covariances come from leaving out one seed at a time. Where every seed has every x, the
result is the mean, with its standard error, of quadratics fitted to each seed alone.
"""

import math
from typing import NamedTuple

import numpy as np

from results.statistics.paired import RELATIVE_ZERO, UNKNOWN, Estimate

FEWEST_POINTS = 4
"""Fewest distinct x for a curve: a quadratic goes through any three, which leaves nothing to test its fit."""


class SeedFit(NamedTuple):
    """A fit over R seeds. Everything but centre and scale refers to z; coefficients are in units of the score."""

    centre: float
    """The x at which z = 0."""
    scale: float
    """The length of x for which z changes by 1: half the range."""
    beta: np.ndarray
    """[2] b₁, b₂."""
    left_out: np.ndarray
    """[R, 2] the same without each seed."""
    gram: np.ndarray
    """[R, 2, 2] the information of each seed: Σ (Z − Z̄)ᵀ(Z − Z̄) with rows Z = (z, z²)."""
    moment: np.ndarray
    """[R, 2] Σ (Z − Z̄)ᵀ y."""
    design: np.ndarray
    """[R, 2] mean of (z, z²) over the points of each seed."""
    level: np.ndarray
    """[R] mean score of each seed."""
    seeds: np.ndarray
    """[R] columns of the table that the fit used."""
    rounding: float
    """Estimates and errors below this are rounding errors and count as 0."""

    @property
    def effective_seeds(self) -> float:
        """The seeds that count for the t quantile: R for a complete table, fewer if some seeds have few scores.

        1/Σ w², where w_s is the share of seed s in the information (after Carter, Schnepel & Steigerwald 2017).
        """
        weights = np.trace(np.linalg.solve(self.gram.sum(axis=0), self.gram), axis1=1, axis2=2) / 2
        return float(1 / (weights**2).sum())

    def z(self, x: float) -> float:
        """Returns x on the scale of the fit."""
        return (x - self.centre) / self.scale

    def covariance(self) -> np.ndarray:
        """Returns the jackknife covariance [2, 2] of beta.

        (R − 1)/R · Σ (β₍ₛ₎ − mean)(β₍ₛ₎ − mean)ᵀ (Efron & Tibshirani 1993, eq. 11.5).
        """
        n = len(self.left_out)
        away = self.left_out - self.left_out.mean(axis=0)
        return np.asarray((n - 1) / n * away.T @ away)

    def slope(self, x: float) -> Estimate:
        """Returns the derivative by z at x."""
        direction = np.array([1.0, 2 * self.z(x)])  # of b₁ + 2 b₂ z by b₁ and b₂
        return self._estimate(float(direction @ self.beta), self.left_out @ direction)

    def curvature(self) -> Estimate:
        """Returns b₂."""
        return self._estimate(float(self.beta[1]), self.left_out[:, 1])

    def at(self, x: np.ndarray | float) -> np.ndarray:
        """Returns the height of the curve at x, with the mean intercept of the seeds."""
        z = (np.asarray(x, dtype=np.float64) - self.centre) / self.scale
        return np.asarray(np.mean(self.level - self.design @ self.beta) + self.beta[0] * z + self.beta[1] * z * z)

    def best(self, low: float, high: float) -> float:
        """Returns the x in [low, high] where the curve is highest."""
        return float(self.highest(self.beta[None], low, high)[0])

    def highest(self, betas: np.ndarray, low: float, high: float) -> np.ndarray:
        """Returns the same [B] for other coefficients [B, 2]."""
        b1, b2 = betas.T
        below, above = self.z(low), self.z(high)
        end = np.where(b1 * (above - below) + b2 * (above**2 - below**2) > 0, above, below)
        # A curve that does not bend down is highest at one of the two ends.
        bent = b2 < 0
        z = np.where(bent, np.clip(-b1 / np.where(bent, 2 * b2, 1.0), below, above), end)
        return np.asarray(np.clip(self.centre + self.scale * z, low, high))

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Returns beta [B, 2] with seed s counted counts[b, s] times; NaN where these seeds do not determine it."""
        return _weighted(counts, self.gram, self.moment)

    def below_curve(self, x: float, scores: np.ndarray) -> Estimate:
        """Returns how far one row of scores (one for each column of the table) lies below the curve at x.

        Paired by seed: the mean, over the seeds of the row, of the seed's curve at x minus its score. `UNKNOWN` below
        two such seeds. For a complete table value/error is the t statistic of the differences by seed.
        """
        row = scores[self.seeds]
        there = ~np.isnan(row)
        if there.sum() < 2:
            return UNKNOWN
        z = self.z(x)
        gap = np.where(there, self.level - row, 0.0)
        rise = np.where(there[:, None], np.array([z, z * z]) - self.design, 0.0)
        n = int(there.sum())
        value = (gap.sum() + rise.sum(axis=0) @ self.beta) / n
        others = n - there  # seeds of the row that remain when one is left out; all n if that one is not in the row
        left = (gap.sum() - gap + ((rise.sum(axis=0) - rise) * self.left_out).sum(axis=1)) / others
        return self._estimate(float(value), left)

    def _estimate(self, value: float, left_out: np.ndarray) -> Estimate:
        """Returns a value with the jackknife error of its values [R] without each seed."""
        n = len(left_out)
        error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
        return Estimate(*(0.0 if abs(v) <= self.rounding else v for v in (value, error)))


def fit_by_seed(x: np.ndarray, scores: np.ndarray) -> SeedFit | None:
    """Returns the fit to x [K] and scores [K, R] (NaN = missing); seeds with fewer than two scores are left out.

    None with fewer than two seeds, with fewer than `FEWEST_POINTS` distinct x, and where the seeds would not determine
    the curve if one of them were left out.
    """
    there = ~np.isnan(scores)
    seeds = np.flatnonzero(there.sum(axis=0) >= 2)
    if len(seeds) < 2 or len(np.unique(x[there.any(axis=1)])) < FEWEST_POINTS:
        return None
    # On [−1, 1], so that the normal equations are well conditioned for every unit of x.
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
    # All seeds in the first row, then all but one: the fit and its jackknife replicates at once.
    every = np.ones((len(seeds) + 1, len(seeds)))
    every[1:] -= np.eye(len(seeds))
    betas = _weighted(every, gram, moment)
    if np.isnan(betas).any():
        return None
    rounding = RELATIVE_ZERO * float(np.abs(y).max())
    return SeedFit(centre, scale, betas[0], betas[1:], gram, moment, design, level, seeds, rounding)


def _weighted(weights: np.ndarray, gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Returns the least-squares beta [B, 2] for weights [B, R] of the seeds; NaN where they do not determine it."""
    # Cramer's rule for all B systems of two equations at once.
    a, b, _, d = (weights @ gram.reshape(-1, 4)).T
    m1, m2 = (weights @ moment).T
    determinant = a * d - b * b
    # Relative to a·d, which bounds the determinant: near 0 the points lie at fewer than three different z.
    sound = determinant > 1e-10 * np.maximum(a * d, 1e-300)
    safe = np.where(sound, determinant, 1.0)
    beta = np.stack([(d * m1 - b * m2) / safe, (a * m2 - b * m1) / safe], axis=1)
    return np.where(sound[:, None], beta, math.nan)
