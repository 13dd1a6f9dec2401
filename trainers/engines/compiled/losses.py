"""The gradient by the logits of a weighted sum of losses, of one member on a CPU."""

import numpy as np
from numpy.typing import NDArray

from trainers.engines.compiled import kernels
from trainers.engines.compiled.kernels import Floats
from trainers.hyperparameters import Hyperparameters
from trainers.methods.losses import PRESENT, STORED, TEACHER, Losses
from trainers.schedule import Indices, Segment

Groups = tuple[NDArray[np.bool_], NDArray[np.bool_]]


class Weighing:
    """What the terms of a rule look at in the loaded task.

    tasks: begun so far; groups: `Pool.distillation_outputs`; subtracted: see `networks.losses.output_delta`.
    """

    def __init__(
        self, rule: Losses, tasks: int, competing: NDArray[np.bool_], groups: Groups, subtracted: bool
    ) -> None:
        self._rule, self._tasks, self._competing, self._subtracted = rule, tasks, competing, subtracted
        self._groups = groups
        self.taught = rule.taught and len(groups[0]) > 0
        """True if there is a teacher."""
        self.stores = rule.stores
        """True if logits are stored beside examples."""

    def pull(
        self,
        logits: Floats,
        labels: Indices,
        bounds: list[int],
        values: Hyperparameters,
        targets: tuple[Floats, Floats],
        into: Floats,
    ) -> float:
        """Writes the gradient by the logits [B, outputs] into `into`, whose padding stays; returns the weighted sum.

        bounds: where the mini-batch and each draw end, behind a 0; targets: (logits of the draws [reference, outputs],
        those that the teacher has for the mini-batch), empty where there are none.
        """
        stored, teacher = targets
        into = into[:, : logits.shape[1]]
        into[:] = 0
        loss = 0.0
        for term in (term for term in self._rule.terms if term.draw < len(bounds) - 1):
            begin, end = bounds[term.draw : term.draw + 2]
            weight, part = float(term.weight(values, self._tasks)), logits[begin:end]
            if term.loss == STORED:
                target = stored[begin - bounds[1] : end - bounds[1]]
                loss += kernels.add_square(part, target, labels[begin:end], self._competing, weight, into[begin:end])
            elif term.loss == TEACHER:
                if self.taught:
                    loss += kernels.add_taught(part, teacher, self._groups, values.temperature, weight, into[begin:end])
            else:
                competing = self._competing
                if term.loss == PRESENT:
                    competing = _present(labels[begin:end], competing, logits.shape[1])
                loss += self._entropy(part, labels[begin:end], competing, weight, into[begin:end])
        return loss

    def _entropy(
        self, logits: Floats, labels: Indices, competing: NDArray[np.bool_], weight: float, into: Floats
    ) -> float:
        """Adds a weighted cross-entropy's gradient; returns its weighted loss."""
        closed, delta = logits.copy(), np.empty_like(into)
        kernels.close_outputs(closed, labels, competing)
        rows, outputs = logits.shape
        loss, _ = kernels.output_delta(closed, labels, outputs, rows, delta, self._subtracted)
        into += np.float32(weight) * delta
        return float(weight * loss)


def _present(labels: Indices, competing: NDArray[np.bool_], outputs: int) -> NDArray[np.bool_]:
    """Returns the competing outputs [outputs, outputs] without those that no example of these labels has."""
    present = np.isin(np.arange(outputs), labels)
    return competing & present if len(competing) else np.tile(present, (outputs, 1))


def bounds_of(segment: Segment) -> list[int]:
    """Returns the bounds of the mini-batch and of each draw among a step's rows.

    >>> bounds_of(Segment(np.zeros((1, 7), dtype=np.int64), 3, (2, 2)))
    [0, 3, 5, 7]
    """
    ends = np.cumsum((0, segment.current, *segment.parts))
    return [int(end) for end in ends]


def store(logits: Floats, written: Indices, fresh: Floats) -> None:
    """Writes the logits of examples that enter the memory, in place: logits [slots, outputs], fresh [B, outputs].

    written [current]: each example's slot, −1 for none.
    """
    entered = written >= 0
    logits[written[entered]] = fresh[: len(written)][entered]
