"""What every source of images comes down to: names, labels and parts, and a way to read one image."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Labels, Pixels

PARTS = ("train", "test", "unused")
TRAIN, TEST, UNUSED = range(3)
LARGEST_FILE = 2**28  # bytes of one image's file, unpacked: as many as Pillow's largest image has uncompressed
MOST_NAMED = 3  # files that a message names
SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".tif", ".tiff")


class Damaged(Exception):
    """An image that cannot be had, where others of the same place can; the message says why, in one line."""


class Entry(NamedTuple):
    """One image. Sorted, entries stand in the order that every source of the same images agrees on."""

    part: int
    label: int
    name: str


@dataclass(frozen=True, eq=False)
class Source:
    """Images that were found but not decoded, ordered by part, class and name.

    where: path as text. classes: names, in the dataset's own order. names [N], like "train/apple/apple_s_000027.png".
    labels [N]: positions in classes. parts [N]: positions in PARTS. read(name): the file's bytes, or pixels [H, W, 3];
    raises Damaged or DataError. attributes [classes, A] float32, rows of length 1, or None. key: changes when the files
    do. official: counts of the published dataset, by part, "images" for all parts, and "classes".
    """

    where: str
    classes: tuple[str, ...]
    names: tuple[str, ...]
    labels: Labels
    parts: NDArray[np.int8]
    read: Callable[[str], bytes | Pixels]
    key: str
    attributes: NDArray[np.float32] | None = None
    official: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in (TRAIN, TEST):
            counts = np.bincount(self.labels[self.parts == part], minlength=len(self.classes))
            if (counts == 0).any():
                empty = [self.classes[label] for label in np.flatnonzero(counts == 0)]
                raise DataError(
                    f"{self.where}: {len(empty)} of {len(self.classes)} classes have no {PARTS[part]} image "
                    f"({some(empty)}); every class needs one"
                )


def assemble(
    where: str,
    classes: Sequence[str],
    entries: Iterable[Entry],
    read: Callable[[str], bytes | Pixels],
    stamp: Callable[[str], Any],
    attributes: NDArray[np.float32] | None = None,
    official: Mapping[str, int] | None = None,
) -> Source:
    """The source of these entries in canonical order; stamp(name) is what changes when the file changes.

    Raises DataError where a class has no training or no test image, or an image is listed twice.
    """
    ordered = sorted(entries)
    names = tuple(entry.name for entry in ordered)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:  # perhaps once to train on and once to test on
        raise DataError(f"{where} lists {len(twice):,} images more than once: {some(twice)}")
    labels = np.array([entry.label for entry in ordered], np.int64)
    parts = np.array([entry.part for entry in ordered], np.int8)
    digest = hashlib.sha256(repr((tuple(classes), [(name, stamp(name)) for name in names])).encode())
    digest.update(labels.tobytes() + parts.tobytes())
    key = digest.hexdigest()[:24]
    return Source(where, tuple(classes), names, labels, parts, read, key, attributes, official or {})


def is_image(name: str) -> bool:
    """Whether the file's name ends like an image's."""
    return name.lower().endswith(SUFFIXES)


def some(names: Sequence[str]) -> str:
    r"""The first few names, for a message of one line that every terminal can show.

    >>> some(["a", "b\n", "c", "d"])
    'a, b\\n, c, …'
    """
    return ", ".join(map(printable, names[:MOST_NAMED])) + (", …" if len(names) > MOST_NAMED else "")


def printable(name: str) -> str:
    """The name of a file, which may have any character, with those escaped that cannot be printed."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in name)
