"""Near-duplicates: images that differ in a little noise alone.

As after another compression. Two images are near-duplicates where their difference hashes (64 bits: of an image shrunk
to 8 rows of 9 grey values, whether each value is larger than the one on its right; N. Krawetz, "Kind of Like That",
2013) differ in at most BITS bits, and their pixels by less than DIFFERENCE on average. All of that is exact: the same
on every machine.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import Labels, Pixels
from trainers.streams.hashes import CHUNK, Hashes, PixelHashes

SMALLEST = 16  # pixels a side: smaller images are alike too easily
BITS = 2
DIFFERENCE = 2.0  # of 255
ROWS, COLUMNS = 8, 9
PAIRS = 2**18  # that are compared at a time
# One of so many parts of two hashes is the same where at most BITS bits differ: (its lowest bit, its number of bits).
PARTS = ((0, 22), (22, 21), (43, 21))


class Pictures(NamedTuple):
    """Some images of a stream."""

    pixels: Pixels
    """[N, H, W, 3], all images."""
    hashes: PixelHashes
    """Their difference hashes."""
    positions: Labels
    """[n], of those that are meant."""

    @property
    def comparable(self) -> bool:
        """True if images of this size can be compared."""
        return bool(min(self.pixels.shape[1:3]) >= SMALLEST)


def difference_hashes(images: Pixels) -> Hashes:
    """Returns [n], of images [n, H, W, 3]."""
    small = _shrunk(images)
    bits = (small[:, :, :-1] > small[:, :, 1:]).reshape(len(small), ROWS * (COLUMNS - 1))
    return np.packbits(bits, axis=1).view(">u8").ravel().astype(np.uint64)


def near(some: Pictures, others: Pictures) -> NDArray[np.bool_]:
    """Returns [n], which of some images have a near-duplicate among others; images of sizes that differ are none.

    An image that is the very same, bit for bit, is one, too.
    """
    mask = np.zeros(len(some.positions), np.bool_)
    if not (some.comparable and others.comparable and some.pixels.shape[1:] == others.pixels.shape[1:]):
        return mask
    ours, theirs = some.hashes.of(some.positions), others.hashes.of(others.positions)
    for low, width in PARTS:
        for one, other in _meeting(_part(ours, low, width), _part(theirs, low, width)):
            left = ~mask[one]
            one, other = one[left], other[left]
            close = _ones(ours[one] ^ theirs[other]) <= BITS
            one, other = one[close], other[close]
            same = _close(some, others, some.positions[one], others.positions[other])
            mask[one[same]] = True
    return mask


def _shrunk(images: Pixels) -> NDArray[np.float64]:
    """Returns [n, ROWS, COLUMNS] of images [n, H, W, 3]: means over blocks, times ROWS · COLUMNS · H · W.

    All blocks have the same size.
    """
    height, width = images.shape[1:3]
    grey = images[..., 0].astype(np.float32)
    for colour in (1, 2):
        grey += images[..., colour]
    # Whole numbers, below 2²⁴ along a row and 2⁵³ in a block: no sum is rounded, in whatever order it is made.
    along = grey.reshape(-1, width) @ _blocks(width, COLUMNS).T.astype(np.float32)
    return np.asarray(_blocks(height, ROWS) @ along.reshape(-1, height, COLUMNS).astype(np.float64))


def _blocks(side: int, count: int) -> NDArray[np.float64]:
    """Returns the share [count, side] of each pixel in each block, in parts of a pixel of which there are `count`."""
    pixels, blocks = count * np.arange(side + 1), side * np.arange(count + 1)
    ends = np.minimum(pixels[None, 1:], blocks[1:, None]) - np.maximum(pixels[None, :-1], blocks[:-1, None])
    return np.asarray(np.maximum(ends, 0), np.float64)


def _part(hashes: Hashes, low: int, width: int) -> Hashes:
    return (hashes >> np.uint64(low)) & np.uint64(2**width - 1)


def _meeting(ours: Hashes, theirs: Hashes) -> Iterator[tuple[Labels, Labels]]:
    """Yields pairs of positions (in ours, in theirs) that have the same value, about PAIRS at a time."""
    order = np.argsort(theirs, kind="stable")
    first, end = (np.searchsorted(theirs[order], ours, side) for side in ("left", "right"))
    counts = end - first
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(ours):
        before = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, before + PAIRS, "right")))
        many = counts[begin:stop]
        one = np.repeat(np.arange(begin, stop), many)
        within = np.arange(len(one)) - np.repeat(np.cumsum(many) - many, many)
        yield one, order[first[one] + within]
        begin = stop


def _ones(words: Hashes) -> NDArray[np.uint64]:
    """Returns the number of 1 bits of each word."""
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        words = (words & np.uint64(mask)) + ((words >> np.uint64(shift)) & np.uint64(mask))
    return (words * np.uint64(0x0101010101010101)) >> np.uint64(56)


def _close(some: Pictures, others: Pictures, ours: Labels, theirs: Labels) -> NDArray[np.bool_]:
    """Returns a mask of the pairs of positions whose images' pixels differ by less than DIFFERENCE.

    Of each of ours, one pair at most.
    """
    height, width = some.pixels.shape[1:3]
    first, second = _of_few(some.pixels, ours), _of_few(others.pixels, theirs)
    # Blocks differ by no more than their pixels do: what differs there needs no closer look, which takes longer.
    apart = np.abs(first - second).sum(axis=(1, 2)) / (3 * ROWS * COLUMNS * height * width)
    close, done = np.zeros(len(ours), np.bool_), set[int]()
    for at in np.flatnonzero(apart < DIFFERENCE):
        if int(ours[at]) not in done:
            one, other = some.pixels[ours[at]].astype(np.int16), others.pixels[theirs[at]].astype(np.int16)
            close[at] = np.abs(one - other).mean() < DIFFERENCE
            done.update([int(ours[at])] if close[at] else [])
    return close


def _of_few(pixels: Pixels, positions: Labels) -> NDArray[np.float64]:
    """Returns `_shrunk` of each position, made once where one comes several times."""
    different, places = np.unique(positions, return_inverse=True)
    step = max(1, CHUNK // max(1, pixels[:1].nbytes))
    parts = [_shrunk(pixels[different[begin : begin + step]]) for begin in range(0, len(different), step)]
    return np.concatenate([np.zeros((0, ROWS, COLUMNS)), *parts])[places]
