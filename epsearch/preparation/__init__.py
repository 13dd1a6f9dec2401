"""Turns options into a study that can start: checks, data, numeric path."""
