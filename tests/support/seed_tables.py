"""Score tables made up for tests of the statistics: seeds share an effect, and noise may be smooth within a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NOISE = 0.003
"""Standard deviation of the seeds' effects and of the noise: what 3 tasks of real streams show."""


def parabola(top: float, bend: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: 0.9 - bend * (x - top) ** 2


def table(
    rng: np.random.Generator, x: np.ndarray, curve: Callable[[np.ndarray], np.ndarray], seeds: int, smooth: bool = False
) -> np.ndarray:
    """[K, R]; smooth: half of the noise variance is a random curve of its own for every seed (length scale 0.25)."""
    noise = rng.normal(0, NOISE, (len(x), seeds))
    if smooth:
        near = np.exp(-0.5 * ((x[:, None] - x) / 0.25) ** 2) + 1e-9 * np.eye(len(x))
        noise = (noise + np.linalg.cholesky(near) @ rng.normal(0, NOISE, (len(x), seeds))) / np.sqrt(2)
    return curve(x)[:, None] + rng.normal(0, NOISE, seeds) + noise
