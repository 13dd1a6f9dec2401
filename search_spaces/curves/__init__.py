"""Strategies that fit a curve: batches of the highest expected gain."""
