"""Engines of networks that grow."""
