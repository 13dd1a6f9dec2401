"""MNIST from its four IDX files, plain or gzipped; downloaded with torchvision where they are missing."""

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
    """60,000 training and 10,000 test images of 784 pixels, 0…255. Raises DataError."""
    folder = _folder(data_dir)
    if folder is None:
        download("MNIST", "MNIST files", data_dir, WANTED)
        folder = _folder(data_dir)
    if folder is None:
        raise DataError(f"no MNIST files under {data_dir} after the download; remove that folder and try again")
    train, test = (_examples(folder, name) for name in NAMES.values())
    sizes = train.inputs.shape[1], test.inputs.shape[1]
    if sizes[0] != sizes[1]:
        raise DataError(f"the training images in {folder} have {sizes[0]:,} pixels, the test images {sizes[1]:,}")
    return Images(train, test, classes=10, largest=255.0)


def present(data_dir: Path) -> str | None:
    """The folder that holds all four files, or None."""
    try:
        folder = _folder(data_dir)
    except DataError:
        return None
    return None if folder is None else str(folder)


def _folder(data_dir: Path) -> Path | None:
    """Raises DataError where one of the names is there but no regular file: a download would write into it."""
    if kind := odd_kind(data_dir):
        raise DataError(f"data-dir {data_dir} is {kind}; a folder is needed")
    kinds = [f"{name}-{kind}" for name in NAMES.values() for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    for folder in (data_dir / name for name in FOLDERS):
        if all([_file(folder, kind) for kind in kinds]):
            return folder
    return None


def _file(folder: Path, name: str) -> Path | None:
    paths = folder / name, folder / f"{name}.gz"
    for path in paths:
        if kind := odd_kind(path):
            raise DataError(f"cannot read {path}: it is {kind}, no regular file")
    return next((path for path in paths if os.path.isfile(path)), None)


def _examples(folder: Path, name: str) -> Examples:
    images = _read_idx(folder, f"{name}-images-idx3-ubyte", dimensions=3)
    labels = _read_idx(folder, f"{name}-labels-idx1-ubyte", dimensions=1)
    return Examples(images.reshape(len(images), -1), labels.astype(np.int64))


def _read_idx(folder: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    path = _file(folder, name)
    assert path is not None  # _folder has seen it
    try:
        with open_regular(path) as file, gzip.open(file) if path.suffix == ".gz" else file as content:
            header = content.read(4 + 4 * dimensions)
            if len(header) < 4 + 4 * dimensions or header[:4] != bytes([0, 0, 8, dimensions]):  # 8: unsigned bytes
                raise DataError(f"{path} is not an IDX file of bytes with {dimensions} dimension(s)")
            shape = struct.unpack(f">{dimensions}I", header[4:])
            expected = math.prod(shape)
            if expected > LARGEST:
                raise DataError(f"cannot read {path}: its header says {_times(shape)}, {too_large(expected, LARGEST)}")
            raw = content.read(expected + 1)  # no more than that of what would unpack to any length
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if len(raw) != expected or not expected:
        had = f"more than {expected}" if len(raw) > expected else len(raw)
        raise DataError(f"{path} is truncated or damaged: {had} bytes of data, its header says {_times(shape)}")
    return np.frombuffer(raw, np.uint8).reshape(shape)


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
