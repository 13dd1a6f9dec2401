"""Rules whose step is one gradient, of a weighted sum of losses at the logits.

A step's batch has the mini-batch and as many draws of the memory as the terms name; each passes through the network
once, and several terms may look at the same part. What a loss compares the logits with, besides labels, is kept in the
learner's state: logits beside the memory's examples, or the last task's network.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from trainers.hyperparameters import Hyperparameters

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = Any  # methods are declared without torch, which takes seconds to load

# Losses of a part of the batch, each a mean over its examples. Cross-entropy over the outputs that compete; …
CROSS_ENTROPY = "cross-entropy"
# … over those of them that the part has examples of: absent classes are masked;
PRESENT = "cross-entropy of present classes"
# ‖z − z_stored‖²/outputs, of the logits that were stored with the example; outputs that do not compete count 0;
STORED = "square to stored logits"
# T²·KL(teacher ‖ network) of softmax(z/T), by the network at the end of the last task, over outputs of earlier tasks
# (`streams.competing.distillation_outputs`); 0 in the first one.
TEACHER = "distillation"

LOGITS, TAUGHT = "logits", "teacher"
"""Names in a learner's state: stored logits [M, slots, outputs], and the teacher's parameters [M, D]."""


class Term(NamedTuple):
    """A loss of a part of the step's batch, and its weight."""

    loss: str
    """CROSS_ENTROPY, PRESENT, STORED or TEACHER."""
    weight: Callable[[Hyperparameters, int], Any]
    """weight(values, tasks): values as for a mix, tasks begun so far, the current one included; a number or [M]."""
    draw: int = 0
    """Which part: 0 for the mini-batch, 1, 2, … for independent draws of the memory, left out while that is empty."""


class Losses(NamedTuple):
    """A rule without a direction of its own: that of the gradient of Σ weight·loss."""

    terms: tuple[Term, ...]

    @property
    def draws(self) -> int:
        """Number of independent draws of the memory in each step."""
        return max(term.draw for term in self.terms)

    @property
    def stores(self) -> bool:
        """True if logits are stored with the memory's examples, as they enter."""
        return any(term.loss == STORED for term in self.terms)

    @property
    def taught(self) -> bool:
        """True if the last task's network is kept as a teacher."""
        return any(term.loss == TEACHER for term in self.terms)

    def start(self, params: Tensor, slots: int, outputs: int) -> dict[str, Tensor]:
        """Returns the state of untrained networks [M, D]: stored logits, the teacher, or neither."""
        logits = {LOGITS: params.new_zeros(len(params), slots, outputs)} if self.stores else {}
        return logits | ({TAUGHT: params.clone()} if self.taught else {})

    def end_task(self, state: dict[str, Tensor], params: Tensor) -> None:
        """Makes the network [M, D] the teacher, with its statistics if it has some."""
        if self.taught:
            state[TAUGHT].copy_(params)
            for name, array in statistics_of(state).items():
                array.copy_(state[name])


def statistics_of(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the teacher's statistics in a state, by the network's names."""
    begin = f"{TAUGHT}."
    return {name.removeprefix(begin): array for name, array in state.items() if name.startswith(begin)}
