"""Losses at the logits, and their gradients by them: softmax cross-entropy, squares, distillation.

The same for every network of tensors. The gradient of the cross-entropy is p − onehot(y). Its entry at the label y is
−Σ_{c≠y} p_c. Computed as p_y − 1, in float32, nothing is left of it but rounding where the other probabilities sum to
less than 6·10⁻⁸; so it is with a memory that is fitted, and ε-SOFT-GEM divides g_ref by its norm. torch's own
cross-entropy subtracts. What the compiled engine has instead of `output_delta` is in `engines/compiled/kernels.py`.
"""

from typing import Any, cast

import torch
from torch import Tensor

from trainers.methods.penalty import column


def mask(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """Returns the logits with −∞ at outputs that are not allowed: probability 0, and a gradient of exactly 0."""
    return logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)


def one_hot(labels: Tensor, like: Tensor) -> Tensor:
    """Returns […, outputs] with 1 at each label […], of the type and the number of outputs of `like`.

    Reads no value, so that a CUDA graph can hold it.

    Without a look at any value, so that a CUDA graph can hold it.
    """
    return (labels[..., None] == torch.arange(like.shape[-1], device=labels.device)).to(like.dtype)


def output_delta(p: Tensor, target: Tensor, subtracted: bool) -> Tensor:
    """Turns p into p − target, in place: the gradient of each example's cross-entropy by its logits.

    p […, outputs] are probabilities, target, broadcast to them, is one-hot. subtracted: as published results were
    computed, and not by the sum of the other probabilities.
    """
    if subtracted:
        return p.sub_(target)
    p.addcmul_(p, target, value=-1)  # exactly 0 at the label, and nothing else changes
    return p.addcmul_(p.sum(-1, keepdim=True), target, value=-1)


def entropy_delta(
    logits: Tensor, labels: Tensor, allowed: Tensor | None, row_weight: Tensor, subtracted: bool
) -> tuple[Tensor, Tensor]:
    """Returns (weighted cross-entropies [M, B], their gradients [M, B, outputs] without the weights).

    logits [M, B, outputs], labels [M or 1, B], row_weight [M or 1, B, 1].
    """
    target = one_hot(labels, logits)
    log_p = torch.log_softmax(mask(logits, allowed), dim=2)
    counted = log_p if allowed is None else log_p.masked_fill(~allowed, 0.0)  # 0 · −∞ is NaN
    losses = -(counted * (target * row_weight)).sum(2)
    return losses, output_delta(log_p.exp_(), target, subtracted)


def square_delta(logits: Tensor, stored: Tensor, allowed: Tensor | None, row_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (weighted sum [M] of ‖z − z_stored‖²/outputs, gradients [M, B, outputs] without the weights).

    Outputs that are not allowed count 0, and are counted in the number of outputs all the same.
    """
    between = logits - stored
    if allowed is not None:
        between = between.masked_fill(~allowed, 0.0)
    loss = (between.square() * row_weight).sum((1, 2)) / logits.shape[2]
    return loss, between.mul_(2 / logits.shape[2])


def taught_delta(
    logits: Tensor, teacher: Tensor, groups: tuple[Tensor, Tensor], temperature: Tensor | float, row_weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns (weighted sum [M] of T²·KL(teacher ‖ network), gradients [M, B, outputs] without the weights).

    Of softmax(z/T), the mean over groups of outputs. logits and teacher [M, B, outputs]; groups: (of the teacher, of
    the network) [M, groups, outputs]; temperature: T, or [M].
    """
    t = column(column(temperature))
    theirs, mine = (
        torch.log_softmax(mask((z / t)[:, :, None], group[:, None]), dim=3)
        for z, group in zip((teacher, logits), groups, strict=True)
    )
    p, q = mine.exp(), theirs.exp()
    # Where the teacher has no probability there is nothing to add, and 0 · ∞ is NaN.
    between = (theirs - mine).masked_fill(~groups[0][:, None], 0.0)
    of_examples = (q * between).sum(3).mean(2, keepdim=True) * t**2
    return (of_examples * row_weight).sum((1, 2)), (p - q).mean(2) * t


def mean_square(delta: Tensor, row_weight: Tensor) -> Tensor:
    """Returns the mean [M] of ‖p − onehot(y)‖² over rows of delta [M, B, outputs].

    row_weight [M or 1, B, 1] = 1/rows.
    """
    return (delta.square() * row_weight).sum((1, 2))


def cross_entropy(
    logits: Tensor, labels: Tensor, allowed: Tensor | None, weight: Tensor, subtracted: bool = False
) -> Tensor:
    """Returns [M], the weighted sum over examples; logits [M, B, outputs], labels and weight [M or 1, B].

    Differentiable once, by the logits alone.
    """
    if subtracted:
        return _negative_log_likelihood(torch.log_softmax(mask(logits, allowed), dim=2), labels, weight)
    return cast(Tensor, _CrossEntropy.apply(mask(logits, allowed), labels, weight))


class _CrossEntropy(torch.autograd.Function):
    """Like torch's, but for the gradient at the label."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
        log_p = torch.log_softmax(logits, dim=2)
        ctx.save_for_backward(log_p, labels, weight)
        return _negative_log_likelihood(log_p, labels, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        log_p, labels, weight = ctx.saved_tensors
        delta = output_delta(log_p.exp(), one_hot(labels, log_p), subtracted=False)
        return delta.mul_(weight[..., None] * gradient[:, None, None]), None, None


def _negative_log_likelihood(log_p: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    return -(log_p.gather(2, labels.expand(len(log_p), -1)[:, :, None])[..., 0] * weight).sum(1)
