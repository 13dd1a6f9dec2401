"""Who may write to a study: leases, claims on members, states, and the events of a run."""
