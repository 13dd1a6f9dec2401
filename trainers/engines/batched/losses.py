"""The gradient by the logits of a weighted sum of losses, for M members in tensors."""

from typing import NamedTuple

import torch
from torch import Tensor

from trainers.hyperparameters import Hyperparameters
from trainers.methods.losses import PRESENT, STORED, TEACHER, Losses, Term
from trainers.methods.penalty import column
from trainers.networks.base import Batch
from trainers.networks.losses import entropy_delta, one_hot, square_delta, taught_delta


class Weighed(NamedTuple):
    """What a step's losses are made from; parts: slices of the mini-batch and of each draw."""

    batch: Batch
    parts: list[slice]
    row_weight: Tensor
    """[M, B, 1] = 1/rows of its part."""
    values: Hyperparameters
    tasks: int
    """Begun so far."""
    stored: Tensor | None
    """[M, reference rows, outputs], where logits are stored."""
    teacher: Tensor | None
    """[M, mini-batch, outputs], the teacher's logits, where there is one."""
    groups: tuple[Tensor, Tensor] | None
    """As `networks.losses.taught_delta` has them, where there is one."""
    subtracted: bool


def pull(rule: Losses, step: Weighed, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (weighted sum of the losses [M], its gradient by the logits [M, B, outputs])."""
    loss, delta = logits.new_zeros(len(logits)), torch.zeros_like(logits)
    for term in rule.terms:
        if term.draw >= len(step.parts) or (term.loss == TEACHER and step.teacher is None):
            continue
        part = step.parts[term.draw]
        weight = term.weight(step.values, step.tasks)
        lost, by_logits = _of_term(term, step, part, logits[:, part])
        loss += weight * lost
        delta[:, part] += by_logits * step.row_weight[:, part] * column(column(weight))
    return loss, delta


def _of_term(term: Term, step: Weighed, part: slice, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (its loss [M], gradients [M, B, outputs] of the examples' own losses), without the term's weight."""
    allowed = None if step.batch.allowed is None else step.batch.allowed[:, part]
    weight = step.row_weight[:, part]
    if term.loss == STORED:
        assert step.stored is not None
        begin = step.parts[0].stop
        return square_delta(logits, step.stored[:, part.start - begin : part.stop - begin], allowed, weight)
    if term.loss == TEACHER:
        assert step.teacher is not None and step.groups is not None
        return taught_delta(logits, step.teacher, step.groups, step.values.temperature, weight)
    labels = step.batch.labels[:, part]
    if term.loss == PRESENT:
        present = one_hot(labels, logits).amax(1, keepdim=True) > 0
        allowed = present if allowed is None else allowed & present
    losses, delta = entropy_delta(logits, labels, allowed, weight, step.subtracted)
    return losses.sum(1), delta
