"""Encoded images to pixels of one size, on several threads."""

import io
import warnings
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from trainers.notes import first_line
from trainers.operating_system import usable_cores
from trainers.streams.base import DataError, Pixels
from trainers.streams.images.levels import Levels, depth, eight_bits, orientation, turn
from trainers.streams.images.sources.base import MOST_NAMED, DamagedImage, Source, printable

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")  # of SUFFIXES; others may start programs (PostScript)
MOST_PIXELS = 89_478_485  # of one image; from here on Pillow, too, suspects a decompression bomb
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # begin its files
DECODED = "it can be decoded now"  # in the place of a reason
CHUNK = 64  # images of one piece of work
SMALL_FILE = 16_384  # bytes; below, Python's part of decoding outweighs Pillow's, and threads take turns in it


Chunk: TypeAlias = tuple[list[bool], Pixels, tuple[Levels, ...]]
"""Consecutive images of a source: whether each can be decoded; RGB bytes [k, size, size, 3] and levels of those."""


def decode_image(encoded: bytes | Pixels, size: int) -> tuple[Pixels, str]:
    """Returns RGB bytes [size, size, 3], and the kind of `Levels`, of a file's bytes or of pixels [H, W, 3].

    Bilinear, turned by its EXIF; the aspect ratio is not kept. Raises DamagedImage where the file is no whole image, or
    one of more than MOST_PIXELS.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        if isinstance(encoded, np.ndarray):
            same = encoded.shape[:2] == (size, size)
            return encoded if same else _resize(Image.fromarray(encoded), size), "RGB, 8 bits"
        with Image.open(io.BytesIO(encoded), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:  # seen before they are unpacked
                raise Image.DecompressionBombError
            mode, bits = image.mode, depth(image)
            image.load()
            levels = eight_bits(image, bits)
            plain = turn(_rgb(image if levels is None else Image.fromarray(levels)), orientation(image))
            return _resize(plain, size), f"{mode}, {bits} bits"
    except (MemoryError, DamagedImage):
        raise
    except Image.DecompressionBombError as error:  # Pillow's own limit is twice as high
        raise DamagedImage(f"it has more than {MOST_PIXELS:,} pixels") from error
    except UnidentifiedImageError as error:
        if isinstance(encoded, bytes) and encoded.startswith(TIFF):
            raise DamagedImage("it is a TIFF of a kind that Pillow does not read") from error
        raise DamagedImage(f"it is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from error
    except Exception as error:  # Pillow's plugins raise whatever a damaged file makes them stumble over
        raise DamagedImage(first_line(error)) from error


def reasons(source: Source, names: Sequence[str], size: int) -> dict[str, str]:
    """Returns the reasons why images cannot be decoded, by name.

    They are found by trying again: the cache keeps the names alone.

    Raises DataError where one cannot be read for another reason than that it is damaged.
    """
    return {name: _reason(source, name, size) for name in names}


def readable(source: Source, name: str, size: int) -> bool:
    """Returns whether an image can be decoded. Raises DataError as `reasons`."""
    return _reason(source, name, size) == DECODED


def reasons_text(source: Source, names: Sequence[str], size: int) -> str:
    """Returns the first few images that cannot be decoded and why, for a message. Raises DataError."""
    first = reasons(source, names[:MOST_NAMED], size).items()
    return ", ".join(f"{printable(name)} ({why})" for name, why in first) + (", …" if len(names) > MOST_NAMED else "")


def chunks(source: Source, size: int, workers: int | None = None) -> Generator[Chunk, None, None]:
    """Yields all images of a source, CHUNK by CHUNK, in their order, whichever thread is done first.

    workers: threads; None takes as many as help. Threads and not processes: Pillow decodes without Python's lock, and
    nothing has to be copied. Raises DataError where an image cannot be read for another reason than that it is damaged.
    """
    starts = iter(range(0, len(source.names), CHUNK))
    workers = workers or useful_workers(source)
    pending: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(workers, "decode") as pool, warnings.catch_warnings():
        # What Pillow only warns of is decoded; what is not is told by name.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        try:
            # A few ahead of the one that is taken, so that memory stays small.
            pending.extend(pool.submit(_chunk, source, size, start) for start in islice(starts, 2 * workers))
            while pending:
                yield pending.popleft().result()
                pending.extend(pool.submit(_chunk, source, size, start) for start in islice(starts, 1))
        finally:
            pool.shutdown(cancel_futures=True)


def useful_workers(source: Source) -> int:
    """Returns the number of threads that make decoding faster: one for small files, else one for each usable core.

    Told from eight images that lie evenly in the source. Raises DataError.
    """
    lengths = []
    for name in source.names[:: max(1, len(source.names) // 8)]:
        with suppress(DamagedImage):
            encoded = source.read(name)
            lengths.append(len(encoded) if isinstance(encoded, bytes) else 0)  # pixels need no decoding
    return 1 if sum(lengths) < SMALL_FILE * len(lengths) else usable_cores()


def _chunk(source: Source, size: int, start: int) -> Chunk:
    """Returns the images from `start` on: one piece of work of a thread. Raises DataError."""
    names = source.names[start : start + CHUNK]
    pixels = np.empty((len(names), size, size, 3), np.uint8)
    readable: list[bool] = []
    kinds: list[str] = []
    for name in names:
        try:
            pixels[sum(readable)], kind = _decode(source, name, size)
            kinds.append(kind)
            readable.append(True)
        except DamagedImage:
            readable.append(False)
    pixels, levels = pixels[: len(kinds)], []
    for kind in sorted(set(kinds)):
        of_kind = pixels[[other == kind for other in kinds]]
        levels.append(Levels(kind, len(of_kind), int(of_kind.min()), int(of_kind.max())))
    return readable, pixels, tuple(levels)


def _reason(source: Source, name: str, size: int) -> str:
    """Returns the reason why an image cannot be decoded. Raises DataError."""
    with warnings.catch_warnings(action="ignore"):
        try:
            _decode(source, name, size)
        except DamagedImage as error:
            return str(error)
    return DECODED


def _decode(source: Source, name: str, size: int) -> tuple[Pixels, str]:
    """Returns `decode_image` of one image. Raises DamagedImage, and DataError for lack of memory."""
    try:
        return decode_image(source.read(name), size)
    except MemoryError as error:
        raise DataError(f"there is too little memory to decode {name} in {source.where}") from error


def _rgb(image: Any) -> Any:
    """Returns an image of any mode with 8 bits as RGB."""
    if image.mode == "P" and "transparency" in image.info:  # else Pillow warns
        image = image.convert("RGBA")
    return image if image.mode == "RGB" else image.convert("RGB")


def _resize(image: Any, size: int) -> Pixels:
    """Returns bytes [size, size, 3] of an RGB image."""
    from PIL import Image

    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(image)
