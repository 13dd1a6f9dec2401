"""MAS (Aljundi et al., 2018).

A parameter is important where the outputs are sensitive to it.
"""

from trainers.methods.penalty import PENALTY_FORM, STRENGTH, Penalty, State, TaskEnd
from trainers.methods.rules import Method


def finish(state: State, end: TaskEnd) -> None:
    """Sets Ω = (1/n) Σ over mini-batches of |∇ Σ ‖logits‖²| on the task's n training examples.

    As in A-GEM's released code Ω replaces that of earlier tasks; with penalty_form "paper" it adds to them, which makes
    a difference from the end of the second task on.
    """
    importance = state["importance"]
    if end.values.penalty_form == "code":
        importance.zero_()
    for gradient in end.sensitivities():
        importance.add_(gradient.abs(), alpha=1 / end.examples)


MAS = Method(
    "MAS",
    "Aljundi et al., 2018",
    Penalty((), finish, looks_back=True),
    own=(STRENGTH, PENALTY_FORM),
    late=("penalty_form",),
)
