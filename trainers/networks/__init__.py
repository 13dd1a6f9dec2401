"""Networks over a matrix of parameters [M, D], one row a member."""

from trainers.networks.mlp import MLP

__all__ = ["MLP"]
