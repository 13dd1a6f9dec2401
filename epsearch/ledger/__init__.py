"""Where the ledger is, and what cannot be read of it."""
