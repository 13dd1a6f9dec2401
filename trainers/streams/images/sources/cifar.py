"""CIFAR-100 in torchvision's layout, three pickles; downloaded with torchvision where nothing is found."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainers.notes import first_line
from trainers.streams.base import DataError, Pixels
from trainers.streams.files import odd_kind, read_regular
from trainers.streams.images.sources.base import PARTS, Entry, Source, assemble
from trainers.streams.images.sources.plain_pickle import load

FOLDER = "cifar-100-python"
NAMES = ("cifar100", "cifar-100", "cifar_100")  # class folders under data_dir, in any case
OFFICIAL = {"classes": 100, "train": 50000, "test": 10000}
SIDE = 32
LARGEST = 2**29  # bytes of one pickle; that of the training images has 155 million
WANTED = f"put torchvision's {FOLDER} there, or class folders in cifar100 or cifar100.zip"


def folder(data_dir: Path) -> Path | None:
    """The folder of the three pickles, or None. Raises DataError where a folder of that name has something else."""
    for at in (data_dir / FOLDER, data_dir, *(data_dir / name / FOLDER for name in NAMES)):
        files = [at / name for name in ("train", "test", "meta")]
        if all(map(os.path.isfile, files)):
            return at
        odd = [(path, kind) for path in files if at.name == FOLDER and (kind := odd_kind(path))]
        if odd:  # a download would write into it
            raise DataError(f"cannot read {odd[0][0]}: it is {odd[0][1]}, no regular file")
    return None


def read(at: Path) -> Source:
    """Fine labels as in the pickles. Raises DataError."""
    classes = tuple(_texts(at / "meta", "fine_label_names", _load(at / "meta", "fine_label_names")[0]))
    entries: list[Entry] = []
    images: dict[str, Pixels] = {}
    for part, name in enumerate(PARTS[:2]):
        pixels, labels, files = _load(at / name, "data", "fine_labels", "filenames")
        pixels, files = _images(at / name, pixels), _texts(at / name, "filenames", files)
        labels = _labels(at / name, labels, len(classes))
        if not len(pixels) == len(labels) == len(files):
            raise DataError(f"{at / name} has {len(pixels)} images, {len(labels)} labels and {len(files)} names")
        found = _entries(part, classes, labels, files)
        images |= {entry.name: image for entry, image in zip(found, pixels, strict=True)}
        entries += found
    stamps = tuple((path.stat().st_size, path.stat().st_mtime_ns) for path in (at / "train", at / "test", at / "meta"))
    return assemble(str(at), classes, entries, images.__getitem__, lambda name: stamps, None, OFFICIAL)


def _entries(part: int, classes: Sequence[str], labels: Sequence[int], files: Sequence[str]) -> list[Entry]:
    seen: Counter[str] = Counter()
    entries = []
    for label, file in zip(labels, files, strict=True):
        name = f"{PARTS[part]}/{classes[label]}/{file}"
        seen[name] += 1
        entries.append(Entry(part, label, name if seen[name] == 1 else f"{name}~{seen[name]}"))
    return entries


def _labels(path: Path, labels: Any, classes: int) -> list[int]:
    found = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if not isinstance(found, list) or not all(type(label) is int and abs(label) < 2**63 for label in found):
        raise DataError(f"{path} must hold a list of numbers under 'fine_labels'")
    wrong = next((label for label in found if not 0 <= label < classes), None)
    if wrong is not None:
        raise DataError(f"{path} has the label {wrong}, allowed are 0…{classes - 1}")
    return found


def _texts(path: Path, name: str, texts: Any) -> list[str]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{path} must hold a list of names under {name!r}")
    return texts


def _images(path: Path, pixels: Any) -> Pixels:
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * SIDE * SIDE,):
        raise DataError(f"{path} must hold bytes [n, {3 * SIDE * SIDE}] under 'data'")
    return pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def _load(path: Path, *names: str) -> list[Any]:
    try:
        found = load(read_regular(path, LARGEST))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # what a damaged pickle raises is anyone's guess
        raise DataError(f"{path} is not one of CIFAR-100's pickles, or damaged: {first_line(error)}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(f"{path} is not one of CIFAR-100's pickles: it lacks {', '.join(missing)}")
    return [found[name] for name in names]
