"""Small streams for tests: real digits, or toy images with chosen troubles."""

from pathlib import Path

import numpy as np

from trainers.streams import PermutedStream, open_stream
from trainers.streams.base import Examples, Images


def digits(tasks=range(3), examples=None):
    return open_stream("permuted_digits", Path("."), tasks, examples)


def toy(tasks=range(3), examples=60, classes=4, pixels=9, largest=255.0):
    """Images whose class shows in the brightness of a few pixels."""
    rng = np.random.default_rng(0)

    def part(count):
        labels = np.arange(count) % classes
        bright = rng.integers(0, 120, (count, pixels))
        bright[np.arange(count), labels] += 130
        return Examples(bright.astype(np.uint8), labels.astype(np.int64))

    return PermutedStream(Images(part(80), part(40), classes, largest), tasks, examples)
