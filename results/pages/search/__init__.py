"""The report of a search, by its sections: what was chosen, how far to trust it, the evaluation, every point."""
