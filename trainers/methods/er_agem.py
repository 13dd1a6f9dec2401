"""ER + A-GEM (Hess, Tuytelaars & van de Ven, 2023): the gradient of an approximate joint loss, projected."""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.rules import MEMORY, MEMORY_BATCH, SAMPLED, Method, Mix, Mixing, Products, angle, where


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = j if j·g_ref >= 0, else j − (j·g_ref / g_ref·g_ref) g_ref.

    At the t-th task, j = g/t + (1 − 1/t) g_ref.
    """
    share = 1 / products.tasks
    along = share * products.gr + (1 - share) * products.rr
    projected = angle(products).usable & (along < 0)
    taken = where(projected, along, 0.0) / where(projected, products.rr, 1.0)
    return Mix(share, 1 - share - taken, projected)


ER_AGEM = Method(
    "ER + A-GEM", "Hess et al., 2023", Mixing(mix), SAMPLED, (MEMORY, MEMORY_BATCH), settings_of="er", named_only=True
)
