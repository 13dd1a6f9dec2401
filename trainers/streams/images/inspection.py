"""Inspects a dataset of images, and compares it with the published counts."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainers.streams.images.cache import Progress
from trainers.streams.images.decode import prepare
from trainers.streams.images.decoder import reasons
from trainers.streams.images.levels import unclear
from trainers.streams.images.sources.base import PARTS, Source


class Inspection(NamedTuple):
    """Counts of a dataset of images."""

    where: str
    classes: int
    counts: dict[str, int]
    """Images by part, of all parts that have some."""
    per_class: dict[str, tuple[int, int]]
    """Images of the smallest and of the largest class, by part, as `counts`."""
    corrupt: list[str]
    """Names of images that cannot be decoded."""
    reasons: dict[str, str]
    """Why, by name."""
    differences: list[str]
    """One line for each count that is not the official one, and for images whose depth is unknown."""
    attributes: int | None
    """Their columns; None without."""
    left_out: str
    """What lies beside the images and is not read, with counts; "" for nothing."""
    levels: list[str]
    """One line for each kind of image: how many have which mode and depth, and their levels."""


def inspect(source: Source, size: int, cache: Path, progress: Progress | None = None) -> Inspection:
    """Decodes every image to the cache, unless that has been done, and counts.

    size: pixels a side, of the cache; counts do not depend on it. Raises DataError where the cache cannot be written or
    a file not be read; images that are damaged are counted as corrupt.
    """
    cached = prepare(source, size, cache, progress)
    corrupt, unknown = cached.facts["corrupt"], unclear(cached.levels)
    classes = len(source.classes)
    of_class = {
        name: np.bincount(source.labels[source.parts == part], minlength=classes) for part, name in enumerate(PARTS)
    }
    counts = {name: int(images.sum()) for name, images in of_class.items() if images.any()}
    return Inspection(
        where=source.where,
        classes=classes,
        counts=counts,
        per_class={name: (int(of_class[name].min()), int(of_class[name].max())) for name in counts},
        corrupt=corrupt,
        reasons=reasons(source, corrupt, size),
        differences=[*differences(counts, classes, source.official), *([unknown] if unknown else [])],
        attributes=None if source.attributes is None else source.attributes.shape[1],
        left_out=source.left_out,
        levels=[str(level) for level in cached.levels],
    )


def differences(counts: Mapping[str, int], classes: int, official: Mapping[str, int]) -> list[str]:
    """Returns a line for each official count that is not met.

    >>> differences({"train": 5000, "test": 20}, 10, {"classes": 10, "test": 30, "images": 5020})
    ['test: 20 here, 30 in the published dataset']
    """
    here = {**counts, "classes": classes, "images": sum(counts.values())}
    return [
        f"{name}: {here.get(name, 0):,} here, {expected:,} in the published dataset"
        for name, expected in official.items()
        if here.get(name, 0) != expected
    ]
