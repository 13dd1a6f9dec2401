"""A-A-GEM (ε-SOFT-GEM paper, Algorithm 1): averages the two gradients when they disagree."""

from trainers.hyperparameters import Hyperparameter, Hyperparameters
from trainers.methods.rules import (
    MEMORY,
    MEMORY_BATCH,
    NORM,
    SAMPLED,
    SATISFIED,
    SCALES,
    SIGN,
    Method,
    Mix,
    Mixing,
    Products,
    angle,
    choose,
)


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = (ĝ + ĝ_ref)/2 if ĝ·ĝ_ref < 0, else g.

    `a_agem_scale="raw"` averages the raw gradients, (g + g_ref)/2. The threshold stays at zero: the method has no ε.
    """
    between = angle(products)
    when = (0.5 / between.g_norm, 0.5 / between.r_norm) if values.a_agem_scale == "unit" else (0.5, 0.5)
    otherwise = 1.0 if values.satisfied == "raw" else 1 / between.g_norm
    return choose(between.usable & (between.cosine < 0), when, otherwise)


def needs(values: Hyperparameters) -> str:
    """Returns SIGN where the sign of g·g_ref is enough, else NORM.

    A unit g, where the constraint is satisfied, also depends on whether g_ref vanishes.
    """
    return SIGN if values.satisfied == "raw" else NORM


A_AGEM_SCALE = Hyperparameter(
    "a_agem_scale",
    "A-A-GEM averages unit gradients, as printed, or raw ones, which reproduce its printed row.",
    default="unit",
    choices=SCALES,
)
A_AGEM = Method(
    "A-A-GEM",
    "ε-SOFT-GEM paper, Algorithm 1",
    Mixing(mix, needs=needs),
    SAMPLED,
    (MEMORY, MEMORY_BATCH, A_AGEM_SCALE, SATISFIED),
    title_suffix=lambda values: " (raw average)" if values.a_agem_scale == "raw" else "",
    variants=(("a_agem_scale", "raw"),),
)
