"""Searches along a curve through all scores: batches that are worth most, and the value that it names."""
