"""A-GEM (Chaudhry et al., 2019, Eq. 11).

Projects onto the half-space in which the reference loss does not grow.
"""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.rules import (
    MEMORY,
    MEMORY_BATCH,
    SAMPLED,
    SIGN,
    Method,
    Mix,
    Mixing,
    Products,
    angle,
    choose,
    where,
)


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = g if g·g_ref >= 0, else g − (g·g_ref / g_ref·g_ref) g_ref, on raw gradients."""
    usable = angle(products).usable
    b = -products.gr / where(usable, products.rr, 1.0)
    return choose(usable & (products.gr < 0), (1.0, b), 1.0)


AGEM = Method("A-GEM", "Chaudhry et al., 2019", Mixing(mix, needs=lambda values: SIGN), SAMPLED, (MEMORY, MEMORY_BATCH))
