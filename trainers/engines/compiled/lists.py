"""Inputs and activations as lists of their non-zero values.

The lists of images are shared by all members of a seed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.engines.compiled import nonzero, sparse
from trainers.engines.compiled.kernels import Floats
from trainers.engines.compiled.sparse import ByPixel, Sparse
from trainers.engines.compiled.vectors import LANES
from trainers.networks.layout import pad
from trainers.numeric_path import LISTABLE
from trainers.schedule import Indices


class Output(NamedTuple):
    """A layer's active units for each example: those of row i are at starts[i, 0] … starts[i, 1]."""

    starts: Indices  # [rows, 2]
    unit: NDArray[np.uint16]
    value: Floats
    passed_back: Floats  # the gradient by them

    @classmethod
    def empty(cls, rows: int, units: int) -> "Output":
        """Returns lists for so many rows; kernels write whole vectors, a few places beyond a row's."""
        if units > LISTABLE:  # their numbers take two bytes
            raise ValueError(f"lists of units are for layers of at most {LISTABLE:,} of them, got {units:,}")
        width = units + LANES
        starts = (width * np.arange(rows))[:, None].repeat(2, axis=1)
        value, passed_back = np.zeros((2, rows * width), dtype=np.float32)
        return cls(starts, np.zeros(rows * width, dtype=np.uint16), value, passed_back)

    @classmethod
    def whole(cls, delta: Floats, units: int) -> "Output":
        """Returns the lists of the last layer, none of whose first `units` is shut.

        delta [rows, N]: the gradient by them.
        """
        rows, width = delta.shape
        begin = width * np.arange(rows)
        unit = np.tile(np.arange(width, dtype=np.uint16), rows)
        return cls(np.stack([begin, begin + units], axis=1), unit, delta.reshape(-1), delta.reshape(-1))

    def first(self, rows: int) -> "Output":
        """Returns the lists of the first rows alone, in the same memory."""
        return self._replace(starts=self.starts[:rows])


class ListedInputs:
    """The examples of a pool, or of a test, and the batch of them that is at hand.

    What only some steps need of a batch is made when a first member asks for it. examples [n, P] in bytes; scale [256]:
    what the network sees of each byte.
    """

    def __init__(self, examples: NDArray[np.uint8], scale: Floats) -> None:
        self.lists, self._pixels = sparse.without_zeros(examples, scale), examples.shape[1]
        self._buffers: dict[tuple[bool, bool], ByPixel] = {}
        self._turned: Floats = np.empty((0, 0), dtype=np.float32)
        self._by_pixel: dict[tuple[int, int], ByPixel] = {}
        self._grams: dict[int, Floats] = {}

    @property
    def batch(self) -> tuple[Indices, Sparse]:
        """The rows that are at hand, and the lists they are rows of."""
        return self.rows, self.lists

    def take(self, rows: Indices) -> None:
        """Makes these examples the batch."""
        self.rows = rows
        self._by_pixel.clear()
        self._grams.clear()

    def split(self, current: int) -> None:
        """Does nothing: parts are made when they are asked for."""

    def by_pixel(self, begin: int, end: int) -> ByPixel:
        """Returns some of the batch's rows by pixel; their numbers begin at 0."""
        part = begin, end
        if part not in self._by_pixel:
            # For the rows of g, those of g_ref and all; buffers grow as needed and are used again.
            kind, most = (begin == 0, end == len(self.rows)), (end - begin) * self._pixels
            if kind not in self._buffers or len(self._buffers[kind].value) < most:
                self._buffers[kind] = ByPixel.empty(self._pixels, most)
            sparse.sort_by_pixel(self.rows[begin:end], self.lists, *self._buffers[kind])
            self._by_pixel[part] = self._buffers[kind]
        return self._by_pixel[part]

    def gram(self, count: int) -> Floats:
        """Returns the inner products of all rows of the batch with the first `count`, [B, at least count]."""
        if count not in self._grams:
            if self._turned.shape[1] != pad(count):
                self._turned = np.zeros((self._pixels, pad(count)), dtype=np.float32)
            self._grams[count] = nonzero.gram(self.lists, self.rows, 0, count, self._turned)
        return self._grams[count]
