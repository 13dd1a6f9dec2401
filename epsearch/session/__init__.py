"""A training session: from the ledger to the last member, and the plan before it."""
