"""GEM (Lopez-Paz & Ranzato, 2017): no previous task's loss may grow, by the smallest change of the gradient."""

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import TrainConfig
from trainers.methods.base import PER_TASK, Method, Projection
from trainers.methods.quadratic import solve

RIDGE = 1e-3  # on the diagonal of the dual problem, as in GEM's released code


def direction(g: Tensor, references: Tensor, config: TrainConfig) -> tuple[Tensor, Tensor]:
    """g̃ = g if no ⟨g, g_k⟩ < 0, else g + Gᵀv.

    v solves the dual: min ½ vᵀ(GGᵀ + 10⁻³·I)v + (Gg)ᵀv subject to v >= margin, where the rows of G are the g_k. Both
    products are made in float64: the rounding of those of long gradients would exceed the ridge. A member whose
    gradients are not finite keeps g.
    """
    rows = references.double()
    products = torch.bmm(rows, g.double()[:, :, None])[..., 0].cpu().numpy()
    gram = torch.bmm(rows, rows.mT).cpu().numpy()
    finite = np.isfinite(products).all(axis=1) & np.isfinite(gram).all(axis=(1, 2))
    projected = finite & (products < 0).any(axis=1)
    multipliers = np.zeros_like(products)
    if projected.any():
        ridge = RIDGE * np.eye(products.shape[1])
        multipliers[projected] = solve(gram[projected] + ridge, products[projected], config.margin)
    v, where = torch.from_numpy(multipliers).to(g), torch.from_numpy(projected).to(g.device)
    return torch.where(where[:, None], g + torch.bmm(v[:, None], references)[:, 0], g), where


GEM = Method(Projection(direction), PER_TASK, ("memory", "margin"))
