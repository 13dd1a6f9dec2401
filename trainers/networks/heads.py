"""Last layers: a linear one, or a joint embedding with attributes."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from trainers.networks.draws import BIAS_START, truncated_normal, uniform

Views = dict[str, Tensor]
"""Parameters by name, [M, …]."""


@dataclass(frozen=True)
class Linear:
    """Uniform weights within ±1/√F, as in A-GEM's released code; biases alike, or zero."""

    outputs: int
    """The logits of an example."""
    random_bias: bool
    """True for biases drawn like weights; False for zeros."""

    def shapes(self, features: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Returns the shapes of weight [outputs, F] and bias [outputs], named as in torchvision."""
        return ("fc.weight", (self.outputs, features)), ("fc.bias", (self.outputs,))

    def init(self, views: Views, rng: np.random.Generator) -> None:
        """Draws the weights, and the biases where they are random; otherwise they stay zero."""
        weight, bias = views["fc.weight"][0], views["fc.bias"][0]
        bound = weight.shape[1] ** -0.5
        weight.copy_(uniform(rng, weight.shape, bound))
        if self.random_bias:
            bias.copy_(uniform(rng, bias.shape, bound))

    def logits(self, views: Views, features: Tensor) -> Tensor:
        """Returns features·weightᵀ + bias, [M, B, outputs]."""
        return torch.baddbmm(views["fc.bias"][:, None], features, views["fc.weight"].mT)


class JointEmbedding:
    """φ(x)·(A W)ᵀ + b (A-GEM, Eq. 13): rows of A are the attributes of the outputs' classes, W and b are learnt.

    attributes [outputs, A], float32.
    """

    def __init__(self, attributes: Tensor) -> None:
        self._attributes = attributes
        self._on = {(attributes.device, attributes.dtype): attributes}

    @property
    def outputs(self) -> int:
        """The logits of an example: rows of the attributes."""
        return len(self._attributes)

    def shapes(self, features: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Returns the shapes of W [A, F] and b [outputs]."""
        return ("embedding.weight", (self._attributes.shape[1], features)), ("embedding.bias", (self.outputs,))

    def init(self, views: Views, rng: np.random.Generator) -> None:
        """Draws W truncated normal (σ = 0.1), and sets b to 0.1."""
        weight = views["embedding.weight"][0]
        weight.copy_(truncated_normal(rng, tuple(weight.shape)))
        views["embedding.bias"].fill_(BIAS_START)

    def logits(self, views: Views, features: Tensor) -> Tensor:
        """Returns features·(A W)ᵀ + b, [M, B, outputs]."""
        classes = self.classes(views["embedding.weight"])
        return torch.baddbmm(views["embedding.bias"][:, None], features, classes.mT)

    def classes(self, weight: Tensor) -> Tensor:
        """Returns A W, [M, outputs, F]: the weights of a linear layer that does the same."""
        place = weight.device, weight.dtype
        if place not in self._on:  # once: what copies from the host cannot be captured in a CUDA graph
            self._on[place] = self._attributes.to(*place)
        return torch.matmul(self._on[place], weight)


Head: TypeAlias = Linear | JointEmbedding
"""The last layer of M members at once; its parameters lie in a row under the names of `shapes`."""
