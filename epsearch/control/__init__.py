"""Cancelling, watching, resuming, deleting and cleaning of stored studies."""
