"""Write access to a study: leases, claims on members, states, events."""
