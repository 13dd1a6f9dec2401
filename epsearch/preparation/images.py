"""Decoding and checking datasets of images from the command line, with a bar and the time to go."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from epsearch.cache import image_cache
from epsearch.failures.errors import UsageError
from epsearch.study.kinds import Setup
from search_spaces.published.definition import definitions, load_definition
from trainers.streams.base import DataError
from trainers.streams.images import registry
from trainers.streams.images.cache import Progress
from trainers.streams.images.decode import decode
from trainers.streams.images.inspection import Inspection, inspect

PLAIN_SECONDS = 30.0  # without a terminal, a line this often


class Prepared(NamedTuple):
    """counts: images by part. size: pixels a side. seconds: of finding, decoding and opening; decoded: images that were
    decoded in them, 0 where the cache had them.
    """

    where: str
    size: int
    counts: dict[str, int]
    seconds: float
    decoded: int
    cache_bytes: int
    fingerprint: str


def decode_for(study: Setup, console: Console, quiet: bool) -> None:
    """Decodes the images that the study is to train on, unless that has been done. Raises UsageError."""
    options = study.request("eval").images
    if options is None:
        return
    try:
        with progress_bar(console, quiet) as progress:
            registry.load(study.dataset, study.data_dir.absolute(), options, progress)
    except DataError as error:
        raise UsageError(str(error)) from error


def prepare(
    dataset: str, data_dir: Path, size: int | None, skip_corrupt: bool, console: Console, quiet: bool = False
) -> Prepared:
    """Decodes a dataset of images to the cache, unless it is there. Raises UsageError.

    size: pixels a side of every image; None is the dataset's own.
    """
    started, done = time.monotonic(), 0
    size = size or _own_size(dataset)
    try:
        source = registry.find(dataset, data_dir)
        with progress_bar(console, quiet) as progress:

            def note(count: int, total: int) -> None:
                nonlocal done
                done = count
                if progress:
                    progress(count, total)

            found = decode(source, size, image_cache(), skip_corrupt, note)
    except DataError as error:
        raise UsageError(str(error)) from error
    seconds = time.monotonic() - started
    parts = {"train": ~(found.test | found.unused), "test": found.test, "unused": found.unused}
    counts = {part: count for part, members in parts.items() if (count := int(np.count_nonzero(members)))}
    return Prepared(source.where, size, counts, seconds, done, found.pixels.nbytes, found.fingerprint)


def check(dataset: str, data_dir: Path, console: Console, quiet: bool = False) -> Inspection:
    """Decodes every image at the dataset's own size and compares the counts with the official ones.

    Raises UsageError where the dataset cannot be read at all; corrupt images are told, not raised.
    """
    size = _own_size(dataset)
    try:
        source = registry.find(dataset, data_dir)
        with progress_bar(console, quiet) as progress:
            return inspect(source, size, image_cache(), progress)
    except DataError as error:
        raise UsageError(str(error)) from error


def _own_size(dataset: str) -> int:
    size = load_definition(dataset).image_size
    if size is None or not registry.has_images(dataset):
        known = ", ".join(name for name in definitions() if registry.has_images(name))
        raise UsageError(f"{dataset!r} has no images to decode; allowed: {known}, {registry.FOLDER}PATH")
    return size


@contextmanager
def progress_bar(console: Console, quiet: bool) -> Iterator[Progress | None]:
    """What to call with images done and in all: draws a bar, or prints a line now and then without a terminal."""
    if quiet:
        yield None
    elif not console.is_terminal:
        yield _lines(console)
    else:
        columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn())
        with Bar(*columns, console=console, transient=True) as bar:
            task = bar.add_task("decoding", total=None, visible=False)
            yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _lines(console: Console) -> Progress:
    started = printed = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed > PLAIN_SECONDS:
            printed = now
            eta = (now - started) * (total - done) / done
            console.print(f"decoding  {done:,}/{total:,} images  ETA {eta:.0f} s", highlight=False, soft_wrap=True)

    return show
