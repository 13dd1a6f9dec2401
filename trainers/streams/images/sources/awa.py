"""Animals with Attributes 2, with our own split: none is published."""

import zlib
from dataclasses import replace

import numpy as np

from trainers.streams.base import DataError
from trainers.streams.images.sources.base import TEST, TRAIN, UNUSED, Source, assemble
from trainers.streams.images.sources.folders import left_out
from trainers.streams.images.sources.tables import AWA_ATTRIBUTES, CLASSES, attributes, class_order, has
from trainers.streams.images.sources.trees import Tree

COLUMNS = 85  # attributes of a class
TRAINING, TESTING = 0.70, 0.15  # A-GEM's lists have 26,102, 5,600 and 5,620 (unused) of 37,322 images


def matches(tree: Tree) -> bool:
    """Returns whether the tree is laid out as published."""
    return "JPEGImages" in tree.folders("")


def read(tree: Tree) -> Source:
    """Returns the images, with label ids by classes.txt, split by class and file name alone.

    Raises DataError without classes.txt, and where a class has fewer than two images.
    """
    if not has(tree, CLASSES):  # the order of its attributes' rows
        raise DataError(f"{tree.where} has no {CLASSES}, which numbers the classes")
    classes = class_order(tree, tree.folders("JPEGImages"))
    entries = []
    for label, name in enumerate(classes):
        folder = f"JPEGImages/{name}"
        images = tree.images(folder)
        if len(images) < 2:
            raise DataError(f"{tree.where}/{folder} has {len(images)} images; a class needs at least 2")
        parts = split(name, len(images))
        entries += [(part, label, image) for part, image in zip(parts, images, strict=True)]
    table = attributes(tree, AWA_ATTRIBUTES, len(classes), COLUMNS)
    rest = left_out(tree, [f"JPEGImages/{name}" for name in classes])
    return replace(assemble(tree.where, classes, entries, tree.read, tree.stamp, table), left_out=rest)


def split(name: str, count: int) -> list[int]:
    """Returns the part of each of a class's images, sorted by file name.

    At least one of two is for training, one for testing.

    >>> [split("zebra", 20).count(part) for part in (0, 1, 2)]
    [14, 3, 3]
    """
    testing = max(1, round(TESTING * count))
    training = min(max(1, round(TRAINING * count)), count - testing)
    parts = [TRAIN] * training + [TEST] * testing + [UNUSED] * (count - training - testing)
    # RandomState is frozen for good, so the split is the same with every version of NumPy.
    places = np.random.RandomState(zlib.crc32(name.encode())).permutation(count)
    return [parts[place] for place in places]
