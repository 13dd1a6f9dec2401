"""Images to measure with: real MNIST, or made-up pixels that are zero as often and in as many columns."""

import math
from pathlib import Path

import numpy as np

from trainers.streams.base import Examples, Images
from trainers.streams.images.image_set import ImageSet
from trainers.streams.pixels import mnist

MNIST_DENSITY, DIGITS_DENSITY = 0.191, 0.49  # share of pixels that are not zero
BRIGHTEST = 0.72  # how often the most used pixel of MNIST is not zero
CLASSES = 10


def real(data_dir: Path) -> Images:
    """MNIST as the project reads it; downloaded where it is missing."""
    return mnist.load(data_dir)


def made_up(examples: int, test: int, pixels: int = 784, density: float = MNIST_DENSITY) -> Images:
    """Random pixels with balanced labels.

    MNIST's pixels sorted by how often they are not zero follow a bell curve nearly to zero: a batch leaves almost a
    third of the columns empty. Pixels that were zero independently of their place would leave none empty.
    """
    rng = np.random.default_rng(0)
    width = density / (BRIGHTEST * math.sqrt(math.pi) / 2)
    used = BRIGHTEST * np.exp(-((np.arange(pixels) / pixels / width) ** 2))

    def part(count: int) -> Examples:
        shape = (count, pixels)
        lit = rng.random(shape, dtype=np.float32) < used.astype(np.float32)
        inputs = np.where(lit, rng.integers(1, 256, shape, dtype=np.uint8), np.uint8(0))
        return Examples(inputs, np.arange(count, dtype=np.int64) % CLASSES)

    return Images(part(examples), part(test), CLASSES, 255.0)


def made_up_set(classes: int, train: int, pixels: int) -> ImageSet:
    """Random square colour images of so many pixels: `train` of each class to train on, and one to test."""
    side = math.isqrt(pixels)
    drawn = np.random.default_rng(0).integers(0, 256, (classes * (train + 1), side, side, 3), dtype=np.uint8)
    place = np.arange(len(drawn))
    return ImageSet(
        pixels=drawn,
        labels=place % classes,
        test=place < classes,
        unused=np.zeros(len(drawn), dtype=np.bool_),
        classes=tuple(map(str, range(classes))),
        attributes=None,
        mean=(drawn[classes:].mean(axis=0) / 255).astype(np.float32),
        fingerprint=f"made up of {drawn.shape}",
    )


def cut(images: Images, examples: int, test: int) -> Images:
    """The first training and test images: few tests cost next to nothing, so that steps alone are measured."""
    train = Examples(*(array[:examples] for array in images.train))
    return Images(train, Examples(*(array[:test] for array in images.test)), images.classes, images.largest)


def density(images: Images) -> float:
    """Share of training pixels that are not zero."""
    return float(np.count_nonzero(images.train.inputs) / images.train.inputs.size)
