"""MNIST from its four IDX files, plain or gzipped; downloaded with torchvision where they are missing."""

import gzip
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Examples, Images
from trainers.streams.download import download

NAMES = {"train": "train", "test": "t10k"}
WANTED = f"give the folder that holds {NAMES['train']}-images-idx3-ubyte[.gz] with --data-dir"
FOLDERS = (".", "raw", "MNIST/raw", "mnist/MNIST/raw")  # under data_dir: bare, and torchvision's layout


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
    return Images(train, test, classes=10, largest=255.0)


def present(data_dir: Path) -> str | None:
    """The folder that holds all four files, or None."""
    folder = _folder(data_dir)
    return None if folder is None else str(folder)


def _folder(data_dir: Path) -> Path | None:
    for folder in (data_dir / name for name in FOLDERS):
        kinds = [f"{name}-{kind}" for name in NAMES.values() for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
        if all(_file(folder, kind) for kind in kinds):
            return folder
    return None


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _examples(folder: Path, name: str) -> Examples:
    images = _read_idx(folder, f"{name}-images-idx3-ubyte", dimensions=3)
    labels = _read_idx(folder, f"{name}-labels-idx1-ubyte", dimensions=1)
    return Examples(images.reshape(len(images), -1), labels.astype(np.int64))


def _read_idx(folder: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    path = _file(folder, name)
    assert path is not None  # _folder has seen it
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    header = 4 + 4 * dimensions
    if len(raw) < header or raw[:4] != bytes([0, 0, 8, dimensions]):  # two zeros, 8 = unsigned bytes, dimensions
        raise DataError(f"{path} is not an IDX file of bytes with {dimensions} dimension(s)")
    shape = np.frombuffer(raw, ">i4", dimensions, offset=4)
    if len(raw) - header != shape.prod(dtype=np.int64):
        raise DataError(
            f"{path} is truncated or damaged: {len(raw) - header} bytes of data, its header says "
            f"{'×'.join(map(str, shape))}"
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)
