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

from epsearch.cache import cache_folder
from trainers.streams import sources
from trainers.streams.base import DataError
from trainers.streams.decoded import decode
from trainers.streams.inspection import Inspection, inspect
from trainers.streams.pixel_cache import Progress

FOLDER = "folder:"  # before the path of the user's own class folders
SIZES = {"split_cifar": 32, "split_cub": 224, "split_cub_je": 224, "split_awa": 224, "split_awa_je": 224}
FOLDER_SIZE = 32
PLAIN_SECONDS = 30.0  # without a terminal, a line this often


class Prepared(NamedTuple):
    """counts: images by part. seconds: of finding, decoding and opening. rate: images a second. size: pixels a side."""

    where: str
    size: int
    counts: dict[str, int]
    seconds: float
    rate: float
    cache_bytes: int
    fingerprint: str


def prepare(
    dataset: str, data_dir: Path, size: int | None, skip_corrupt: bool, console: Console, quiet: bool = False
) -> Prepared:
    """Decodes a dataset, one of SIZES or folder:PATH, to the cache, unless it is there. Raises DataError.

    size: pixels a side of every image; None is the dataset's own.
    """
    started = time.monotonic()
    source, size = source_of(dataset, data_dir), size or default_size(dataset)
    with progress_bar(console, quiet) as progress:
        images = decode(source, size, image_cache(), skip_corrupt, progress)
    seconds = time.monotonic() - started
    training = int(np.count_nonzero(~(images.test | images.unused)))
    found = {"train": training, "test": int(images.test.sum()), "unused": int(images.unused.sum())}
    counts = {part: count for part, count in found.items() if count}
    total = len(images.labels)
    return Prepared(source.where, size, counts, seconds, total / seconds, images.pixels.nbytes, images.fingerprint)


def check(dataset: str, data_dir: Path, console: Console, quiet: bool = False) -> Inspection:
    """Decodes every image at the dataset's own size and compares the counts with the official ones.

    Raises DataError where the dataset cannot be read at all; corrupt images are told, not raised.
    """
    source = source_of(dataset, data_dir)
    with progress_bar(console, quiet) as progress:
        return inspect(source, default_size(dataset), image_cache(), progress)


def source_of(dataset: str, data_dir: Path) -> sources.Source:
    """Where a dataset's images are, found or downloaded. Raises DataError."""
    if dataset.startswith(FOLDER):
        return sources.open_folder(Path(dataset.removeprefix(FOLDER)).expanduser())
    if dataset not in SIZES:
        raise DataError(f"{dataset!r} has no images to decode; allowed are {', '.join(SIZES)} and {FOLDER}PATH")
    return sources.find(dataset, data_dir)


def default_size(dataset: str) -> int:
    """Pixels a side."""
    return SIZES.get(dataset, FOLDER_SIZE)


def image_cache() -> Path:
    """The folder of decoded images."""
    return cache_folder() / "images"


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
