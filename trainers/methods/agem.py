"""A-GEM (Chaudhry et al., 2019, Eq. 11): projects onto the half-space in which the reference loss does not grow."""

import torch
from torch import Tensor

from trainers.methods.base import Method, Mix, Options, Products, angle, choose


def mix(products: Products, epsilon: Tensor, options: Options) -> Mix:
    """g̃ = g if g·g_ref >= 0, else g − (g·g_ref / g_ref·g_ref) g_ref, on raw gradients."""
    usable = angle(products).usable
    one = torch.ones_like(products.gg)
    b = -products.gr / torch.where(usable, products.rr, one)
    return choose(usable & (products.gr < 0), (one, b), one)


AGEM = Method(uses_memory=True, uses_epsilon=False, mix=mix)
