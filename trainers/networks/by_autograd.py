"""Base class of networks whose gradients come from autograd."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from trainers.networks.base import Batch, Pull, Statistics, gradient_of, leaves_of
from trainers.networks.heads import Views
from trainers.networks.layout import Layout, consecutive
from trainers.networks.losses import cross_entropy, mask, mean_square, one_hot, output_delta


class ByAutograd(ABC):
    """Gradients by autograd. Every part of a batch passes alone, so batch normalisation sees it as one batch.

    subtracted: see `losses.output_delta`.
    """

    subtracted: bool

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Layout of the trainable parameters."""

    @abstractmethod
    def _forward(self, leaves: Views, statistics: Statistics, x: Tensor, training: bool) -> Tensor:
        """Returns the logits [M, B, outputs].

        training: batches are normalised by their own statistics, and the moving averages follow.
        """

    def _leaves(self, params: Tensor) -> Views:
        """Returns the leaves of members [M, D] by which a loss is differentiated."""
        return leaves_of(self.layout.views(params))

    @property
    def row(self) -> int:
        """Length of a row of parameters, with padding."""
        return self.layout.row

    @property
    def real(self) -> Tensor:
        """[row], False where a row is padding."""
        return self.layout.real

    def logits(self, params: Tensor, statistics: Statistics, x: Tensor) -> Tensor:
        """Returns [M, B, outputs] for x [1 or M, B, …], by the moving averages."""
        with torch.no_grad():
            return self._forward(self._leaves(params), statistics, x, training=False)

    def gradients(
        self,
        params: Tensor,
        statistics: Statistics,
        batch: Batch,
        row_weight: Tensor,
        parts: Sequence[int],
        into: Sequence[Tensor],
    ) -> Tensor:
        """Writes gradients and returns losses, as `Network.gradients`.

        Reference batches pass before the mini-batch, whose statistics weigh more.
        """
        x, labels, allowed = batch
        result = params.new_zeros(len(params), len(parts) + 1)
        now, *references = enumerate(zip(consecutive(parts), into, strict=True))
        for number, (part, gradient) in (*references, now):
            masks = None if allowed is None else allowed[:, part]
            leaves = self._leaves(params)
            with torch.enable_grad():
                logits = self._forward(leaves, statistics, x[:, part], training=True)
                losses = cross_entropy(logits, labels[:, part], masks, row_weight[:, part, 0], self.subtracted)
                # Zeroed first: autograd writes no gaps between parameters, and the buffers come without values.
                gradient_of(losses.sum(), leaves, self.layout.views(gradient.zero_()))
            result[:, number] = losses.detach()
            if number == len(parts) - 1:
                p = torch.softmax(mask(logits.detach(), masks), dim=2)
                delta = output_delta(p, one_hot(labels[:, part], p), self.subtracted)
                result[:, -1] = mean_square(delta, row_weight[:, part])
        return result

    def pull_back(
        self, params: Tensor, statistics: Statistics, x: Tensor, parts: Sequence[int], pull: Pull, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.pull_back`; parts pass in the order of `gradients`."""
        leaves, outputs = self._leaves(params), dict[int, Tensor]()
        now, *references = consecutive(parts)
        with torch.enable_grad():
            for part in (*references, now):
                outputs[part.start] = self._forward(leaves, statistics, x[:, part], training=True)
            logits = torch.cat([outputs[start] for start in sorted(outputs)], dim=1)
            with torch.no_grad():
                delta = pull(logits.detach())
            gradient_of((logits * delta).sum(), leaves, self.layout.views(into.zero_()))

    def sensitivity(
        self, params: Tensor, statistics: Statistics, x: Tensor, allowed: Tensor | None, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.sensitivity`, by the moving averages."""
        leaves = self._leaves(params)
        with torch.enable_grad():
            logits = self._forward(leaves, statistics, x, training=False)
            counted = logits if allowed is None else logits * allowed
            gradient_of(counted.square().sum(), leaves, self.layout.views(into.zero_()))
