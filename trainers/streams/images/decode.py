"""Decodes images once, into a cache folder.

Their pixels lie in one file, which every process maps into its memory.
"""

from pathlib import Path

import numpy as np

from trainers.notes import notify
from trainers.streams.base import DataError
from trainers.streams.images.cache import Cached, Progress, lock_folder, make, reopen
from trainers.streams.images.decoder import chunks, readable, reasons_text
from trainers.streams.images.image_set import ImageSet
from trainers.streams.images.levels import unclear
from trainers.streams.images.sources.base import TEST, UNUSED, Source

HASHES = "hashes"  # beside the pixels, once someone has asked for them
VERSION = 3  # raise it when the same files would give other pixels


def decode(
    source: Source, size: int, cache: Path, skip_corrupt: bool = False, progress: Progress | None = None
) -> ImageSet:
    """Returns the source's images as RGB of size × size pixels, bilinear, the aspect ratio not kept.

    Decodes only where `cache` does not have them yet; progress(done, total) is called as it does. Raises DataError
    where images cannot be decoded, unless skip_corrupt leaves them out, and where the cache cannot be written.
    """
    if source.left_out:
        notify(f"{source.where}: left out are {source.left_out}")
    cached = prepare(source, size, cache, progress)
    corrupt = cached.facts["corrupt"]
    if corrupt and not skip_corrupt:
        raise DataError(
            f"{len(corrupt):,} of {len(source.names):,} images cannot be decoded: "
            f"{reasons_text(source, corrupt, size)}; --skip-corrupt leaves them out"
        )
    if why := unclear(cached.levels):
        raise DataError(f"{source.where}: {why}")
    if not cached.facts["images"]:
        raise DataError(f"none of the {len(source.names):,} images in {source.where} can be decoded")
    left_out = set(corrupt)
    kept = np.array([name not in left_out for name in source.names])
    parts = source.parts[kept]
    return ImageSet(
        pixels=cached.pixels(),
        labels=source.labels[kept],
        test=parts == TEST,
        unused=parts == UNUSED,
        classes=source.classes,
        attributes=source.attributes,
        mean=cached.mean,
        fingerprint=cached.facts["fingerprint"],
        hashed=cached.folder / HASHES,
    )


def prepare(
    source: Source, size: int, cache: Path, progress: Progress | None = None, workers: int | None = None
) -> Cached:
    """Returns the folder in `cache` of all images that can be decoded, made if need be. Raises DataError.

    workers: threads.
    """
    if size < 1:
        raise DataError(f"images cannot be {size} pixels wide; at least 1 is needed")
    folder = cache / f"{source.key}-{size}-v{VERSION}"
    if cached := _whole(folder, source, size):  # no lock: a cache may be shared with those who cannot write to it
        return cached
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            return _whole(folder, source, size) or make(folder, source, size, chunks(source, size, workers), progress)
    except OSError as error:
        raise DataError(
            f"cannot write the decoded images to {cache}: {error.strerror or error}; "
            "EPSEARCH_CACHE names another folder"
        ) from error


def _whole(folder: Path, source: Source, size: int) -> Cached | None:
    """Returns a finished folder that has every image which can be decoded now, else None. Raises DataError.

    Images that could not be decoded are tried again: files may be had again, and other versions of libraries read more.
    """
    cached = reopen(folder)
    return None if cached is None or any(readable(source, name, size) for name in cached.facts["corrupt"]) else cached
