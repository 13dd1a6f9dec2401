"""Datasets whose pixels are permuted."""
