"""CIFAR-100 in torchvision's layout, three pickles; downloaded with torchvision where nothing is found."""

import os
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trainers.streams.base import DataError, Pixels
from trainers.streams.sources.base import PARTS, Entry, Source, assemble

FOLDER = "cifar-100-python"
NAMES = ("cifar100", "cifar-100", "cifar_100")  # class folders under data_dir, in any case
OFFICIAL = {"classes": 100, "train": 50000, "test": 10000}
SIDE = 32
WANTED = f"put torchvision's {FOLDER} there, or class folders in cifar100 or cifar100.zip"


def folder(data_dir: Path) -> Path | None:
    """The folder of the three pickles, or None."""
    places = (data_dir / FOLDER, data_dir, *(data_dir / name / FOLDER for name in NAMES))
    return next((at for at in places if all(os.path.isfile(at / name) for name in ("train", "test", "meta"))), None)


def read(at: Path) -> Source:
    """Fine labels as in the pickles. Raises DataError."""
    classes = tuple(str(name) for name in _load(at / "meta", "fine_label_names")[0])
    entries: list[Entry] = []
    images: dict[str, Pixels] = {}
    for part, name in enumerate(PARTS[:2]):
        pixels, labels, files = _load(at / name, "data", "fine_labels", "filenames")
        if not len(pixels) == len(labels) == len(files):
            raise DataError(f"{at / name} has {len(pixels)} images, {len(labels)} labels and {len(files)} names")
        found = _entries(at / name, part, classes, labels, files)
        images |= {entry.name: image for entry, image in zip(found, _images(at / name, pixels), strict=True)}
        entries += found
    stamps = tuple((path.stat().st_size, path.stat().st_mtime_ns) for path in (at / "train", at / "test", at / "meta"))
    return assemble(str(at), classes, entries, images.__getitem__, lambda name: stamps, None, OFFICIAL)


def _entries(path: Path, part: int, classes: tuple[str, ...], labels: Any, files: Any) -> list[Entry]:
    seen: Counter[str] = Counter()
    entries = []
    for label, file in zip(labels, files, strict=True):
        if not 0 <= int(label) < len(classes):
            raise DataError(f"{path} has the label {label}, allowed are 0…{len(classes) - 1}")
        name = f"{PARTS[part]}/{classes[int(label)]}/{file}"
        seen[name] += 1
        entries.append(Entry(part, int(label), name if seen[name] == 1 else f"{name}~{seen[name]}"))
    return entries


def _images(path: Path, pixels: Any) -> Pixels:
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * SIDE * SIDE,):
        raise DataError(f"{path} must hold bytes [n, {3 * SIDE * SIDE}] under 'data'")
    return pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


class _Arrays(pickle.Unpickler):
    """Makes arrays and plain values only: a pickle could run any code."""

    ALLOWED = ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer")

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module.split(".")[0] == "numpy" and name in self.ALLOWED) or (module, name) == ("_codecs", "encode"):
            found: Callable[..., Any] = super().find_class(module, name)
            return found
        raise pickle.UnpicklingError(f"it wants {module}.{name}")


def _load(path: Path, *names: str) -> list[Any]:
    try:
        with open(path, "rb") as file:
            found = _Arrays(file, encoding="latin1").load()  # written by Python 2
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # what a damaged pickle raises is anyone's guess
        raise DataError(f"{path} is not one of CIFAR-100's pickles, or damaged: {error}") from error
    missing = [name for name in names if not isinstance(found, dict) or name not in found]
    if missing:
        raise DataError(f"{path} is not one of CIFAR-100's pickles: it lacks {', '.join(missing)}")
    return [found[name] for name in names]
