"""Lateral connections of progressive residual networks.

1×1 convolutions of the maps of earlier columns, and one product for the logits. The sums over columns j are one
product: their maps lie beside each other, channels last, and so do the U of a stage in its weight [out, number·in]; its
bias [number, out] holds the c. As in A-GEM's released code, U starts truncated normal (σ = 0.1) and c = 0.1, though a
column's own kernels start otherwise.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import Tensor

from trainers.networks.draws import BIAS_START, truncated_normal
from trainers.networks.heads import Views
from trainers.networks.layout import Layout
from trainers.networks.resnet import BLOCKS, ResNet

LOGITS = 5  # number of the laterals that feed the logits; those of the stem have 0, of the stages 1–4


@dataclass(frozen=True)
class Laterals:
    """The laterals of column `number`, with as many columns before it; net: a single column, with a linear head."""

    net: ResNet
    number: int

    @cached_property
    def layout(self) -> Layout:
        """Layout of U and c; empty for the first column."""
        widths = self.net.widths
        inputs, outputs = (3, widths[0], *widths), (widths[0], *widths, self.net.head.outputs)
        stages = enumerate(zip(inputs, outputs, strict=True)) if self.number else ()
        of_each = (
            ((f"lateral{stage}.weight", (n, self.number * k)), (f"lateral{stage}.bias", (self.number, n)))
            for stage, (k, n) in stages
        )
        return Layout(tuple(itertools.chain.from_iterable(of_each)))

    def init(self, views: Views, rng: np.random.Generator) -> None:
        """Writes the untrained parameters [1, …] over zeros."""
        for name, view in views.items():
            if name.endswith("weight"):
                view[0].copy_(truncated_normal(rng, tuple(view.shape[1:])))
            else:
                view.fill_(BIAS_START)

    def beside(self, views: Views, stage: int, below: list[Tensor]) -> Tensor | None:
        """Returns [B, C, H, W], to add to a stage; None for the first column.

        below[stage] [B, H, W, …]: the inputs of its laterals from all columns before, or more.
        """
        if not self.number:
            return None
        stride = self.net.stem.stride if stage == 0 else self.net.blocks[(stage - 1) * BLOCKS].first.stride
        return self._sum(views, stage, below[stage][:, ::stride, ::stride]).permute(0, 3, 1, 2)

    def logits(self, views: Views, below: list[Tensor]) -> Tensor | float:
        """Returns [B, outputs], to add to the logits."""
        return self._sum(views, LOGITS, below[LOGITS]) if self.number else 0.0

    def _sum(self, views: Views, stage: int, inputs: Tensor) -> Tensor:
        """Returns Σ_j (U^j h^j + c^j)."""
        weight, bias = views[f"lateral{stage}.weight"][0], views[f"lateral{stage}.bias"][0]
        if stage == 0:  # the same image for all columns
            weight = weight.view(len(weight), self.number, -1).sum(1)
        return inputs[..., : weight.shape[1]] @ weight.T + bias.sum(0)
