"""Records of runs, the database that stores them, checksums and leases that protect them."""
