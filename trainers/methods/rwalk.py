"""RWALK, Riemannian walk (Chaudhry et al., 2018).

EWC's Fisher estimate plus PI's path, measured by Fisher distance. The default is A-GEM's released code, which made the
published numbers. Its squares are never forgotten within a task, so the Fisher estimate grows with the step count and
damps the scores; and its score is S + (S + Ω)/2. With penalty_form "paper" the squares start anew with every estimate,
the distance has its ½, and the score is (S + Ω)/2.
"""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.penalty import (
    DAMPING,
    FISHER_EVERY,
    PENALTY_FORM,
    STRENGTH,
    Penalty,
    State,
    Step,
    TaskEnd,
    Tensor,
    gather_path,
    gather_squares,
    normalise,
    refresh_fisher,
)
from trainers.methods.rules import Method


def observe(state: State, step: Step, direction: Tensor) -> None:
    """Adds the step to the squares of the Fisher estimate and to the path."""
    gather_squares(state, step, direction)
    gather_path(state, step, direction)


def refresh(state: State, params: Tensor, values: Hyperparameters) -> None:
    """Adds max(0, ω / (F·(θ − θ_Δ)² + ξ)) to Ω, with F before its own update; ω ← 0, θ_Δ ← θ."""
    paper = values.penalty_form == "paper"
    distance = (params - state["since"]).square_().mul_(state["fisher"]).mul_(0.5 if paper else 1.0)
    state["gain"].add_(state["path"].div(distance.add_(DAMPING)).clamp_(min=0))
    refresh_fisher(state, values)
    if paper:
        state["squares"].zero_()
    state["path"].zero_()
    state["since"].copy_(params)


def finish(state: State, end: TaskEnd) -> None:
    """Updates S from the task's Ω, which counts twice after the first task; importance F̃ + S̃.

    Both are scaled to [0, 1].
    """
    gain, score = state["gain"], state["score"]
    if end.first:
        gain.mul_(2)
    half = (score + gain).div_(2)
    score.copy_(half if end.values.penalty_form == "paper" else score + half)
    state["importance"].copy_(normalise(state["fisher"], end.real) + normalise(score, end.real))
    for name in ("squares", "path", "gain"):
        state[name].zero_()
    state["since"].copy_(end.params)


RWALK = Method(
    "RWALK",
    "Chaudhry et al., 2018",
    # θ_Δ, the parameters at the last refresh, begins where the parameters do.
    Penalty(("squares", "fisher", "path", "gain", "score"), finish, observe, refresh, copies=("since",)),
    own=(STRENGTH, FISHER_EVERY, PENALTY_FORM),
)
