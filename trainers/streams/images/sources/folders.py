"""Class folders of images, or a zip file of them.

train/<class>/ and test/<class>/, or <class>/ alone. What is no image by its name, images outside the class folders and
folders in these are counted, not read. What would make classes of folders that were not meant to be some is refused.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError
from trainers.streams.images.sources.base import (
    MOST_NAMED,
    PARTS,
    SUFFIXES,
    TEST,
    TRAIN,
    Entry,
    Source,
    assemble,
    printable,
    some,
)
from trainers.streams.images.sources.tables import AWA_ATTRIBUTES, CLASSES, CUB_ATTRIBUTES, attributes, class_order, has
from trainers.streams.images.sources.trees import Tree

TEST_EVERY = 5  # of a class's images by name, where there are no folders train and test
SPLIT = PARTS[:2]
MOST_WRAPPERS = 8  # folders that an archive may have around everything, as one of absolute paths has
ATTRIBUTES = "attributes"  # a folder that CUB-200-2011 has beside its images
LAYOUTS = "train/<class>/ and test/<class>/, or <class>/, with images in each"


def matches(tree: Tree) -> bool:
    """Returns whether a tree that may hold anything is nothing but class folders."""
    if set(SPLIT) <= set(tree.folders("")):
        return True
    try:
        classes = _plain(tree)
        return len(classes) > 1 and all(tree.images(name) for name in classes)
    except DataError:  # lost+found, for one
        return False


def read(tree: Tree, columns: int | None = None, also: str = "") -> Source:
    """Returns the images of class folders; of those without parts every fifth image is for testing.

    Classes are in the order of names, or of classes.txt.

    columns: the allowed number of attributes, None for any. also: for which other layouts the caller has looked, for
    the message. Raises DataError where there are no such folders, or other folders that might be meant.
    """
    top, looked = _top(tree), f"looked for {LAYOUTS}{also}"
    parts = [part for part in SPLIT if part in top.folders("")]
    if len(parts) == 1:
        (missing,) = {*SPLIT} - {*parts}
        third = f", and {some(others)}" if (others := _others(top)) else ""
        raise DataError(f"{top.where} has a folder {parts[0]} but no folder {missing}{third}; {looked}")
    folders = sorted({name for part in SPLIT for name in top.folders(part)}) if parts else _plain(top)
    if wrong := _wrong(top, parts, folders):
        raise DataError(f"no class folders in {top.where}: {wrong}; {looked}")
    classes = _classes(top, folders)
    entries = _split(top, classes) if parts else _unsplit(top, classes)
    table = _attributes(top, len(classes), columns)
    of_classes = [f"{part}/{name}" for part in parts for name in top.folders(part)] if parts else folders
    rest = "; ".join(filter(None, (_beside(top, parts), left_out(top, of_classes))))
    return replace(assemble(top.where, classes, entries, top.read, top.stamp, table), left_out=rest)


def left_out(tree: Tree, folders: Sequence[str]) -> str:
    """Returns counts of files in class folders that are no images by their names, for a message; "" for none."""
    suffixes = Counter(
        Path(file).suffix.lower() or "without a suffix"
        for folder in folders
        for file in tree.files(folder)
        if not file.lower().endswith(SUFFIXES)
    )
    inner = sum(len(tree.folders(folder)) for folder in folders)
    parts = []
    if suffixes:
        kinds = ", ".join(f"{count:,} {printable(suffix)}" for suffix, count in suffixes.most_common(MOST_NAMED))
        more = ", …" if len(suffixes) > MOST_NAMED else ""
        parts.append(f"{suffixes.total():,} files that are no images by their names ({kinds}{more})")
    parts += [f"{inner:,} folders"] if inner else []
    return f"{' and '.join(parts)} in class folders" if parts else ""


def _beside(tree: Tree, parts: Sequence[str]) -> str:
    """Returns counts of images beside class folders, which may be meant, for a message; "" for none."""
    others = []
    for name in _others(tree) if parts else ():
        images = sum(
            len(tree.images(folder)) for folder in (name, *(f"{name}/{below}" for below in tree.folders(name)))
        )
        others += [f"{printable(name)}/ ({images:,} images)"] if images else []
    loose = sum(len(tree.images(folder)) for folder in parts or [""]) + (len(tree.images("")) if parts else 0)
    return " and ".join(others + ([f"{loose:,} images outside class folders"] if loose else []))


def _others(tree: Tree) -> list[str]:
    """Returns the folders beside train and test, as valid."""
    return [name for name in tree.folders("") if name not in (*SPLIT, ATTRIBUTES)]


def _classes(tree: Tree, folders: Sequence[str]) -> tuple[str, ...]:
    """Returns the class folders in their order.

    Raises DataError where the order of CUB's rows of attributes is not known.

    That is the order of names, but for numbers: 10 would stand before 2.
    """
    classes = class_order(tree, folders)
    if has(tree, CLASSES) or not has(tree, CUB_ATTRIBUTES):
        return classes
    numbers = [int(match[0]) if (match := re.match("[0-9]{1,18}", name)) else -1 for name in classes]
    if -1 in numbers or numbers == sorted(numbers):
        return classes
    if sorted(numbers) not in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        raise DataError(
            f"{tree.where} has {CUB_ATTRIBUTES} and numbered folders with gaps, but no {CLASSES}, which says "
            "whose rows those are"
        )
    return tuple(name for _, name in sorted(zip(numbers, classes, strict=True)))


def _top(tree: Tree) -> Tree:
    """Returns the tree, or what is in the folders that an archive often has around everything."""
    for _ in range(MOST_WRAPPERS):
        folders = tree.folders("")
        if len(folders) != 1 or folders[0] in SPLIT or tree.images(folders[0]):
            break
        tree = tree.below(folders[0])
    return tree


def _plain(tree: Tree) -> list[str]:
    """Returns folders that may be classes: attributes beside them are none, unless a class is called that."""
    return [name for name in tree.folders("") if name != ATTRIBUTES or tree.images(name)]


def _wrong(tree: Tree, parts: list[str], folders: list[str]) -> str:
    """Returns the reason why these cannot be meant as classes; "" where they can.

    That a part lacks one is told later.
    """
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
    """Returns images of train/<class>/ and test/<class>/."""
    return [
        (part, label, image)
        for part, folder in enumerate(SPLIT)
        for label, name in enumerate(classes)
        for image in tree.images(f"{folder}/{name}")
    ]


def _unsplit(tree: Tree, classes: tuple[str, ...]) -> list[Entry]:
    """Returns images of <class>/, every fifth for testing. Raises DataError where a class has too few."""
    entries = []
    for label, name in enumerate(classes):
        images = tree.images(name)
        if len(images) < TEST_EVERY:
            raise DataError(
                f"{tree.where}/{name} has {len(images)} images; every {TEST_EVERY}th is for testing, so a class needs "
                f"{TEST_EVERY}, or folders train and test"
            )
        testing = range(TEST_EVERY - 1, len(images), TEST_EVERY)
        entries += [(TEST if at in testing else TRAIN, label, image) for at, image in enumerate(images)]
    return entries


def _attributes(tree: Tree, classes: int, columns: int | None) -> NDArray[np.float32] | None:
    """Returns the table of either published dataset, wherever it is; None without. Raises DataError."""
    name = next((name for name in (CUB_ATTRIBUTES, AWA_ATTRIBUTES) if has(tree, name)), None)
    if name == AWA_ATTRIBUTES and not has(tree, CLASSES):  # the published rows are not in the order of the names
        raise DataError(f"{tree.where} has {name} but no {CLASSES}, which says whose rows those are")
    return attributes(tree, name, classes, columns) if name else None
