"""A-A-GEM (ε-SOFT-GEM paper, Algorithm 1): averages the two gradients when they disagree."""

import torch
from torch import Tensor

from trainers.methods.base import Method, Mix, Options, Products, angle, choose


def mix(products: Products, epsilon: Tensor, options: Options) -> Mix:
    """g̃ = (ĝ + ĝ_ref)/2 if ĝ·ĝ_ref < 0, else g.

    `scale="raw"` averages the raw gradients, (g + g_ref)/2. The threshold stays at zero: the method has no ε.
    """
    between = angle(products)
    one = torch.ones_like(products.gg)
    unit = options.scale == "unit"
    when = (0.5 / between.g_norm, 0.5 / between.r_norm) if unit else (0.5 * one, 0.5 * one)
    otherwise = one if options.satisfied == "raw" else 1 / between.g_norm
    return choose(between.usable & (between.cosine < 0), when, otherwise)


A_AGEM = Method(uses_memory=True, uses_epsilon=False, mix=mix)
