"""MNIST from its four IDX files, plain or gzipped.

Downloaded with torchvision where they are missing.
"""

import gzip
import math
import os
import struct
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Examples, Images
from trainers.streams.download import download
from trainers.streams.files import odd_kind, open_regular, too_large

NAMES = {"train": "train", "test": "t10k"}
WANTED = f"give the folder that holds {NAMES['train']}-images-idx3-ubyte[.gz] with --data-dir"
FOLDERS = (".", "raw", "MNIST/raw", "mnist/MNIST/raw")  # under data_dir: bare, and torchvision's layout
LARGEST = 2**30  # bytes of one file, unpacked; MNIST's have 47 million


@lru_cache(maxsize=1)
def load(data_dir: Path) -> Images:
    """Returns 60,000 training and 10,000 test images of 784 pixels, 0…255; other numbers are taken as well.

    Raises DataError where the files are missing and cannot be downloaded, or cannot be read.
    """
    files = _files(data_dir)
    if not files:
        download("MNIST", "MNIST files", data_dir, WANTED)
        files = _files(data_dir)
    if not files:
        raise DataError(f"no MNIST files under {data_dir} after the download; remove that folder and try again")
    train, test = _examples(*files[:2]), _examples(*files[2:])
    sizes = train.inputs.shape[1], test.inputs.shape[1]
    if sizes[0] != sizes[1]:
        raise DataError(
            f"the training images in {files[0].parent} have {sizes[0]:,} pixels, the test images {sizes[1]:,}"
        )
    return Images(train, test, classes=10, largest=255.0)


def present(data_dir: Path) -> str | None:
    """Returns the folder that holds all four files, or None. Raises DataError where one of them is no regular file."""
    files = _files(data_dir)
    return str(files[0].parent) if files else None


def _files(data_dir: Path) -> list[Path]:
    """Returns images and labels to train on, then those to test on, of the first folder that has all four.

    [] where none has.

    Raises DataError where one of the names is there but no regular file: a download would write into it.
    """
    if kind := odd_kind(data_dir):
        raise DataError(f"data-dir {data_dir} is {kind}; a folder is needed")
    names = [f"{part}-{kind}" for part in NAMES.values() for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    for folder in FOLDERS:
        # All four are looked at before the next folder is, as each of them may be odd.
        files = [file for name in names if (file := _file(data_dir / folder, name))]
        if len(files) == len(names):
            return files
    return []


def _file(folder: Path, name: str) -> Path | None:
    """Returns the file, plain or gzipped, None without. Raises DataError."""
    paths = folder / name, folder / f"{name}.gz"
    for path in paths:
        if kind := odd_kind(path):
            raise DataError(f"cannot read {path}: it is {kind}, no regular file")
    return next((path for path in paths if os.path.isfile(path)), None)


def _examples(images: Path, labels: Path) -> Examples:
    """Returns one part from its two files. Raises DataError."""
    pixels = _read_idx(images, dimensions=3)
    return Examples(pixels.reshape(len(pixels), -1), _read_idx(labels, dimensions=1).astype(np.int64))


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Returns the bytes of an IDX file, in the shape that its header says.

    Raises DataError where it is none, or damaged.

    The header is two zero bytes, the type (8: unsigned bytes), the number of dimensions, and each in 4 bytes,
    big-endian, as the dataset's page says.
    """
    try:
        with open_regular(path) as file, gzip.open(file) if path.suffix == ".gz" else file as content:
            header = content.read(4 + 4 * dimensions)
            if len(header) < 4 + 4 * dimensions or header[:4] != bytes([0, 0, 8, dimensions]):
                raise DataError(f"{path} is not an IDX file of bytes with {dimensions} dimension(s)")
            shape = struct.unpack(f">{dimensions}I", header[4:])
            expected, said = math.prod(shape), "×".join(map(str, shape))
            if expected > LARGEST:
                raise DataError(f"cannot read {path}: its header says {said}, {too_large(expected, LARGEST)}")
            raw = content.read(expected + 1)  # no more than that of what would unpack to any length
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if len(raw) != expected or not expected:
        had = f"more than {expected}" if len(raw) > expected else len(raw)
        raise DataError(f"{path} is truncated or damaged: {had} bytes of data, its header says {said}")
    return np.frombuffer(raw, np.uint8).reshape(shape)
