"""The registry of methods: a name, and how a step direction is made from the two gradients."""

from trainers.methods.a_agem import A_AGEM
from trainers.methods.agem import AGEM
from trainers.methods.base import Method, Options, Products, update
from trainers.methods.soft_agem import SOFT_AGEM
from trainers.methods.van import VAN

METHODS: dict[str, Method] = {
    "van": VAN,
    "agem": AGEM,
    "a_agem": A_AGEM,
    "soft_agem": SOFT_AGEM,
}

__all__ = ["METHODS", "Method", "Options", "Products", "update"]
