"""Decoding and checking datasets of images; a listener hears how far that is."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epsearch.cache import image_cache
from epsearch.events import Decoded, Listener, ignore, stops, warner
from epsearch.failures.errors import Interrupted, UsageError, refused
from epsearch.study.description import Study
from search_spaces.published.definition import definitions, load_definition
from trainers.notes import redirect_notes
from trainers.streams import downloaded, present
from trainers.streams.base import DataError
from trainers.streams.images import registry, sources
from trainers.streams.images.cache import Progress
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import Inspection, inspect


class Prepared(NamedTuple):
    """A dataset of images that stands decoded in the cache."""

    where: str
    """From where the images came."""
    size: int
    """Pixels a side."""
    counts: dict[str, int]
    """Images by part."""
    seconds: float
    """Of finding, decoding and opening."""
    decoded: int
    """Images that were decoded in these seconds; 0 where the cache had them."""
    cache_bytes: int
    """Size of the pixels in the cache."""
    fingerprint: str
    """A hash of all pixels and labels, and of which are for testing; results name it."""


@refused(DataError)
@refused(DataError)
def look_for(study: Study) -> None:
    """Raises UsageError where a published dataset is not where it should be and cannot be downloaded; lists nothing."""
    name, data_dir = study.dataset, study.data_dir
    if name in sources.DATASETS and not downloaded(name) and present(name, data_dir) is None:
        sources.find(name, data_dir)  # says what is wanted where


def decode_for(study: Study, listener: Listener) -> None:
    """Decodes the images that the study is to train on, unless that has been done; pixels need no decoding.

    Raises UsageError where images are missing or, without `skip_corrupt`, corrupt; Interrupted.
    """
    request = study.request("eval")
    if request.images is not None:
        registry.load(request.dataset, request.data_dir, request.images, _decoding(listener))


@refused(DataError)
def prepare(
    dataset: str, data_dir: Path, size: int | None, skip_corrupt: bool, listener: Listener = ignore
) -> Prepared:
    """Decodes a dataset of images to the cache, unless it is there.

    size: pixels a side of every image; None is the dataset's own. skip_corrupt: images that cannot be decoded are left
    out, else they are an error. Raises UsageError; Interrupted where the listener wants it to stop.
    """
    started, done, tell = time.monotonic(), 0, _decoding(listener)
    size = size or _own_size(dataset)

    # Only decoding calls it: where the cache has the images, `done` stays 0.
    def count(now: int, total: int) -> None:
        nonlocal done
        done = now
        tell(now, total)

    with redirect_notes(warner(listener)):
        source = registry.find(dataset, data_dir)
        images = decode(source, size, image_cache(), skip_corrupt, count)
    parts = {"train": ~(images.test | images.unused), "test": images.test, "unused": images.unused}
    counts = {part: number for part, members in parts.items() if (number := int(np.count_nonzero(members)))}
    return Prepared(
        source.where, size, counts, time.monotonic() - started, done, images.pixels.nbytes, images.fingerprint
    )


@refused(DataError)
def check(dataset: str, data_dir: Path, listener: Listener = ignore) -> Inspection:
    """Decodes every image at the dataset's own size and compares the counts with the official ones.

    Raises UsageError where the dataset cannot be read at all; corrupt images are told, not raised.
    """
    size = _own_size(dataset)  # before the images are looked for: a dataset of pixels has none
    with redirect_notes(warner(listener)):
        return inspect(registry.find(dataset, data_dir), size, image_cache(), _decoding(listener))


def _own_size(dataset: str) -> int:
    """Pixels a side of the dataset's images. Raises UsageError where it has none to decode."""
    size = load_definition(dataset).image_size
    if size is None or not registry.has_images(dataset):
        known = ", ".join(name for name in definitions() if registry.has_images(name))
        raise UsageError(f"{dataset!r} has no images to decode; allowed: {known}, {registry.FOLDER}PATH")
    return size


def _decoding(listener: Listener) -> Progress:
    """Returns the callback of decoding: images done, images in all. It raises Interrupted if the listener stops."""

    def tell(done: int, total: int) -> None:
        listener(Decoded(done, total))
        if stops(listener):
            raise Interrupted

    return tell
