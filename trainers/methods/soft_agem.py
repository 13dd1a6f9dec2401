"""ε-SOFT-GEM (its paper's Algorithm 1).

A-GEM's projection with a soft constraint, on unit vectors.
"""

from trainers.hyperparameters import Hyperparameter, Hyperparameters
from trainers.methods import agem
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
    where,
)

TRIGGERS = ("zero", "epsilon")


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = g if c = ĝ·ĝ_ref >= 0, else ĝ − (c − ε) ĝ_ref, so that g̃·ĝ_ref = ε.

    The projected direction has unit scale: it is not multiplied back by ‖g‖. ε = 0 is A-GEM on raw gradients.
    `trigger="epsilon"` projects when c < ε; `scale="raw"` takes g − (c − ε) g_ref; `satisfied="unit"` takes ĝ.
    """
    between = angle(products)
    threshold = 0.0 if values.trigger == "zero" else values.epsilon
    shortfall = values.epsilon - between.cosine
    when = (1 / between.g_norm, shortfall / between.r_norm) if values.scale == "unit" else (1.0, shortfall)
    otherwise = 1.0 if values.satisfied == "raw" else 1 / between.g_norm
    soft = choose(between.usable & (between.cosine < threshold), when, otherwise)
    hard = agem.mix(products, values)
    # Both are always made: of a batch of learners some may have ε = 0.
    return Mix(*(where(values.epsilon == 0, h, s) for h, s in zip(hard, soft, strict=True)))


def needs(values: Hyperparameters) -> str:
    """Returns SIGN where the sign of g·g_ref is enough, else NORM.

    The sign is enough where it alone triggers and a satisfied constraint leaves g as it is, as ε = 0 always does. The
    cosine and a unit g are only known with ‖g_ref‖, without which a vanishing g_ref is not seen.
    """
    by_sign = values.trigger == "zero" and values.satisfied == "raw"
    return SIGN if by_sign or values.epsilon == 0 else NORM


EPSILON = Hyperparameter(
    "epsilon",
    "ε of ε-SOFT-GEM, where it is not searched.",
    usual="the one the paper reports, or 0.5",
    default=0.5,
    high=1,
    per_learner=True,
    published="reported_epsilon",
    label="ε",
    stability=1,
)
TRIGGER = Hyperparameter(
    "trigger",
    "Project when the cosine is below zero, or below epsilon.",
    default="zero",
    choices=TRIGGERS,
)
SCALE = Hyperparameter("scale", "Project unit gradients, or raw ones.", default="unit", choices=SCALES)
SOFT_AGEM = Method(
    "ε-SOFT-GEM",
    "ε-SOFT-GEM paper, Algorithm 1",
    Mixing(mix, needs=needs),
    SAMPLED,
    (EPSILON, MEMORY, MEMORY_BATCH, TRIGGER, SCALE, SATISFIED),
    title_suffix=lambda values: f", ε = {values.epsilon:.6g}",
    at_zero="agem",
)
