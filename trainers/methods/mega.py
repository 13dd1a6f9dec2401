"""MEGA-I and MEGA-II (Guo et al., 2020).

Mixes of both gradients by the losses of their batches: what is learned less well weighs more.
"""

from trainers.hyperparameters import Hyperparameter, Hyperparameters
from trainers.methods.rules import (
    CANCELLED,
    MEMORY,
    MEMORY_BATCH,
    SAMPLED,
    Method,
    Mix,
    Mixing,
    Products,
    angle,
    root,
    where,
)


def mix_by_ratio(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = g + (ℓ_ref/ℓ) g_ref, or g_ref alone where ℓ <= `sensitivity`."""
    learns = products.loss > values.sensitivity
    ratio = products.reference_loss / where(learns, products.loss, 1.0)
    return Mix(where(learns, 1.0, 0.0), where(learns, ratio, 1.0), products.share < 0)  # nothing is ever projected


def mix_by_rotation(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = ‖g‖ s/‖s‖ with s = ℓ ĝ + ℓ_ref ĝ_ref.

    g is rotated by the β at which ℓ cos β + ℓ_ref cos(θ̃ − β) is largest. That sum is the inner product of s and a unit
    vector at the angle β from g, θ̃ that of g_ref; so it is largest along s. Where one of the gradients, or s, has no
    direction, g stays.
    """
    between, loss, reference = angle(products), products.loss, products.reference_loss
    square = (loss - reference) ** 2 + 2 * loss * reference * (1 + between.cosine)
    usable = between.usable & (square > CANCELLED * (loss + reference) ** 2)
    length = root(where(usable, square, 1.0))
    b = reference / length * (between.g_norm / between.r_norm)
    return Mix(where(usable, loss / length, 1.0), where(usable, b, 0.0), products.share < 0)


SENSITIVITY = Hyperparameter(
    "sensitivity",
    "Loss of a mini-batch up to which MEGA-I takes g_ref alone.",
    default=1e-10,
    per_learner=True,
    later=True,
)
_SOURCE, _OWN = "Guo et al., 2020", (MEMORY, MEMORY_BATCH)
MEGA_I = Method(
    "MEGA-I", _SOURCE, Mixing(mix_by_ratio), SAMPLED, (*_OWN, SENSITIVITY), settings_of="agem", named_only=True
)
MEGA_II = Method("MEGA-II", _SOURCE, Mixing(mix_by_rotation), SAMPLED, _OWN, settings_of="agem", named_only=True)
