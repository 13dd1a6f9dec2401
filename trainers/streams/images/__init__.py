"""Streams of image classes: found, decoded once, cut into tasks."""
