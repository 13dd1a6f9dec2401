"""Inner products of gradients, with the precision that projections need."""

from trainers.methods.penalty import Tensor


def inner(rows: Tensor, vector: Tensor) -> Tensor:
    """Returns ⟨rows_k, vector⟩ of M members over all D entries: rows [M, K, D], vector [M, D] -> [M, K]."""
    import torch  # methods are declared without it

    if rows.is_cuda:
        return sum_in_float64(rows, vector)
    return torch.bmm(rows, vector[:, :, None])[..., 0]


def sum_in_float64(rows: Tensor, vector: Tensor) -> Tensor:
    """Returns `inner`, summed in float64.

    A GPU's product is one long float32 sum, or of 10 bits where tf32 is allowed.
    """
    import torch

    products = [(row * vector).sum(1, dtype=torch.float64) for row in rows.unbind(1)]
    return torch.stack(products, 1).to(vector.dtype)
