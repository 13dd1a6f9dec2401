"""A set of labelled, decoded images of one size."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.streams.base import DataError, Labels, Pixels
from trainers.streams.hashes import PixelHashes
from trainers.streams.images.sources.base import without_images
from trainers.streams.near_duplicates import difference_hashes

DIFFERENCES = "differences"  # the file of difference hashes, beside that of the hashes


@dataclass(frozen=True)
class ImageSet:
    """N labelled images of one size. Raises DataError where a class has no training or no test image."""

    pixels: Pixels
    """[N, H, W, 3], bytes, perhaps mapped from a file."""
    labels: Labels
    """[N], classes numbered as the dataset does."""
    test: NDArray[np.bool_]
    """[N], True for the test set."""
    unused: NDArray[np.bool_]
    """[N], True for images of neither set."""
    classes: tuple[str, ...]
    """Their names."""
    attributes: NDArray[np.float32] | None
    """[classes, A], of length 1 each, for joint embeddings; None without."""
    mean: NDArray[np.float32]
    """[H, W, 3], of the training images' pixels / 255."""
    fingerprint: str
    """A hash of every pixel and label."""
    hashed: Path | None = None
    """The file that keeps the hashes of single images, None for none."""

    def __post_init__(self) -> None:
        # A source has looked at this before: here images that cannot be decoded are left out.
        for part, members in (("training", self._training), ("test", self.test)):
            if empty := without_images(self.labels[members], self.classes):
                raise DataError(
                    f"every class needs a {part} image; {len(empty)} of {len(self.classes)} have none: "
                    f"{', '.join(empty[:3])}{' …' if len(empty) > 3 else ''}"
                )

    @cached_property
    def train_of(self) -> tuple[Labels, ...]:
        """Positions of each class's training images, ascending."""
        return self._by_class(self._training)

    @cached_property
    def test_of(self) -> tuple[Labels, ...]:
        """Positions of each class's test images, ascending."""
        return self._by_class(self.test)

    @cached_property
    def hashes(self) -> PixelHashes:
        """Hashes of single images."""
        return PixelHashes(self.pixels, self.hashed, self.fingerprint)

    @cached_property
    def differences(self) -> PixelHashes:
        """Difference hashes of single images."""
        beside = self.hashed and self.hashed.with_name(DIFFERENCES)
        return PixelHashes(self.pixels, beside, f"{self.fingerprint} {DIFFERENCES}", difference_hashes)

    @property
    def _training(self) -> NDArray[np.bool_]:
        """[N], True for the training set."""
        return ~(self.test | self.unused)

    def _by_class(self, members: NDArray[np.bool_]) -> tuple[Labels, ...]:
        """Returns positions of the members [N] of each class."""
        return tuple(np.flatnonzero(members & (self.labels == label)) for label in range(len(self.classes)))
