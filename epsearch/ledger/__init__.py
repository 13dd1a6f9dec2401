"""Location of the ledger, its damaged rows, the log of evaluations."""
