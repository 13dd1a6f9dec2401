"""VAN: plain SGD, carried over from task to task."""

from trainers.cohort import TrainConfig
from trainers.methods.base import Method, Mix, Mixing, Number, Products, choose


def mix(products: Products, epsilon: Number, config: TrainConfig) -> Mix:
    """g̃ = g: a squared norm is never negative, so nothing is ever projected."""
    return choose(products.gg < 0, (1.0, 0.0), 1.0)


VAN = Method("VAN", "plain SGD", Mixing(mix))
