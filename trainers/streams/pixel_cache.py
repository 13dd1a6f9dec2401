"""One folder of decoded images: made to the side and renamed, checked when opened, made again when damaged."""

import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Pixels
from trainers.streams.decoding import Chunk
from trainers.streams.sources.base import TRAIN, Source
from trainers.streams.turns import beside

PIXELS, MEAN, FACTS = "pixels", "mean", "facts.json"
BLOCK = 2**24  # bytes

Progress = Callable[[int, int], None]  # images done, images in all
_verified: set[tuple[str, tuple[int, ...]]] = set()  # files whose checksum this process has seen to be right


class Cached(NamedTuple):
    """A finished folder. facts: images, size, bytes, corrupt (names that were left out), fingerprint, checksums."""

    folder: Path
    facts: dict[str, Any]

    def pixels(self) -> Pixels:
        """[images, size, size, 3], mapped from the file, read-only."""
        size = self.facts["size"]
        return np.memmap(self.folder / PIXELS, np.uint8, "r", shape=(self.facts["images"], size, size, 3))

    def mean(self) -> NDArray[np.float32]:
        """[size, size, 3], of the training images' pixels / 255."""
        size = self.facts["size"]
        return np.fromfile(self.folder / MEAN, np.float32).reshape(size, size, 3)


def reopen(folder: Path) -> Cached | None:
    """A finished and undamaged folder, else None.

    A file that was touched since it was written is read once by every process to see that its checksum is right.
    """
    try:
        facts = json.loads((folder / FACTS).read_bytes())
        if facts.pop("checksum") != _checksum(facts) or zlib.crc32((folder / MEAN).read_bytes()) != facts["mean"]:
            return None
        path = folder / PIXELS
        stamp = _stamp(path)
        if stamp[0] != facts["bytes"]:
            return None
        if list(stamp) != facts["stamp"] and (str(path), stamp) not in _verified:
            if _crc(path) != facts["crc"]:
                return None
            _verified.add((str(path), stamp))
        return Cached(folder, facts)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def make(
    folder: Path, source: Source, size: int, found: Generator[Chunk, None, None], progress: Progress | None
) -> Cached:
    """Writes the images to the folder. Raises OSError, and DataError where the disk is too small."""
    needed, free = len(source.names) * size * size * 3, shutil.disk_usage(folder.parent).free
    if needed > free:
        raise DataError(
            f"the decoded images need {needed / 1e9:.1f} GB and {folder.parent} has {free / 1e9:.1f} GB left; "
            "EPSEARCH_CACHE names another folder"
        )
    unfinished = Path(tempfile.mkdtemp(prefix=beside(folder), dir=folder.parent))
    unfinished.chmod(0o755)  # others may share the cache
    try:
        _write(unfinished, source, size, found, progress)
        return _publish(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(
    folder: Path, source: Source, size: int, found: Generator[Chunk, None, None], progress: Progress | None
) -> None:
    digest, crc = hashlib.sha256(repr(size).encode()), 0
    total = np.zeros((size, size, 3), np.int64)  # whole numbers: the mean does not depend on the order of sums
    kept = np.zeros(len(source.names), np.bool_)
    with closing(found), open(folder / PIXELS, "wb") as file:
        for start, readable, pixels in found:
            members = slice(start, start + len(readable))
            kept[members] = readable
            total += pixels[source.parts[members][readable] == TRAIN].sum(axis=0, dtype=np.int64)
            block = pixels.data
            file.write(block)
            digest.update(block)
            crc = zlib.crc32(block, crc)
            if progress:
                progress(members.start + len(readable), len(kept))
        file.flush()
        os.fsync(file.fileno())
    digest.update(source.labels[kept].tobytes() + source.parts[kept].tobytes())
    _finish(folder, source, kept, total, {"size": size, "crc": crc, "fingerprint": digest.hexdigest()[:16]})


def _finish(
    folder: Path, source: Source, kept: NDArray[np.bool_], total: NDArray[np.int64], facts: dict[str, Any]
) -> None:
    """Writes mean and facts; total [size, size, 3]: the sum of the training images."""
    mean = (total / (255.0 * max(1, int((source.parts[kept] == TRAIN).sum())))).astype(np.float32)
    (folder / MEAN).write_bytes(mean.tobytes())
    stamp = _stamp(folder / PIXELS)
    facts |= {
        "images": int(kept.sum()),
        "bytes": stamp[0],
        "corrupt": [name for name, good in zip(source.names, kept, strict=True) if not good],
        "mean": zlib.crc32(mean.tobytes()),
        "stamp": list(stamp),
    }
    (folder / FACTS).write_text(json.dumps(facts | {"checksum": _checksum(facts)}), encoding="utf-8")


def _publish(unfinished: Path, folder: Path) -> Cached:
    try:
        os.rename(unfinished, folder)
    except OSError:
        other = reopen(folder)  # made by a process that could not be waited for
        if other is not None:
            return other
        shutil.rmtree(folder)
        os.rename(unfinished, folder)
    made = reopen(folder)
    if made is None:
        raise DataError(f"{folder} does not hold what was just written there; is the disk sound?")
    return made


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _crc(path: Path) -> int:
    crc = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            crc = zlib.crc32(block, crc)
    return crc


def _checksum(facts: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts).encode())
