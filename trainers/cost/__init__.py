"""Cost of a run: FLOP by formula, speed by measurement."""
