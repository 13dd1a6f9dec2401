"""The ledger: run records in a database, with checksums and leases."""
