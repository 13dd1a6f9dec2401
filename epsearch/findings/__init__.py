"""What stands in a ledger: studies listed, loaded, and as their reports take them."""
