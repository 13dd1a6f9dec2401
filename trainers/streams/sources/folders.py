"""Images in a folder a class, or a zip file of them: train/<class>/ and test/<class>/, or <class>/ alone."""

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError
from trainers.streams.sources.base import PARTS, TEST, TRAIN, Entry, Source, assemble, is_image
from trainers.streams.sources.tables import AWA_ATTRIBUTES, CLASSES, CUB_ATTRIBUTES, attributes, class_order, has
from trainers.streams.sources.trees import Tree

TEST_EVERY = 5  # of a class's images by name, where there are no folders train and test
SPLIT = PARTS[:2]
LAYOUT = "images belong in train/<class>/ and test/<class>/, or in <class>/"


def matches(tree: Tree) -> bool:
    """Whether a tree that may hold anything is nothing but class folders."""
    classes = _plain(tree)
    whole = len(classes) > 1 and all(_images(tree, name) for name in classes)
    return set(SPLIT) <= set(tree.folders("")) or whole


def read(tree: Tree, columns: int | None = None) -> Source:
    """Classes by name, or by classes.txt; columns: the allowed number of attributes. Raises DataError."""
    top = _top(tree)
    parts = [part for part in SPLIT if part in top.folders("")]
    if len(parts) == 1:
        missing = next(part for part in SPLIT if part not in parts)
        raise DataError(f"{top.where} has a folder {parts[0]} but no folder {missing}; {LAYOUT}")
    folders = sorted({name for part in SPLIT for name in top.folders(part)}) if parts else _plain(top)
    if not folders:
        raise DataError(f"no class folders in {top.where}; {LAYOUT}")
    classes = class_order(top, folders)
    entries = _split(top, classes) if parts else _unsplit(top, classes)
    return assemble(top.where, classes, entries, top.read, top.stamp, _attributes(top, len(classes), columns))


def _top(tree: Tree) -> Tree:
    """The tree, or the one folder that an archive often has around everything."""
    folders = tree.folders("")
    alone = len(folders) == 1 and folders[0] not in SPLIT and not _images(tree, folders[0])
    return tree.below(folders[0]) if alone else tree


def _plain(tree: Tree) -> list[str]:
    return [name for name in tree.folders("") if name != "attributes"]


def _images(tree: Tree, folder: str) -> list[str]:
    return [f"{folder}/{file}" for file in tree.files(folder) if is_image(file)]


def _split(tree: Tree, classes: tuple[str, ...]) -> list[Entry]:
    return [
        Entry(part, label, image)
        for part, folder in enumerate(SPLIT)
        for label, name in enumerate(classes)
        for image in _images(tree, f"{folder}/{name}")
    ]


def _unsplit(tree: Tree, classes: tuple[str, ...]) -> list[Entry]:
    entries = []
    for label, name in enumerate(classes):
        images = _images(tree, name)
        if len(images) < TEST_EVERY:
            raise DataError(
                f"{tree.where}/{name} has {len(images)} images; every {TEST_EVERY}th is for testing, so a class needs "
                f"{TEST_EVERY}, or folders train and test"
            )
        testing = range(TEST_EVERY - 1, len(images), TEST_EVERY)
        entries += [Entry(TEST if at in testing else TRAIN, label, image) for at, image in enumerate(images)]
    return entries


def _attributes(tree: Tree, classes: int, columns: int | None) -> NDArray[np.float32] | None:
    name = next((name for name in (CUB_ATTRIBUTES, AWA_ATTRIBUTES) if has(tree, name)), None)
    if name == AWA_ATTRIBUTES and not has(tree, CLASSES):  # the published rows are not in the order of the names
        raise DataError(f"{tree.where} has {name} but no {CLASSES}, which says whose rows those are")
    return attributes(tree, name, classes, columns) if name else None
