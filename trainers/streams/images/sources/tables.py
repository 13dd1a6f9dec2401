"""The text files beside images: numbered lists, class names, attributes."""

import warnings
from collections.abc import Sequence
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from trainers.notes import first_line
from trainers.streams.base import DataError
from trainers.streams.images.sources.base import Damaged, some
from trainers.streams.images.sources.trees import Tree

CLASSES = "classes.txt"
CUB_ATTRIBUTES = "attributes/class_attribute_labels_continuous.txt"
AWA_ATTRIBUTES = "predicate-matrix-continuous.txt"
LARGEST = 2**24  # bytes of one table; CUB's lists have half a million


def has(tree: Tree, name: str) -> bool:
    """Whether the tree has the file."""
    folder, _, file = name.rpartition("/")
    return file in tree.files(folder)


def text(tree: Tree, name: str) -> str:
    """A text file's content. Raises DataError where it is missing or damaged."""
    if not has(tree, name):
        raise DataError(f"{tree.where} has no {name}, which this dataset needs")
    try:
        return tree.read(name, LARGEST).decode("utf-8-sig")
    except (Damaged, UnicodeDecodeError) as error:
        raise DataError(f"{name} in {tree.where} is damaged: {error}") from error


def numbered(tree: Tree, name: str) -> dict[int, str]:
    """Lines like "7 text" as {7: "text"}, in the file's order. Raises DataError."""
    found: dict[int, str] = {}
    for row, line in enumerate(text(tree, name).splitlines(), start=1):
        number, _, rest = line.strip().replace("\t", " ").partition(" ")
        if not number and not rest:
            continue
        at = whole(number)
        if at is None or not rest.strip():
            raise DataError(f"{name} in {tree.where}, line {row}: {line.strip()[:80]!r} is not a number and a value")
        if at in found:
            raise DataError(f"{name} in {tree.where}, line {row}: number {number} is there twice")
        found[at] = rest.strip()
    return found


def whole(text: str) -> int | None:
    """The number >= 0 that a text is, None for any other text and for more digits than a list of images needs.

    >>> whole("0042"), whole("-1"), whole("9" * 5000)
    (42, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else None


def class_order(tree: Tree, folders: Sequence[str]) -> tuple[str, ...]:
    """The class folders in the order of classes.txt, or by name without it. Raises DataError where the two differ."""
    if not has(tree, CLASSES):
        return tuple(sorted(folders))
    lines = [line.split() for line in text(tree, CLASSES).splitlines() if line.strip()]
    names = tuple(words[-1] for words in lines)
    if sorted(names) != sorted(folders):
        different = sorted(set(names) ^ set(folders))
        raise DataError(
            f"{CLASSES} in {tree.where} names {len(names)} classes that are not its {len(folders)} class folders: "
            f"{some(different) or 'names are there twice'}"
        )
    return names


def attributes(tree: Tree, name: str, classes: int, columns: int | None) -> NDArray[np.float32]:
    """[classes, A] numbers, rows divided by their lengths; columns None takes any A. Raises DataError."""
    place = f"{name} in {tree.where}"
    try:
        with warnings.catch_warnings():  # an empty file is told below
            warnings.simplefilter("ignore")
            found = np.loadtxt(StringIO(text(tree, name)), dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise DataError(f"{place} must be a table of numbers: {first_line(error)[:200]}") from error
    if len(found) != classes or columns not in (None, found.shape[1]):
        allowed = f"{classes}×{columns or 'any number'}"
        raise DataError(f"{place} has shape {found.shape[0]}×{found.shape[1]}, allowed is {allowed}, a row a class")
    with np.errstate(over="ignore"):  # what has no length is told below
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        row = int(np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))[0]) + 1
        raise DataError(f"{place}, row {row}: attributes must be finite and not all zero")
    rows: NDArray[np.float32] = (found / lengths).astype(np.float32)
    return rows
