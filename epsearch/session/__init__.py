"""One training, from the ledger to the last member; the plan of what is ahead."""
