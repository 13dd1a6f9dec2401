"""Datasets of pixels."""
