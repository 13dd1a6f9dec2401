"""What can be said of a search: how far its answer is resolved, and the sentences that say so."""
