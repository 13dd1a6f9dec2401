"""The CPU engine, compiled by Numba."""
