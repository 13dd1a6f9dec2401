"""Records of runs, the database they stand in, and what seals them."""
