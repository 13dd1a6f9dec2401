"""Tests, intervals and curves for few paired seeds; the seed is the unit."""
