"""Decodes and checks datasets of images, with progress for a listener."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epsearch.cache import image_cache
from epsearch.events import Decoded, Listener, ignore, stops, warner
from epsearch.failures.errors import Interrupted, UsageError, as_usage_error
from epsearch.study.description import Study
from search_spaces.published.definition import definitions, load_definition
from trainers.notes import redirect_notes
from trainers.streams import is_downloadable, present
from trainers.streams.base import DataError
from trainers.streams.images import registry, sources
from trainers.streams.images.cache import Progress
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import Inspection, inspect


class DecodedImages(NamedTuple):
    """A dataset of images, decoded in the cache."""

    where: str
    """Folder or file of the images."""
    size: int
    """Pixels per side."""
    counts: dict[str, int]
    """Images by part."""
    seconds: float
    """Time of finding, decoding and opening."""
    decoded: int
    """Number of images decoded now; 0 where the cache had them."""
    cache_bytes: int
    """Size of the pixels in the cache."""
    fingerprint: str
    """Hash of all pixels, labels and the split into train and test, part of every key."""


@as_usage_error(DataError)
def check_present(study: Study) -> None:
    """Raises UsageError where a published dataset is missing and cannot be downloaded."""
    name, data_dir = study.dataset, study.data_dir
    if name in sources.DATASETS and not is_downloadable(name) and present(name, data_dir) is None:
        sources.find(name, data_dir)  # its error says which files are required, and where


@as_usage_error(DataError)
def decode_for(study: Study, listener: Listener) -> None:
    """Decodes the images of a study, unless the cache has them; pixels need no decoding.

    Raises UsageError where images are missing or, without `skip_corrupt`, corrupt; Interrupted.
    """
    request = study.request("eval")
    if request.images is not None:
        registry.load(request.dataset, request.data_dir, request.images, _progress(listener))


@as_usage_error(DataError)
def prepare(
    dataset: str, data_dir: Path, size: int | None, skip_corrupt: bool, listener: Listener = ignore
) -> DecodedImages:
    """Decodes a dataset of images into the cache, unless it has them.

    size: pixels per side, None for the dataset's own. skip_corrupt: leave out images that cannot be decoded, which are
    an error otherwise. Raises UsageError; Interrupted where the listener asks to stop.
    """
    started, done, progress = time.monotonic(), 0, _progress(listener)
    size = size or _own_size(dataset)

    # Only decoding calls it: where the cache has the images, `done` stays 0.
    def count(now: int, total: int) -> None:
        nonlocal done
        done = now
        progress(now, total)

    with redirect_notes(warner(listener)):
        source = registry.find(dataset, data_dir)
        images = decode(source, size, image_cache(), skip_corrupt, count)
    parts = {"train": ~(images.test | images.unused), "test": images.test, "unused": images.unused}
    counts = {part: number for part, members in parts.items() if (number := int(np.count_nonzero(members)))}
    return DecodedImages(
        source.where, size, counts, time.monotonic() - started, done, images.pixels.nbytes, images.fingerprint
    )


@as_usage_error(DataError)
def check(dataset: str, data_dir: Path, listener: Listener = ignore) -> Inspection:
    """Decodes every image at the dataset's own size and compares the counts with the official ones.

    Corrupt images are part of the result. Raises UsageError where the dataset cannot be read at all.
    """
    size = _own_size(dataset)  # first: a dataset of pixels has no images to find
    with redirect_notes(warner(listener)):
        return inspect(registry.find(dataset, data_dir), size, image_cache(), _progress(listener))


def _own_size(dataset: str) -> int:
    """Returns pixels per side of the dataset's images. Raises UsageError for a dataset without images."""
    size = load_definition(dataset).image_size
    if size is None or not registry.has_images(dataset):
        datasets = ", ".join(name for name in definitions() if registry.has_images(name))
        raise UsageError(f"{dataset!r} has no images to decode; allowed: {datasets}, {registry.FOLDER}PATH")
    return size


def _progress(listener: Listener) -> Progress:
    """Returns the callback of decoding: images done, total. It raises Interrupted if the listener stops."""

    def report(done: int, total: int) -> None:
        listener(Decoded(done, total))
        if stops(listener):
            raise Interrupted

    return report
