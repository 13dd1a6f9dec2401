"""Random starts of parameters."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SPREAD = 0.1


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Normal with σ = 0.1, drawn anew beyond ±2σ."""
    values = rng.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
    return values * np.float32(SPREAD)


def uniform(rng: np.random.Generator, shape: Sequence[int], bound: float) -> Tensor:
    """Uniform in ±bound."""
    return torch.from_numpy((2 * rng.random(tuple(shape), dtype=np.float32) - 1) * np.float32(bound))
