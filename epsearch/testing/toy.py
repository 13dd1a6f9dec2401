"""Small streams of artificial images, for fast trainings."""

import numpy as np

from trainers.streams import PermutedStream, SplitPixelsStream
from trainers.streams.base import Examples, Images


def toy(
    tasks: range = range(3),
    examples: int | None = 60,
    classes: int = 4,
    pixels: int = 9,
    largest: float = 255.0,
) -> PermutedStream:
    """Returns a stream of images with a bright pixel per class; 80 for training, 40 for tests."""
    rng = np.random.default_rng(0)

    def part(count: int) -> Examples:
        labels = np.arange(count) % classes
        bright = rng.integers(0, 120, (count, pixels))
        bright[np.arange(count), labels] += 130
        return Examples(bright.astype(np.uint8), labels.astype(np.int64))

    return PermutedStream(Images(part(80), part(40), classes, largest), tasks, examples)


def pairs(scenario: str, tasks: range = range(3), examples: int | None = None) -> SplitPixelsStream:
    """Returns tasks of two classes each, out of six, of such images; 26 or 27 for training, 14 or 13 for tests."""
    images = toy(classes=6).images
    return SplitPixelsStream(images, tasks, 2, examples, scenario)


def black(images: int = 60, pixels: int = 9, classes: int = 4) -> PermutedStream:
    """Returns a stream of black images, with zero gradients of the first layer's weights."""
    labels = np.arange(images) % classes
    part = Examples(np.zeros((images, pixels), dtype=np.uint8), labels.astype(np.int64))
    return PermutedStream(Images(part, part, classes, 255.0), range(3), images)
