"""The cache folder of decoded images.

It is made to the side and renamed, checked whenever it is opened, and made again when damaged. A process reads all
pixels once, before it maps them. A gigabyte takes a second, and training is to read it anyway. Processes that would
make the same folder take turns, and what killed ones left is removed.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.notes import notify
from trainers.operating_system import lock
from trainers.persistence import checked_files
from trainers.streams.base import DataError, Pixels
from trainers.streams.images.decoder import Chunk
from trainers.streams.images.levels import Levels, merge
from trainers.streams.images.sources.base import TRAIN, Source

PIXELS, MEAN, FACTS = "pixels", "mean", "facts"
ABANDONED = 7 * 86_400.0  # seconds after which an unfinished folder is nobody's
UNFINISHED = re.compile(r"\.[0-9a-f]{24}-\d+-v\d+\.")  # how the name of any of them begins

Progress = Callable[[int, int], None]  # images done, images in all


class Cached(NamedTuple):
    """A finished folder."""

    folder: Path
    """Where it lies."""
    facts: dict[str, Any]
    """images, size, corrupt (names that were left out), levels (of `Levels`), fingerprint, and the pixels' checksum."""
    mean: NDArray[np.float32]
    """[size, size, 3], of the training images' pixels / 255."""

    @property
    def levels(self) -> tuple[Levels, ...]:
        """The levels of all images, by kind."""
        return tuple(Levels(*levels) for levels in self.facts["levels"])

    def pixels(self) -> Pixels:
        """Returns [images, size, size, 3], mapped from the file, read-only."""
        size = self.facts["size"]
        return np.memmap(self.folder / PIXELS, np.uint8, "r", shape=(self.facts["images"], size, size, 3))


def reopen(folder: Path) -> Cached | None:
    """Returns a finished and undamaged folder, else None.

    The checksum of the facts includes the folder's name; that of the mean includes the one of the pixels, which the
    facts name. So a folder of another dataset, or of two decodings, does not fit together.
    """
    with suppress(OSError):
        facts = json.loads(checked_files.contents(folder / FACTS, folder.name))
        mean = np.frombuffer(checked_files.contents(folder / MEAN, facts["checksum"]), np.float32)
        size, pixels = facts["size"], folder / PIXELS
        # The length first: it is had without reading a gigabyte.
        if pixels.stat().st_size == facts["images"] * size * size * 3 and _checksum(pixels, size) == facts["checksum"]:
            return Cached(folder, facts, mean.reshape(size, size, 3))
    return None


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Waits until no other process makes this folder, then removes what killed ones left beside it.

    Where files cannot be locked nobody waits, and the first to rename wins. Raises OSError.
    """
    with open(folder.parent / f"{_beside(folder)}lock", "ab") as file:
        locked = False
        with suppress(OSError):  # some network file systems
            locked = lock(file.fileno())
        _clean(folder, locked)
        yield


def make(
    folder: Path, source: Source, size: int, chunks: Generator[Chunk, None, None], progress: Progress | None
) -> Cached:
    """Decodes the images into the folder, which is there only when all of it is.

    chunks: decoded images, in the order of the source. Raises OSError where that fails, and DataError where the
    disk is too small or an image cannot be read for another reason than that it is damaged.
    """
    needed, free = len(source.names) * size * size * 3, shutil.disk_usage(folder.parent).free
    if needed > free:
        raise DataError(
            f"the decoded images need {needed / 1e9:.1f} GB and {folder.parent} has {free / 1e9:.1f} GB left; "
            "EPSEARCH_CACHE names another folder"
        )
    if os.path.lexists(folder):
        notify(f"{folder} is damaged or lacks images that can be decoded now: all are decoded again")
    unfinished = Path(tempfile.mkdtemp(prefix=_beside(folder), dir=folder.parent))
    unfinished.chmod(0o755)  # others may share the cache
    try:
        facts = _write(unfinished, source, size, chunks, progress)
        checked_files.write(unfinished / FACTS, folder.name, json.dumps(facts).encode())
        return _publish(unfinished, folder, facts["images"])
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(
    folder: Path, source: Source, size: int, chunks: Generator[Chunk, None, None], progress: Progress | None
) -> dict[str, Any]:
    """Writes pixels and mean; returns the facts, as `Cached` has them. Raises OSError and DataError."""
    digest = _digest(size)
    total = np.zeros((size, size, 3), np.int64)  # whole numbers: the mean does not depend on the order of sums
    kept = np.zeros(len(source.names), np.bool_)
    levels: tuple[Levels, ...] = ()
    with closing(chunks), open(folder / PIXELS, "wb") as file:
        done = 0
        for readable, pixels, of_chunk in chunks:
            levels = merge((*levels, *of_chunk))
            members = slice(done, done := done + len(readable))
            kept[members] = readable
            total += pixels[source.parts[members][readable] == TRAIN].sum(axis=0, dtype=np.int64)
            file.write(pixels.data)
            digest.update(pixels.data)
            if progress:
                progress(done, len(kept))
        # On the disk before the facts, whose checksum vouches for it.
        file.flush()
        os.fsync(file.fileno())
    checksum = digest.hexdigest()
    mean = (total / (255.0 * max(1, int((source.parts[kept] == TRAIN).sum())))).astype(np.float32)
    checked_files.write(folder / MEAN, checksum, mean.tobytes())
    digest.update(source.labels[kept].tobytes() + source.parts[kept].tobytes())
    return {
        "images": int(kept.sum()),
        "size": size,
        "corrupt": [name for name, good in zip(source.names, kept, strict=True) if not good],
        "levels": levels,
        "checksum": checksum,
        "fingerprint": digest.hexdigest()[:16],
    }


def _publish(unfinished: Path, folder: Path, images: int) -> Cached:
    """Gives the folder its name, unless another process has been first with as many images.

    Raises OSError and DataError.
    """
    try:
        os.rename(unfinished, folder)
    except OSError:
        other = reopen(folder)
        if other and other.facts["images"] >= images:  # made by a process that could not be waited for
            return other
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()  # whatever stands in its place
        os.rename(unfinished, folder)
    if made := reopen(folder):
        return made
    raise DataError(f"{folder} does not hold what was just written there; is the disk sound?")


def _checksum(pixels: Path, size: int) -> str:
    """Returns the SHA-256 of the file as `_write` has made it. Raises OSError."""
    with open(pixels, "rb") as file:
        return hashlib.file_digest(file, lambda: _digest(size)).hexdigest()


def _digest(size: int) -> "hashlib._Hash":
    """Returns the digest of pixels in this size, before any pixel.

    The fingerprint goes on from it, so that written bytes are hashed once.
    """
    return hashlib.sha256(repr(size).encode())


def _beside(folder: Path) -> str:
    """Returns the prefix of the names of a folder's unfinished neighbours."""
    return f".{folder.name}."


def _clean(folder: Path, locked: bool) -> None:
    """Removes unfinished folders: of this name while the lock is held, of others when they are old.

    Nothing else is touched: the cache may lie in a folder of the user's.
    """
    for path in folder.parent.glob(".*"):
        with suppress(OSError):
            ours = locked and path.name.startswith(_beside(folder))
            old = UNFINISHED.match(path.name) and time.time() - path.stat().st_mtime > ABANDONED
            if path.is_dir() and (ours or old):
                shutil.rmtree(path, ignore_errors=True)
