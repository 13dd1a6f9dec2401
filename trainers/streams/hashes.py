"""Hashes of examples by their bytes, to compare tasks.

64 bits of BLAKE2b each. Different hashes prove different bytes. Equal hashes of different bytes would be a false alarm:
among a million examples there is one with a probability below 10⁻⁷.
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainers.persistence import checked_files

Hashes: TypeAlias = NDArray[np.uint64]

BYTES = 8
CHUNK = 2**24  # bytes that are read at a time
ROWS = 2048  # of a table whose columns are hashed: what is turned at a time stays in the cache


def hash_rows(rows: NDArray[Any]) -> Hashes:
    """Returns one hash [n] of each row's bytes.

    >>> one, two, three = hash_rows(np.array([[1, 2], [2, 1], [1, 2]], dtype=np.uint8))
    >>> bool(one == two), bool(one == three)
    (False, True)
    """
    return _to_hashes(hashlib.blake2b(row.data, digest_size=BYTES).digest() for row in np.ascontiguousarray(rows))


def hash_columns(tables: Iterable[NDArray[np.uint8]]) -> Hashes:
    """Returns one hash [P] of each column of tables [n, P] that stand one above the other.

    The same as `hash_rows` of the transposed table, which is never made: of MNIST it would be as large as MNIST.
    """
    digests: list[Any] = []
    for table in tables:
        digests = digests or [hashlib.blake2b(digest_size=BYTES) for _ in range(table.shape[1])]
        for begin in range(0, len(table), ROWS):
            for digest, column in zip(digests, np.ascontiguousarray(table[begin : begin + ROWS].T), strict=True):
                digest.update(column.data)
    return _to_hashes(digest.digest() for digest in digests)


class PixelHashes:
    """Hashes of images [N, …], each computed once, on first use.

    file: where those of all images are kept; they are read again only where `mark`, which stands for the pixels, is the
    same. A file that is damaged, or cannot be written, costs time alone. make: the hashes [n] of images [n, …].
    """

    def __init__(
        self,
        pixels: NDArray[np.uint8],
        file: Path | None = None,
        mark: str = "",
        make: Callable[[NDArray[np.uint8]], Hashes] | None = None,
    ) -> None:
        self._pixels, self._file, self._mark, self._hash = pixels, file, mark, make or hash_rows
        self._hashes = np.zeros(len(pixels), np.uint64)
        self._known = np.zeros(len(pixels), np.bool_)

    def of(self, positions: NDArray[np.int64]) -> Hashes:
        """Returns the hashes [n] of the images at these positions [n], in any order.

        An image may be asked for twice.
        """
        missing = np.unique(positions[~self._known[positions]])
        if len(missing) and self._file is not None:
            self._load(self._file)
        elif len(missing):
            self._make(missing)
        return self._hashes[positions]

    def _load(self, file: Path) -> None:
        """Loads all hashes from the file, or makes them and writes it where it does not have them.

        All, not those that are asked for: a file is replaced as a whole, and the next command asks for others.
        """
        content = checked_files.read(file, self._mark, "every image is hashed again")
        if content is not None and len(content) == self._hashes.nbytes:
            self._hashes = _to_hashes([content])
            self._known[:] = True
            return
        self._make(np.flatnonzero(~self._known))
        with suppress(OSError):
            checked_files.write(file, self._mark, self._hashes.astype("<u8").tobytes())

    def _make(self, positions: NDArray[np.int64]) -> None:
        """Hashes the images at these positions, which are ascending, so that a mapped file is read in its order."""
        step = max(1, CHUNK // max(1, self._pixels[:1].nbytes))
        for begin in range(0, len(positions), step):
            part = positions[begin : begin + step]
            self._hashes[part] = self._hash(self._pixels[part])
        self._known[positions] = True


def _to_hashes(digests: Iterable[bytes]) -> Hashes:
    """Returns digests of BYTES each, or several of them in a row, as numbers."""
    # Little-endian whatever the machine, so that hashes and what is made of them can be compared between machines.
    return np.frombuffer(b"".join(digests), np.dtype("<u8")).astype(np.uint64)
