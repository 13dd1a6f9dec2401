"""Images in a folder a class, or a zip file of them: train/<class>/ and test/<class>/, or <class>/ alone.

What is no image by its name, images outside the class folders and folders in these are not looked at. What would make
classes of folders that were not meant to be some is refused.
"""

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError
from trainers.streams.images.sources.base import PARTS, TEST, TRAIN, Entry, Source, assemble, some
from trainers.streams.images.sources.tables import AWA_ATTRIBUTES, CLASSES, CUB_ATTRIBUTES, attributes, class_order, has
from trainers.streams.images.sources.trees import Tree

TEST_EVERY = 5  # of a class's images by name, where there are no folders train and test
SPLIT = PARTS[:2]
AROUND = 8  # folders that an archive may have around everything, as one of absolute paths has
BESIDE = "attributes"  # a folder that CUB-200-2011 has beside its images
LAYOUTS = "train/<class>/ and test/<class>/, or <class>/, with images in each"


def matches(tree: Tree) -> bool:
    """Whether a tree that may hold anything is nothing but class folders."""
    if set(SPLIT) <= set(tree.folders("")):
        return True
    try:
        classes = _plain(tree)
        return len(classes) > 1 and all(tree.images(name) for name in classes)
    except DataError:  # lost+found, for one
        return False


def read(tree: Tree, columns: int | None = None, also: str = "") -> Source:
    """Classes by name, or by classes.txt; of class folders without parts every fifth image is for testing.

    columns: the allowed number of attributes, None for any. also: for which other layouts the caller has looked, for
    the message. Raises DataError where there are no such folders, or other folders that might be meant.
    """
    top, looked = _top(tree), f"looked for {LAYOUTS}{also}"
    parts = [part for part in SPLIT if part in top.folders("")]
    if len(parts) == 1:
        (missing,) = {*SPLIT} - {*parts}
        raise DataError(f"{top.where} has a folder {parts[0]} but no folder {missing}; {looked}")
    folders = sorted({name for part in SPLIT for name in top.folders(part)}) if parts else _plain(top)
    if wrong := _wrong(top, parts, folders):
        raise DataError(f"no class folders in {top.where}: {wrong}; {looked}")
    classes = class_order(top, folders)
    entries = _split(top, classes) if parts else _unsplit(top, classes)
    return assemble(top.where, classes, entries, top.read, top.stamp, _attributes(top, len(classes), columns))


def _top(tree: Tree) -> Tree:
    """The tree, or what is in the folders that an archive often has around everything."""
    for _ in range(AROUND):
        folders = tree.folders("")
        if len(folders) != 1 or folders[0] in SPLIT or tree.images(folders[0]):
            break
        tree = tree.below(folders[0])
    return tree


def _plain(tree: Tree) -> list[str]:
    """Folders that may be classes: attributes beside them are none, unless a class is called that."""
    return [name for name in tree.folders("") if name != BESIDE or tree.images(name)]


def _wrong(tree: Tree, parts: list[str], folders: list[str]) -> str:
    """Why these cannot be meant as classes; an empty text where they can. That a part lacks one is told later."""
    cased = [name for name in folders if not parts and name.lower() in SPLIT]
    if cased:
        return f"it has {some(cased)}, folders of parts are called train and test"
    for part in parts or [""]:
        names = [f"{part}/{name}" for name in tree.folders(part)] if part else folders
        empty = [name for name in names if not tree.images(name)]
        if not names:
            return f"{part or 'it'} has no folders"
        if len(empty) == len(names) or (empty and not part):
            return f"{len(empty):,} of {len(names):,} folders hold no image themselves ({some(empty)})"
    return ""


def _split(tree: Tree, classes: tuple[str, ...]) -> list[Entry]:
    """Images of train/<class>/ and test/<class>/."""
    return [
        Entry(part, label, image)
        for part, folder in enumerate(SPLIT)
        for label, name in enumerate(classes)
        for image in tree.images(f"{folder}/{name}")
    ]


def _unsplit(tree: Tree, classes: tuple[str, ...]) -> list[Entry]:
    """Images of <class>/, every fifth for testing. Raises DataError where a class has too few."""
    entries = []
    for label, name in enumerate(classes):
        images = tree.images(name)
        if len(images) < TEST_EVERY:
            raise DataError(
                f"{tree.where}/{name} has {len(images)} images; every {TEST_EVERY}th is for testing, so a class needs "
                f"{TEST_EVERY}, or folders train and test"
            )
        testing = range(TEST_EVERY - 1, len(images), TEST_EVERY)
        entries += [Entry(TEST if at in testing else TRAIN, label, image) for at, image in enumerate(images)]
    return entries


def _attributes(tree: Tree, classes: int, columns: int | None) -> NDArray[np.float32] | None:
    """The table of either published dataset, wherever it is; None without. Raises DataError."""
    name = next((name for name in (CUB_ATTRIBUTES, AWA_ATTRIBUTES) if has(tree, name)), None)
    if name == AWA_ATTRIBUTES and not has(tree, CLASSES):  # the published rows are not in the order of the names
        raise DataError(f"{tree.where} has {name} but no {CLASSES}, which says whose rows those are")
    return attributes(tree, name, classes, columns) if name else None
