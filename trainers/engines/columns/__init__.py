"""Engines for networks that grow by a column a task."""
