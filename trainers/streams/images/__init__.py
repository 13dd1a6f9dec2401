"""Streams of image classes: decoding, cache, split into tasks."""
