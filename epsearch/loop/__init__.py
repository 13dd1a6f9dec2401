"""Loops that say which members a study needs next and record their results."""
