"""Verdicts on a search: how far its answer is resolved, and the sentences that say so."""
