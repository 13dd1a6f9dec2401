"""Random starts of parameters, the same on every device.

Drawn from NumPy's generators.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

SPREAD = 0.1  # σ of weights
BIAS_START = 0.1  # of the networks whose weights are drawn so, as in A-GEM's released code


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Returns normal numbers with σ = 0.1, drawn anew beyond ±2σ; float32.

    TensorFlow draws them like that for A-GEM's released code.
    """
    values = rng.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
    return torch.from_numpy(values * np.float32(SPREAD))


def uniform(rng: np.random.Generator, shape: Sequence[int], bound: float) -> Tensor:
    """Returns uniform numbers in ±bound, float32."""
    return torch.from_numpy((2 * rng.random(tuple(shape), dtype=np.float32) - 1) * np.float32(bound))


def _agem(rng: np.random.Generator, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Returns weights and biases of A-GEM's released code."""
    return truncated_normal(rng, (outputs, inputs)).T, torch.full((outputs,), BIAS_START)


def _xavier(rng: np.random.Generator, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Returns weights uniform within √(6 / (inputs + outputs)) (Glorot & Bengio 2010), biases 0."""
    bound = math.sqrt(6 / (inputs + outputs))
    return torch.from_numpy(rng.uniform(-bound, bound, (inputs, outputs))), torch.zeros(outputs)


def _torch(rng: np.random.Generator, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Returns weights and biases uniform within 1 / √inputs, as those of torch.nn.Linear."""
    bound = 1 / math.sqrt(inputs)
    weights = rng.uniform(-bound, bound, (inputs, outputs))
    return torch.from_numpy(weights), torch.from_numpy(rng.uniform(-bound, bound, outputs))


LAYERS: dict[str, Callable[[np.random.Generator, int, int], tuple[Tensor, Tensor]]] = {
    "agem": _agem,
    "xavier": _xavier,
    "torch": _torch,
}
"""Start -> (generator, inputs, outputs) -> weights [inputs, outputs] and biases [outputs] of a layer."""
