"""Independent references: the update rules in float64 NumPy from the paper's text, and one member in plain PyTorch."""

import itertools
import math

import numpy as np
import torch
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def step_direction(method: str, g: Vector, r: Vector, epsilon: float = 0.0, scale: str = "unit") -> Vector:
    """Algorithm 1 of the ε-SOFT-GEM paper, one branch after the other, for one member."""
    if method == "van":
        return g
    if math.sqrt(sum(g * g)) < 1e-15 or math.sqrt(sum(r * r)) < 1e-15:
        return g
    if method == "agem" or (method == "soft_agem" and epsilon == 0):
        return g if g @ r >= 0 else g - (g @ r) / (r @ r) * r
    unit_g, unit_r = g / np.linalg.norm(g), r / np.linalg.norm(r)
    c = unit_g @ unit_r
    if c >= 0:
        return g
    if scale == "raw":
        return (g + r) / 2 if method == "a_agem" else g - (c - epsilon) * r
    if method == "a_agem":
        return (unit_g + unit_r) / 2
    return unit_g - (c - epsilon) / (unit_r @ unit_r) * unit_r


class PlainLearner:
    """One member as anyone would write it: torch.nn.Sequential, autograd, flattened gradients, no batching."""

    def __init__(self, sizes: tuple[int, ...], weights: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        layers: list[torch.nn.Module] = []
        for (inputs, outputs), (weight, bias) in zip(itertools.pairwise(sizes), weights, strict=True):
            linear = torch.nn.Linear(inputs, outputs)
            with torch.no_grad():
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
            layers += [linear, torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*layers[:-1])

    def gradient(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(self.network(x), y)
        grads = torch.autograd.grad(loss, list(self.network.parameters()))
        return torch.cat([grad.reshape(-1) for grad in grads])

    def step(self, direction: torch.Tensor, learning_rate: float) -> None:
        start = 0
        with torch.no_grad():
            for parameter in self.network.parameters():
                part = direction[start : start + parameter.numel()].view_as(parameter)
                parameter -= learning_rate * part
                start += parameter.numel()

    def flat(self) -> torch.Tensor:
        return torch.cat([parameter.detach().reshape(-1) for parameter in self.network.parameters()])

    def accuracy(self, x: torch.Tensor, y: torch.Tensor) -> float:
        with torch.no_grad():
            return float((self.network(x).argmax(1) == y).double().mean())
