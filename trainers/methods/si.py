"""SI, synaptic intelligence (Zenke, Poole & Ganguli, 2017), as in its authors' code (`pathint`)."""

from trainers.hyperparameters import Hyperparameter
from trainers.methods.penalty import STRENGTH, Penalty, State, TaskEnd, column, gather_path
from trainers.methods.rules import Method


def finish(state: State, end: TaskEnd) -> None:
    """Sets Ω ← max(0, Ω + ω / ((θ − θ*)² + ξ)); ω ← 0."""
    moved = (end.params - state["anchor"]).square_().add_(column(end.values.damping))
    state["importance"].add_(state["path"].div(moved)).clamp_(min=0)
    state["path"].zero_()


DAMPING = Hyperparameter(
    "damping",
    "ξ of SI: what is added to the squared distance that a parameter moved.",
    default=0.1,
    closed=False,
    per_learner=True,
    later=True,
    label="ξ",
    stability=-1,
)
SI = Method(
    "SI",
    "Zenke, Poole & Ganguli, 2017",
    Penalty(("path",), finish, gather_path),
    own=(STRENGTH, DAMPING),
    settings_of="pi",
    named_only=True,
)
