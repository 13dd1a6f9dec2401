"""CUB-200-2011 as published: lists beside the folder of images."""

from collections.abc import Collection

from trainers.streams.base import DataError
from trainers.streams.images.sources.base import TEST, TRAIN, Entry, Source, assemble, some
from trainers.streams.images.sources.tables import CUB_ATTRIBUTES, attributes, has, parse_numbered, whole
from trainers.streams.images.sources.trees import Tree

COLUMNS = 312  # attributes of a class


def matches(tree: Tree) -> bool:
    """Returns whether the tree is laid out as published."""
    return has(tree, "images.txt") and "images" in tree.folders("")


def read(tree: Tree) -> Source:
    """Returns the images, with labels, split and attributes from the lists, label ids from 0.

    Raises DataError where a list or an image is missing, or lists contradict each other.
    """
    classes = parse_numbered(tree, "classes.txt")
    images = parse_numbered(tree, "images.txt")
    of_class = _integers(tree, "image_class_labels.txt", images, classes.keys())
    training = _integers(tree, "train_test_split.txt", images, {0, 1})
    labels = {number: label for label, number in enumerate(classes)}
    entries = [
        (TRAIN if training[image] else TEST, labels[of_class[image]], f"images/{name}")
        for image, name in images.items()
    ]
    _check_all_there(tree, entries)
    table = attributes(tree, CUB_ATTRIBUTES, len(classes), COLUMNS)
    return assemble(tree.where, tuple(classes.values()), entries, tree.read, tree.stamp, table)


def _integers(tree: Tree, name: str, images: Collection[int], allowed: Collection[int]) -> dict[int, int]:
    """Returns {image: number} of a list of the same images, in any order.

    Raises DataError where a number is not allowed.
    """
    values = parse_numbered(tree, name)
    if values.keys() != set(images):
        raise DataError(f"{name} in {tree.where} has {len(values):,} images, images.txt has {len(images):,} or others")
    for image, value in values.items():
        if whole(value) not in allowed:
            numbers = f"{min(allowed)}…{max(allowed)}" if allowed else "nothing: classes.txt is empty"
            raise DataError(f"{name} in {tree.where}: image {image} has {value[:80]!r}, allowed is {numbers}")
    return {image: int(value) for image, value in values.items()}


def _check_all_there(tree: Tree, entries: list[Entry]) -> None:
    """Raises DataError where files are missing that the list has; listing folders is enough to know."""
    if missing := [name for *_, name in entries if not has(tree, name)]:
        raise DataError(
            f"images.txt in {tree.where} lists {len(entries):,} images, {len(missing):,} of them are missing: "
            f"{some(missing)}"
        )
