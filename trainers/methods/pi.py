"""PI (Zenke, Poole & Ganguli, 2017), as in A-GEM's code; si.py has SI as its authors published it.

The path integral of each parameter's gradient.
"""

from trainers.methods.penalty import DAMPING, STRENGTH, Penalty, State, TaskEnd, gather_path
from trainers.methods.rules import Method


def finish(state: State, end: TaskEnd) -> None:
    """Adds max(0, ω / ((θ − θ*)² + ξ)) to Ω, a sum over tasks; ω ← 0."""
    moved = (end.params - state["anchor"]).square_().add_(DAMPING)
    state["importance"].add_(state["path"].div(moved).clamp_(min=0))
    state["path"].zero_()


PI = Method("PI", "Zenke, Poole & Ganguli, 2017", Penalty(("path",), finish, gather_path), own=(STRENGTH,))
