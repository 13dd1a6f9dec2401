"""GEM (Lopez-Paz & Ranzato, 2017).

The smallest change of the gradient by which the loss of no previous task grows.
"""

from trainers.hyperparameters import Hyperparameter, Hyperparameters
from trainers.methods.inner import inner
from trainers.methods.penalty import Tensor
from trainers.methods.rules import MEMORY, PER_TASK, Method, Projection

RIDGE = 1e-3  # on the diagonal of the dual problem, as in GEM's released code

ROUNDING = 100  # units in the last place


def direction(g: Tensor, references: Tensor, values: Hyperparameters) -> tuple[Tensor, Tensor]:
    """Returns g̃ = g if no ⟨g, g_k⟩ < 0, else g + Gᵀv, and whether it was projected [M].

    v solves the dual: min ½ vᵀ(GGᵀ + 10⁻³·I)v + (Gg)ᵀv subject to v >= margin, where the rows of G are the g_k. Where a
    gradient is not finite, g stays.
    """
    import numpy as np  # these, too, which declaring the method does without
    import torch

    from trainers.methods.quadratic import solve

    finite = references.isfinite().all(dim=2).all(dim=1) & g.isfinite().all(dim=1)
    violated = (inner(references, g) < 0).any(dim=1)
    projected = (finite & violated).cpu().numpy()
    multipliers = np.zeros(references.shape[:2])
    if projected.any():
        rows = references[projected]
        gram = torch.bmm(rows, rows.mT).cpu().double().numpy()
        products = inner(rows, g[projected]).cpu().double().numpy()
        # The rounding of long gradients' products can exceed the ridge, and the matrix would not be positive definite.
        ridge = RIDGE + ROUNDING * torch.finfo(g.dtype).eps * np.abs(gram).max(axis=(1, 2), keepdims=True)
        multipliers[projected] = solve(gram + ridge * np.eye(gram.shape[1]), products, values.margin)
    v, where = torch.from_numpy(multipliers).to(g.dtype).to(g.device), torch.from_numpy(projected).to(g.device)
    return torch.where(where[:, None], g + torch.bmm(v[:, None], references)[:, 0], g), where


MARGIN = Hyperparameter("margin", "GEM's memory strength.", default=0.5)
GEM = Method("GEM", "Lopez-Paz & Ranzato, 2017", Projection(direction), PER_TASK, (MEMORY, MARGIN))
