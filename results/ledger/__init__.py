"""Records of runs, the database that stores them, and the checksums that protect them."""
