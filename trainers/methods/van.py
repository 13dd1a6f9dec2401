"""VAN: plain SGD, carried over from task to task."""

from trainers.methods.base import Method, Mix, Number, Options, Products, choose


def mix(products: Products, epsilon: Number, options: Options) -> Mix:
    """g̃ = g: a squared norm is never negative, so nothing is ever projected."""
    return choose(products.gg < 0, (1.0, 0.0), 1.0)


VAN = Method(uses_memory=False, uses_epsilon=False, mix=mix)
