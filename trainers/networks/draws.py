"""Random starts of parameters, the same on every device.

Drawn from NumPy's generators.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

SPREAD = 0.1  # σ of weights
BIAS_START = 0.1  # of the networks whose weights are drawn so, as in A-GEM's released code


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Normal with σ = 0.1, drawn anew beyond ±2σ, as TensorFlow does for A-GEM's released code; float32."""
    values = rng.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
    return torch.from_numpy(values * np.float32(SPREAD))


def uniform(rng: np.random.Generator, shape: Sequence[int], bound: float) -> Tensor:
    """Uniform in ±bound, float32."""
    return torch.from_numpy((2 * rng.random(tuple(shape), dtype=np.float32) - 1) * np.float32(bound))
