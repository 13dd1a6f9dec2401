"""Small streams for tests: real digits, or toy images with chosen troubles."""

from pathlib import Path

from epsearch.testing.toy import toy as toy
from trainers.streams import open_stream


def digits(tasks=range(3), examples=None):
    return open_stream("permuted_digits", Path("."), tasks, examples)
