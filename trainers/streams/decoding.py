"""Encoded images to pixels of one size, on several threads."""

import io
import os
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from trainers.streams.base import Pixels
from trainers.streams.sources.base import Damaged, Source

CHUNK = 64  # images of one piece of work
SMALL_FILE = 16_384  # bytes; below, Python's part of decoding outweighs Pillow's, and threads take turns in it


class Chunk(NamedTuple):
    """Images start … start + len(readable) of a source. pixels [k, size, size, 3]: the readable ones, in order."""

    start: int
    readable: list[bool]
    pixels: Pixels


def decode_image(encoded: bytes | Pixels, size: int) -> Pixels:
    """RGB bytes [size, size, 3] of a file's bytes or of pixels [H, W, 3]; bilinear, the aspect ratio is not kept.

    Raises Damaged where the file is no whole image.
    """
    from PIL import Image

    try:
        if isinstance(encoded, np.ndarray):
            return _resized(Image.fromarray(encoded), size) if encoded.shape[:2] != (size, size) else encoded
        with Image.open(io.BytesIO(encoded)) as image:
            image.load()
            return _resized(image, size)
    except MemoryError:
        raise
    except Exception as error:  # Pillow's plugins raise whatever a damaged file makes them stumble over
        raise Damaged(str(error)) from error


def chunks(source: Source, size: int, workers: int | None = None) -> Generator[Chunk, None, None]:
    """All images of a source, in order; workers None takes as many threads as help. Raises DataError."""
    starts = iter(range(0, len(source.names), CHUNK))
    workers = workers or useful_workers(source)
    pending: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(workers, "decode") as pool:
        try:
            # A few ahead of the one that is taken, so that memory stays small.
            pending.extend(pool.submit(_chunk, source, size, start) for start in islice(starts, 2 * workers))
            while pending:
                yield pending.popleft().result()
                pending.extend(pool.submit(_chunk, source, size, start) for start in islice(starts, 1))
        finally:
            pool.shutdown(cancel_futures=True)


def useful_workers(source: Source) -> int:
    """Threads that make decoding faster: one for small files, else as many as this process has cores."""
    sample = [_length(source, name) for name in source.names[:: max(1, len(source.names) // 8)]]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if sum(sample) < SMALL_FILE * len(sample) else cores


def _length(source: Source, name: str) -> int:
    try:
        encoded = source.read(name)
    except Damaged:
        return 0
    return len(encoded) if isinstance(encoded, bytes) else 0


def _chunk(source: Source, size: int, start: int) -> Chunk:
    names: Sequence[str] = source.names[start : start + CHUNK]
    pixels = np.empty((len(names), size, size, 3), np.uint8)
    readable: list[bool] = []
    for name in names:
        try:
            pixels[sum(readable)] = decode_image(source.read(name), size)
            readable.append(True)
        except Damaged:
            readable.append(False)
    return Chunk(start, readable, pixels[: sum(readable)])


def _resized(image: Any, size: int) -> Pixels:
    from PIL import Image

    if image.mode.startswith("I;16"):  # Pillow would clip 16 bits to 255 instead of scaling them
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:  # else Pillow warns
        image = image.convert("RGBA")
    if image.mode != "RGB":
        image = image.convert("RGB")
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(image)
