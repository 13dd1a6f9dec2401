"""All that a stream shows with some seeds, to train on and to test on, as hashes."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.hashes import Hashes, PixelHashes, hash_rows
from trainers.streams.near_duplicates import Pictures, difference_hashes

ROWS = 4096  # examples that are made at a time


class Part(NamedTuple):
    """What a side trains on, or tests on."""

    hashes: Hashes
    """Different ones, ascending."""
    pictures: Pictures | None = None
    """Of each hash one image, in the same order; None where examples are no images."""


class Shown(NamedTuple):
    """What a side shows."""

    trained: Part
    """To train on."""
    tested: Part
    """To test on."""

    @property
    def all(self) -> Hashes:
        """All hashes, ascending."""
        return np.union1d(self.trained.hashes, self.tested.hashes)


def shown(stream: TaskStream, seeds: Sequence[int]) -> Shown:
    """By the images behind positions [n], or by inputs [n, P], as the stream gives them."""
    return _images(cast(ImageStream, stream), seeds) if hasattr(stream, "pixels") else _rows(stream, seeds)


def _images(stream: ImageStream, seeds: Sequence[int]) -> Shown:
    trained, tested = np.zeros((2, len(stream.pixels)), np.bool_)
    for seed in seeds:
        for task in stream.tasks:
            trained[stream.train(seed, task, stream.order(seed, task)).inputs] = True
            tested[stream.test(seed, task).inputs] = True
    hashes = _kept(stream, "hashes") or PixelHashes(stream.pixels)
    differences = _kept(stream, "differences") or PixelHashes(stream.pixels, make=difference_hashes)

    def part(there: NDArray[np.bool_]) -> Part:
        positions = np.flatnonzero(there)
        different, first = np.unique(hashes.of(positions), return_index=True)
        return Part(different, Pictures(stream.pixels, differences, positions[first]))

    return Shown(part(trained), part(tested))


def _kept(stream: ImageStream, name: str) -> PixelHashes | None:
    """Those that the stream has; what a user's own stream has of that name may be something else."""
    found = getattr(stream, name, None)
    return found if isinstance(found, PixelHashes) else None


def _rows(stream: TaskStream, seeds: Sequence[int]) -> Shown:
    trained, tested = _Different(), _Different()
    for seed in seeds:
        for task in stream.tasks:
            order = stream.order(seed, task)
            for start in range(0, len(order), ROWS):  # in parts, as train() copies what it gives
                trained.add(hash_rows(stream.train(seed, task, order[start : start + ROWS]).inputs))
            tested.add(hash_rows(stream.test(seed, task).inputs))
    return Shown(Part(trained.hashes()), Part(tested.hashes()))


class _Different:
    """Different hashes, ascending, of many that come in parts."""

    def __init__(self) -> None:
        self._known, self._fresh = np.zeros(0, np.uint64), list[Hashes]()

    def add(self, hashes: Hashes) -> None:
        """Takes some more."""
        self._fresh.append(hashes)
        # Sorted less often than they come, with hardly more held than twice the different ones.
        if sum(map(len, self._fresh)) > len(self._known):
            self.hashes()

    def hashes(self) -> Hashes:
        """All so far."""
        self._known, self._fresh = np.unique(np.concatenate([self._known, *self._fresh])), []
        return self._known
