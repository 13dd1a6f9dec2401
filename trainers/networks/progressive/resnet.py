"""Progressive networks (Rusu et al., 2016) of residual columns.

One column of full width for each task. Stage s of column k, of the stem (s = 0) and the four stages of blocks, ends in

    h^k_s = ReLU(stage_s(h^k_{s−1}) + Σ_{j<k} (U^{k,j}_s h^j_{s−1} + c^{k,j}_s)),    h^j_{−1} = the image,

as in A-GEM's released code: stage_s is what precedes the last ReLU of its last block, U a 1×1 convolution with the
stage's stride. A large stem is pooled afterwards. With the average over each map p^j of column j's last stage,

    logits^k = W p^k + b + Σ_{j<k} (U^{k,j}_5 p^j + c^{k,j}_5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.networks.base import Statistics, leaves_of
from trainers.networks.heads import Views
from trainers.networks.layout import consecutive
from trainers.networks.losses import cross_entropy
from trainers.networks.progressive.laterals import LOGITS, Laterals
from trainers.networks.resnet import BLOCKS, Layers, ResNet


@dataclass(frozen=True)
class ResNetColumns:
    """A column for each of `count` tasks; net: a single column, with a linear head.

    A row of parameters holds the columns one after another, each in front of its laterals; a row of statistics holds
    their moving averages. Methods take one member's as matrices, params [1, D] and statistics [1, S].
    """

    net: ResNet
    count: int

    @property
    def row(self) -> int:
        """Length D of a row of parameters, with padding."""
        return int(self.slice(self.count - 1).stop)

    def statistics_slice(self, number: int) -> slice:
        """Returns the place of column `number` in a row of statistics."""
        return consecutive([self.net.statistics_layout.row] * self.count)[number]

    def slice(self, number: int) -> slice:
        """Returns the place of column `number` and its laterals in a row of parameters."""
        return consecutive(self.net.row + laterals.layout.row for laterals in self._laterals)[number]

    def init(self, rngs: Sequence[np.random.Generator]) -> NDArray[np.float32]:
        """Returns one row, with every column from its own generator: first as `ResNet` has it, then its laterals."""
        row = torch.zeros(1, self.row)
        for number, (laterals, rng) in enumerate(zip(self._laterals, rngs, strict=True)):
            self.backbone(row, number).copy_(torch.from_numpy(self.net.init(rng)))
            laterals.init(self._lateral_views(row, number), rng)
        return cast(NDArray[np.float32], row[0].numpy())

    def statistics(self, params: Tensor) -> Statistics:
        """Returns the moving averages [M, S] of untrained columns, one behind the other.

        Of params [M, D] only the number, type and device count.
        """
        averages = self.net.statistics(params[:1].expand(self.count, -1))["statistics"]
        return {"statistics": averages.view(1, -1).repeat(len(params), 1)}

    def backbone(self, params: Tensor, number: int) -> Tensor:
        """Returns column `number` without its laterals: a row [1, `net.row`] such as `net` has."""
        return params[:, self.slice(number)][:, : self.net.row]

    def views(self, params: Tensor, number: int) -> Views:
        """Returns parameters [1, …] of column `number` and its laterals, by name."""
        return self.net.layout.views(self.backbone(params, number)) | self._lateral_views(params, number)

    def averages(self, statistics: Tensor, number: int) -> Views:
        """Returns the moving averages [1, …] of column `number`, by name."""
        return self.net.statistics_layout.views(statistics[:, self.statistics_slice(number)])

    def logits(self, params: Tensor, statistics: Tensor, number: int, x: Tensor) -> Tensor:
        """Returns [1, B, outputs] of column `number` for images x [1, B, H, W, 3], by the moving averages."""
        below = self._below(params, statistics, number, x)
        layers = Layers(self.views(params, number), self.averages(statistics, number), training=False)
        return self._logits(layers, number, x, below)

    def gradients(
        self, params: Tensor, statistics: Tensor, number: int, x: Tensor, labels: Tensor, allowed: Tensor | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Returns the mean cross-entropy [1] over a batch, and the gradients of column `number`.

        The gradients are pairs (view into params, gradient) of all its parameters.

        x [1, B, H, W, 3], labels [1, B], allowed [1, B, outputs] or None. Earlier columns have no gradient, work by
        their moving averages and stay as they are; those of column `number` move.
        """
        below = self._below(params, statistics, number, x)
        leaves = leaves_of(self.views(params, number))
        with torch.enable_grad():
            logits = self._logits(Layers(leaves, self.averages(statistics, number), training=True), number, x, below)
            weight = logits.new_full(labels.shape, 1 / labels.shape[1])
            loss = cross_entropy(logits, labels, allowed, weight, self.net.subtracted)
            gradients = torch.autograd.grad(loss.sum(), list(leaves.values()))
        views = (leaf.detach() for leaf in leaves.values())
        return loss.detach(), list(zip(views, gradients, strict=True))

    def _below(self, params: Tensor, statistics: Tensor, number: int, x: Tensor) -> list[Tensor]:
        """Returns inputs of the laterals of column `number`: images, maps [B, H, W, number·C], pooled [B, number·C]."""
        below = [x[0]]
        for column in range(number):
            layers = Layers(self.views(params, column), self.averages(statistics, column), training=False)
            outputs = self._outputs(layers, column, x, below)
            if column == 0:
                below += [maps.new_empty(*maps.shape[:-1], number * maps.shape[-1]) for maps in outputs]
            for buffer, maps in zip(below[1:], outputs, strict=True):
                width = maps.shape[-1]
                buffer[..., column * width : (column + 1) * width] = maps
        return below

    def _outputs(self, layers: Layers, number: int, x: Tensor, below: list[Tensor]) -> list[Tensor]:
        """Returns the outputs of a column's stem and stages 1–3 [B, H, W, C], and of its last stage, pooled [B, C]."""
        laterals, outputs = self._laterals[number], []
        h = layers.stem(self.net, x, laterals.beside(layers.views, 0, below))
        for stage in range(1, LOGITS):
            # Channels last, as the laterals' matrix products take them.
            outputs.append(h.permute(0, 2, 3, 1))
            first, last = self.net.blocks[(stage - 1) * BLOCKS : stage * BLOCKS]
            h = layers.block(last, layers.block(first, h), laterals.beside(layers.views, stage, below))
        return [*outputs, layers.average_pool(h)[0]]

    def _logits(self, layers: Layers, number: int, x: Tensor, below: list[Tensor]) -> Tensor:
        """Returns [1, B, outputs] of the column's head and of the laterals that feed it."""
        pooled = self._outputs(layers, number, x, below)[-1][None]
        return self.net.head.logits(layers.views, pooled) + self._laterals[number].logits(layers.views, below)

    @cached_property
    def _laterals(self) -> tuple[Laterals, ...]:
        return tuple(Laterals(self.net, number) for number in range(self.count))

    def _lateral_views(self, params: Tensor, number: int) -> Views:
        return self._laterals[number].layout.views(params[:, self.slice(number)][:, self.net.row :])
