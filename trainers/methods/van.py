"""VAN: plain SGD, carried over from task to task."""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.rules import Method, Mix, Mixing, Products, choose


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the mix g̃ = g: a squared norm is never negative, so nothing is ever projected."""
    return choose(products.gg < 0, (1.0, 0.0), 1.0)


VAN = Method("VAN", "plain SGD", Mixing(mix))
