"""Access to an open ledger, and its repositories: leases, claims, queue, events."""
