"""Drives a search strategy: races over seeds, and the value that a curve names."""
