"""Image sources: names, labels and parts, and a reader of images."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Labels, Pixels

PARTS = ("train", "test", "unused")
TRAIN, TEST, UNUSED = range(3)
LARGEST_FILE = 2**28  # bytes of one image's file, unpacked: as many as Pillow's largest image has uncompressed
MOST_NAMED = 3  # files that a message names
SUFFIXES = (  # of names in any case; which format a file has, its content says
    *(".png", ".apng", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".tif", ".tiff"),
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".jif", ".jfi", ".pjpeg", ".pjp"),
)


class DamagedImage(Exception):
    """An image cannot be read, though others of the same place can; the message says why, in one line."""


Entry: TypeAlias = tuple[int, int, str]
"""An image: position in PARTS, position among the classes, name as in `Source.names`.

Sorted, entries have the same order for every source of the same images.
"""


@dataclass(frozen=True, eq=False)
class Source:
    """Images of a place, not decoded, ordered by part, class and name.

    Raises DataError where a class has no training or no test image.
    """

    where: str
    """The path of the place, as text."""
    classes: tuple[str, ...]
    """Their names, in the dataset's own order."""
    names: tuple[str, ...]
    """[N], of the images, like "train/apple/apple_s_000027.png"."""
    labels: Labels
    """[N], positions in `classes`."""
    parts: NDArray[np.int8]
    """[N], positions in PARTS."""
    read: Callable[[str], bytes | Pixels]
    """read(name): the file's bytes, or pixels [H, W, 3]; raises DamagedImage or DataError."""
    key: str
    """24 hexadecimal digits that change when the files do, had without reading them."""
    attributes: NDArray[np.float32] | None = None
    """[classes, A], rows of length 1, or None."""
    official: Mapping[str, int] = field(default_factory=dict)
    """Counts of the published dataset: by part, "images" for all parts, and "classes"."""
    left_out: str = ""
    """What lies beside the images and is not read, in one line with counts; "" for nothing."""

    def __post_init__(self) -> None:
        for part in (TRAIN, TEST):
            if empty := without_images(self.labels[self.parts == part], self.classes):
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
) -> Source:
    """Returns the source of these entries in canonical order; stamp(name) is what changes when the file changes.

    Raises DataError where a class has no training or no test image, or an image is listed twice.
    """
    ordered = sorted(entries)
    names = tuple(name for *_, name in ordered)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:  # perhaps once to train on and once to test on
        raise DataError(f"{where} lists {len(twice):,} images more than once: {some(twice)}")
    labels = np.array([label for _, label, _ in ordered], np.int64)
    parts = np.array([part for part, *_ in ordered], np.int8)
    # Attributes are not in the key: a joint embedding shares the decoded images of the plain dataset.
    digest = hashlib.sha256(repr((tuple(classes), [(name, stamp(name)) for name in names])).encode())
    digest.update(labels.tobytes() + parts.tobytes())
    return Source(where, tuple(classes), names, labels, parts, read, digest.hexdigest()[:24], attributes)


def without_images(labels: Labels, classes: Sequence[str]) -> list[str]:
    """Returns the classes that are the label of no image.

    >>> without_images(np.array([2, 0, 2]), ["ape", "bee", "cow"])
    ['bee']
    """
    counts = np.bincount(labels, minlength=len(classes))
    return [name for name, count in zip(classes, counts, strict=False) if not count]


def some(names: Sequence[str]) -> str:
    r"""Returns the first few names, for a message of one line that every terminal can show.

    >>> some(["a", "b\n", "c", "d"])
    'a, b\\n, c, …'
    """
    return ", ".join(map(printable, names[:MOST_NAMED])) + (", …" if len(names) > MOST_NAMED else "")


def printable(name: str) -> str:
    """Returns the name of a file, which may have any character, with those escaped that cannot be printed."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in name)
