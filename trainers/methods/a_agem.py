"""A-A-GEM (ε-SOFT-GEM paper, Algorithm 1): averages the two gradients when they disagree."""

from trainers.cohort import TrainConfig
from trainers.methods.base import SAMPLED, Method, Mix, Mixing, Number, Products, angle, choose


def mix(products: Products, epsilon: Number, config: TrainConfig) -> Mix:
    """g̃ = (ĝ + ĝ_ref)/2 if ĝ·ĝ_ref < 0, else g.

    `a_agem_scale="raw"` averages the raw gradients, (g + g_ref)/2. The threshold stays at zero: the method has no ε.
    """
    between = angle(products)
    when = (0.5 / between.g_norm, 0.5 / between.r_norm) if config.a_agem_scale == "unit" else (0.5, 0.5)
    otherwise = 1.0 if config.satisfied == "raw" else 1 / between.g_norm
    return choose(between.usable & (between.cosine < 0), when, otherwise)


A_AGEM = Method(Mixing(mix), SAMPLED, ("memory", "memory_batch", "a_agem_scale", "satisfied"))
