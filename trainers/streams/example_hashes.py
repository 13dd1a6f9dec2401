"""Hashes of all training and test examples of a stream."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import ImageStream, TaskStream
from trainers.streams.hashes import Hashes, PixelHashes, hash_rows
from trainers.streams.near_duplicates import Pictures, difference_hashes

ROWS = 4096  # examples that are made at a time


ExampleHashes: TypeAlias = tuple[Hashes, Pictures | None]
"""Distinct hashes of training or test examples, ascending, and an image of each; None where examples are no images."""


def example_hashes(stream: TaskStream, seeds: Sequence[int]) -> tuple[ExampleHashes, ExampleHashes]:
    """Returns the hashes of the training and of the test examples.

    Of the images behind positions [n], or of inputs [n, P], as the stream returns them.
    """
    return _images(cast(ImageStream, stream), seeds) if hasattr(stream, "pixels") else _rows(stream, seeds)


def test_hashes(stream: TaskStream, seed: int, task: int) -> Hashes:
    """Returns the distinct hashes of one task's tests, ascending."""
    inputs = stream.test(seed, task).inputs
    if not hasattr(stream, "pixels"):
        return np.unique(hash_rows(inputs))
    pixels = cast(ImageStream, stream).pixels
    hashes = _hashes_of(cast(ImageStream, stream), "hashes") or PixelHashes(pixels)
    return np.unique(hashes.of(np.unique(inputs)))


def _images(stream: ImageStream, seeds: Sequence[int]) -> tuple[ExampleHashes, ExampleHashes]:
    trained, tested = np.zeros((2, len(stream.pixels)), np.bool_)
    for seed in seeds:
        for task in stream.tasks:
            trained[stream.train(seed, task, stream.order(seed, task)).inputs] = True
            tested[stream.test(seed, task).inputs] = True
    hashes = _hashes_of(stream, "hashes") or PixelHashes(stream.pixels)
    differences = _hashes_of(stream, "differences") or PixelHashes(stream.pixels, make=difference_hashes)

    def of(used: NDArray[np.bool_]) -> ExampleHashes:
        positions = np.flatnonzero(used)
        distinct, first = np.unique(hashes.of(positions), return_index=True)
        return distinct, Pictures(stream.pixels, differences, positions[first])

    return of(trained), of(tested)


def _hashes_of(stream: ImageStream, name: str) -> PixelHashes | None:
    """Returns the hashes that the stream has; an attribute of a user's own stream may be something else."""
    value = getattr(stream, name, None)
    return value if isinstance(value, PixelHashes) else None


def _rows(stream: TaskStream, seeds: Sequence[int]) -> tuple[ExampleHashes, ExampleHashes]:
    pairs = [(seed, task) for seed in seeds for task in stream.tasks]

    def training_hashes() -> Iterator[Hashes]:
        for seed, task in pairs:
            order = stream.order(seed, task)
            for start in range(0, len(order), ROWS):  # in parts, as train() copies its examples
                yield hash_rows(stream.train(seed, task, order[start : start + ROWS]).inputs)

    tested = (hash_rows(stream.test(*pair).inputs) for pair in pairs)
    return (_distinct(training_hashes()), None), (_distinct(tested), None)


def _distinct(parts: Iterable[Hashes]) -> Hashes:
    """Returns the distinct hashes of all parts, ascending."""
    distinct, new = np.zeros(0, np.uint64), list[Hashes]()
    for hashes in parts:
        new.append(hashes)
        # Sorted less often than parts come, with hardly more held than twice the distinct ones.
        if sum(map(len, new)) > len(distinct):
            distinct, new = np.unique(np.concatenate([distinct, *new])), []
    return np.unique(np.concatenate([distinct, *new]))
