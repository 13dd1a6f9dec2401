"""CIFAR-10 and CIFAR-100 in torchvision's layout, a few pickles.

Downloaded with torchvision where they are missing.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainers.notes import first_line
from trainers.streams.base import DataError, Pixels
from trainers.streams.files import odd_kind, read_regular, stamp
from trainers.streams.images.sources.base import PARTS, TEST, TRAIN, Entry, Source, assemble
from trainers.streams.images.sources.plain_pickle import load

SIDE = 32
LARGEST = 2**29  # bytes of one pickle; that of CIFAR-100's training images has 155 million


class Pickles(NamedTuple):
    """The layout of one of the two datasets."""

    title: str
    """As published."""
    folder: str
    """The name of the folder in the published archive."""
    names: tuple[str, ...]
    """Of class folders under data_dir, in any case."""
    train: tuple[str, ...]
    """Pickles of the training images."""
    test: tuple[str, ...]
    """Pickles of the test images."""
    meta: str
    """The pickle of the names of the classes."""
    labels: str
    """The field of the labels."""
    label_names: str
    """The field of the names."""

    @property
    def files(self) -> tuple[str, ...]:
        """All pickles."""
        return (*self.train, *self.test, self.meta)


CIFAR100 = Pickles(
    "CIFAR-100",
    "cifar-100-python",
    ("cifar100", "cifar-100", "cifar_100"),
    ("train",),
    ("test",),
    "meta",
    "fine_labels",
    "fine_label_names",
)
CIFAR10 = Pickles(
    "CIFAR-10",
    "cifar-10-batches-py",
    ("cifar10", "cifar-10", "cifar_10"),
    tuple(f"data_batch_{number}" for number in range(1, 6)),
    ("test_batch",),
    "batches.meta",
    "labels",
    "label_names",
)


def folder(layout: Pickles, data_dir: Path) -> Path | None:
    """Returns the folder of the pickles, or None.

    Raises DataError where a folder of that name has something else.
    """
    places = (data_dir / layout.folder, data_dir, *(data_dir / name / layout.folder for name in layout.names))
    for at in places:
        files = [at / name for name in layout.files]
        if all(map(os.path.isfile, files)):
            return at
        for path in files if at.name == layout.folder else ():
            if kind := odd_kind(path):  # a download would write into it
                raise DataError(f"cannot read {path}: it is {kind}, no regular file")
    return None


def read(layout: Pickles, at: Path) -> Source:
    """Returns all images, which stay in memory, with their labels; of CIFAR-100 the fine ones, of which there are 100.

    Raises DataError where a pickle is damaged, or does not hold what the published ones do.
    """
    # Before they are read, and of all files for every image: single images have no times of their own.
    stamps = tuple(stamp((at / name).stat()) for name in layout.files)
    (names,) = _load(layout, at / layout.meta, layout.label_names)
    classes = tuple(_texts(at / layout.meta, layout.label_names, names))
    entries: list[Entry] = []
    images: dict[str, Pixels] = {}
    counts: Counter[str] = Counter()
    parts = ((TRAIN, layout.train), (TEST, layout.test))
    for part, path in ((part, at / name) for part, files in parts for name in files):
        pixels, labels, files = _load(layout, path, "data", layout.labels, "filenames")
        pixels, files = _images(path, pixels), _texts(path, "filenames", files)
        labels = _labels(path, layout.labels, labels, len(classes))
        if not len(pixels) == len(labels) == len(files):
            raise DataError(f"{path} has {len(pixels)} images, {len(labels)} labels and {len(files)} names")
        for image, label, file in zip(pixels, labels, files, strict=True):
            name = f"{PARTS[part]}/{classes[label]}/{file}"
            counts[name] += 1  # a pickle may have one name for several images, a folder may not
            name = name if counts[name] == 1 else f"{name}~{counts[name]}"
            entries.append((part, label, name))
            images[name] = image
    return assemble(str(at), classes, entries, images.__getitem__, lambda name: stamps)


def _labels(path: Path, name: str, labels: Any, classes: int) -> list[int]:
    """Returns the labels, if they are a list or array of numbers of classes. Raises DataError."""
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    # Not isinstance, which takes True for a number; and what 64 bits do not hold is no label, but a message too long.
    if not isinstance(labels, list) or not all(type(label) is int and abs(label) < 2**63 for label in labels):
        raise DataError(f"{path} must hold a list of numbers under {name!r}")
    for label in labels:
        if not 0 <= label < classes:
            raise DataError(f"{path} has the label {label}, allowed are 0…{classes - 1}")
    return labels


def _texts(path: Path, name: str, texts: Any) -> list[str]:
    """Returns the texts, if they are a list of such. Raises DataError."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{path} must hold a list of names under {name!r}")
    return texts


def _images(path: Path, pixels: Any) -> Pixels:
    """Returns images [n, SIDE, SIDE, 3] from rows of bytes, colour by colour. Raises DataError."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * SIDE * SIDE,):
        raise DataError(f"{path} must hold bytes [n, {3 * SIDE * SIDE}] under 'data'")
    return pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def _load(layout: Pickles, path: Path, *names: str) -> list[Any]:
    """Returns the values of the pickle under these names. Raises DataError."""
    try:
        content = load(read_regular(path, LARGEST))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # what a damaged pickle raises is anyone's guess
        raise DataError(f"{path} is not one of {layout.title}'s pickles, or damaged: {first_line(error)}") from error
    if missing := [name for name in names if name not in content]:
        raise DataError(f"{path} is not one of {layout.title}'s pickles: it lacks {', '.join(missing)}")
    return [content[name] for name in names]
