"""The printed tables, and ours beside them."""
