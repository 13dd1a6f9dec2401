"""Verdicts on a search: how far its answer is resolved, in sentences."""
