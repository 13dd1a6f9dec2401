"""Inner products of long gradients, on which the sign of a projection's condition hangs."""

import torch

from trainers.methods.inner import inner, sum_in_float64


def test_in_float64_a_product_keeps_its_sign_where_float32_loses_it():
    """Two long, nearly orthogonal gradients: what is left of a million terms is less than their rounding."""
    torch.manual_seed(0)
    g = torch.randn(2, 10**6)
    r = torch.randn(2, 10**6)
    r -= (g * r).sum(1, keepdim=True) / (g * g).sum(1, keepdim=True) * g
    exact = (g.double() * r.double()).sum(1)
    scale = g.norm(dim=1) * r.norm(dim=1)
    found = sum_in_float64(r[:, None], g)[:, 0]
    assert found.dtype == torch.float32
    assert ((found.double() - exact).abs() / scale).max() < 1e-10
    products = g * r
    naive = torch.stack([products[:, part::1000].sum(1) for part in range(1000)]).cumsum(0)[-1]
    assert ((naive.double() - exact).abs() / scale).max() > 1e-10  # so that the bound says something


def test_both_ways_are_of_every_row():
    torch.manual_seed(0)
    rows, vector = torch.randn(3, 4, 50), torch.randn(3, 50)
    expected = torch.einsum("mkd,md->mk", rows, vector)
    for found in (inner(rows, vector), sum_in_float64(rows, vector)):
        assert found.shape == (3, 4) and torch.allclose(found, expected, atol=1e-5)
