"""The text files beside images: numbered lists, class names, attributes."""

import warnings
from collections.abc import Collection, Sequence
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from trainers.notes import first_line
from trainers.streams.base import DataError
from trainers.streams.images.sources.base import DamagedImage, some
from trainers.streams.images.sources.trees import Tree

CLASSES = "classes.txt"
CUB_ATTRIBUTES = "attributes/class_attribute_labels_continuous.txt"
AWA_ATTRIBUTES = "predicate-matrix-continuous.txt"
LARGEST = 2**24  # bytes of one table; CUB's lists have half a million


def has(tree: Tree, name: str) -> bool:
    """Returns whether the tree has the file."""
    folder, _, file = name.rpartition("/")
    return file in tree.files(folder)


def text(tree: Tree, name: str) -> str:
    """Returns a text file's content, without the mark that editors on Windows begin it with.

    Raises DataError where it is missing, damaged or larger than LARGEST.
    """
    if not has(tree, name):
        raise DataError(f"{tree.where} has no {name}, which this dataset needs")
    try:
        return tree.read(name, LARGEST).decode("utf-8-sig")
    except (DamagedImage, UnicodeDecodeError) as error:
        raise DataError(f"{name} in {tree.where} is damaged: {error}") from error


def parse_numbered(tree: Tree, name: str) -> dict[int, str]:
    """Returns lines like "7 text" as {7: "text"}, in the file's order. Raises DataError."""
    lines: dict[int, str] = {}
    for row, line in enumerate(text(tree, name).splitlines(), start=1):
        number, _, rest = line.strip().replace("\t", " ").partition(" ")
        if not number and not rest:
            continue
        at = whole(number)
        if at is None or not rest.strip():
            raise DataError(f"{name} in {tree.where}, line {row}: {line.strip()[:80]!r} is not a number and a value")
        if at in lines:
            raise DataError(f"{name} in {tree.where}, line {row}: number {number} is there twice")
        lines[at] = rest.strip()
    return lines


def whole(text: str) -> int | None:
    """Returns the number >= 0 that a text is, None for any other text and for more digits than a list of images needs.

    >>> whole("0042"), whole("-1"), whole("9" * 5000)
    (42, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else None


def class_order(tree: Tree, folders: Sequence[str]) -> tuple[str, ...]:
    """Returns the class folders in the order of classes.txt, or by name without it.

    Raises DataError where the two differ.
    """
    if not has(tree, CLASSES):
        return tuple(sorted(folders))
    known = set(folders)
    names = tuple(_class(line, known) for line in text(tree, CLASSES).splitlines() if line.strip())
    if sorted(names) != sorted(folders):
        raise DataError(
            f"{CLASSES} in {tree.where} names {len(names)} classes that are not its {len(folders)} class folders: "
            f"{some(sorted(set(names) ^ set(folders))) or 'names are there twice'}"
        )
    return names


def _class(line: str, classes: Collection[str]) -> str:
    """Returns the class of a line of classes.txt: all of it, or what stands behind a number, as in published lists.

    >>> _class("brown bear", ["brown bear"]), _class("7 brown bear", ["brown bear"]), _class("7 001.bear", [])
    ('brown bear', 'brown bear', '001.bear')
    """
    words = line.split(maxsplit=1)
    behind = words[-1].strip() if words[0].rstrip(".:,").isdecimal() else line.strip()
    return next((name for name in (line, line.strip(), behind, line.split()[-1]) if name in classes), behind)


def attributes(tree: Tree, name: str, classes: int, columns: int | None) -> NDArray[np.float32] | None:
    """Returns [classes, A] numbers, rows divided by their lengths; None where the tree has no such file.

    columns: A; None takes any. Raises DataError where the table has another shape, or a row no direction.
    """
    if not has(tree, name):
        return None
    place = f"{name} in {tree.where}"
    try:
        with warnings.catch_warnings(action="ignore"):  # an empty file is told below
            table = np.loadtxt(StringIO(text(tree, name)), dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise DataError(f"{place} must be a table of numbers: {first_line(error)[:200]}") from error
    if len(table) != classes or columns not in (None, table.shape[1]):
        allowed = f"{classes}×{columns or 'any number'}"
        raise DataError(f"{place} has shape {table.shape[0]}×{table.shape[1]}, allowed is {allowed}, a row a class")
    with np.errstate(over="ignore"):  # what has no length is told below
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
    pointless = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(pointless):
        raise DataError(f"{place}, row {pointless[0] + 1}: attributes must be finite and not all zero")
    # Divided before it is rounded: float32 holds no numbers beyond 3·10³⁸, float64 does.
    return np.asarray(table / lengths, np.float32)
