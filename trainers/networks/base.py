"""The interface of networks for the engine of tensors.

M members at once, each a row of a matrix [M, D] of parameters.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Statistics: TypeAlias = dict[str, Tensor]
"""What a network keeps of its members besides parameters, [M, …] each: moving averages of batch normalisation."""

Pull: TypeAlias = Callable[[Tensor], Tensor]
"""From logits [M, B, outputs] to the gradient of a loss by them."""


class Batch(NamedTuple):
    """Inputs x [M, B, …] and labels [M, B]; [1, B, …] where all learners have the same.

    allowed [M or 1, B, outputs]: the outputs of each example's own task; None where all are.
    """

    x: Tensor
    labels: Tensor
    allowed: Tensor | None


class Network(Protocol):
    """A network of any kind; properties hold for all members."""

    @property
    def normalises(self) -> bool:
        """True if an example's output in training depends on the batch that it is in, by batch normalisation."""

    @property
    def together(self) -> bool:
        """True if members can be trained in one batch of products."""

    @property
    def recordable(self) -> bool:
        """True if a CUDA graph can hold its passes."""

    @property
    def least(self) -> int:
        """Number of examples in the smallest batch that it can be trained on."""

    @property
    def row(self) -> int:
        """Length of a row, with padding."""

    @property
    def real(self) -> Tensor:
        """[row], False where a row is padding."""

    def init(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Returns one row of an untrained network."""

    def statistics(self, params: Tensor) -> Statistics:
        """Returns the statistics of untrained networks, on the device of params [M, D]."""

    def logits(self, params: Tensor, statistics: Statistics, x: Tensor) -> Tensor:
        """Returns [M, B, outputs], as in a test."""

    def gradients(
        self,
        params: Tensor,
        statistics: Statistics,
        batch: Batch,
        row_weight: Tensor,
        parts: Sequence[int],
        into: Sequence[Tensor],
    ) -> Tensor:
        """Writes the gradients of the mean cross-entropy over consecutive parts of the batch, `parts` rows each.

        Each part's is written into its [M, D] in `into`. row_weight [M or 1, B, 1] = 1/rows of its part. Returns [M,
        len(parts) + 1]: the loss of each part, and the mean of ‖p − onehot(y)‖² over the last one. Moves the
        statistics.
        """

    def pull_back(
        self, params: Tensor, statistics: Statistics, x: Tensor, parts: Sequence[int], pull: Pull, into: Tensor
    ) -> None:
        """Writes the gradient [M, D] of a loss of the logits of x [M or 1, B, …]; `pull` returns its gradient by them.

        parts: as for `gradients`; normalisation sees each as one batch. Moves the statistics.
        """

    def sensitivity(
        self, params: Tensor, statistics: Statistics, x: Tensor, allowed: Tensor | None, into: Tensor
    ) -> None:
        """Writes the gradient [M, D] of Σ ‖logits‖² over the batch, of allowed outputs only."""


def leaves_of(views: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the same memory as leaves of a graph, by which a loss can be differentiated.

    The views themselves stay none.
    """
    return {name: view.detach().requires_grad_() for name, view in views.items()}


def gradient_of(loss: Tensor, leaves: dict[str, Tensor], into: dict[str, Tensor]) -> None:
    """Writes the gradient by every leaf into the view of its name; zero where the loss does not depend on it."""
    gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
    for view, gradient in zip(into.values(), gradients, strict=True):
        view.copy_(gradient)
