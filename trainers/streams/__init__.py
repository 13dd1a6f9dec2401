"""The registry of streams: sequences of tasks from a dataset."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from trainers.scenarios import SCENARIOS
from trainers.streams import plugin
from trainers.streams.base import DataError, Images, ImageStream, PixelStream, TaskStream
from trainers.streams.images import registry, sources
from trainers.streams.images.image_set import ImageSet
from trainers.streams.images.registry import FOLDER, ImageOptions
from trainers.streams.permuted import PermutedStream, RotatedStream
from trainers.streams.pixels import digits, mnist
from trainers.streams.split_pixels import SplitPixelsStream
from trainers.streams.task_order import Order, in_order
from trainers.streams.validation import hold_out


class StreamSource(NamedTuple):
    """The images of a stream of pixels, and its tasks."""

    make: Callable[[Images, range, int | None, str | None], TaskStream]
    """make(images, tasks, examples_per_task, scenario): the stream. Raises DataError."""
    load: Callable[[Path], Images]
    """load(data_dir): the images, downloaded if need be. Raises DataError."""
    present: Callable[[Path], str | None]
    """present(data_dir): where they lie, or None; downloads nothing. May raise DataError."""
    downloaded: bool = False
    """Whether there is something to download."""


def _pairs(images: Images, tasks: range, examples_per_task: int | None, scenario: str | None) -> SplitPixelsStream:
    """Returns tasks of two classes each."""
    return SplitPixelsStream(images, tasks, 2, examples_per_task, scenario)


KINDS: dict[str, Callable[[Images, range, int | None, str | None], TaskStream]] = {
    "permuted": PermutedStream,
    "rotated": RotatedStream,
    "split": _pairs,
}
PIXELS = {
    f"{kind}_{of}": StreamSource(make, source.load, source.present, source is mnist)
    for kind, make in KINDS.items()
    for of, source in (("digits", digits), ("mnist", mnist))
}


@dataclass(frozen=True)
class StreamRequest:
    """Which tasks of which stream; everything that a worker needs to open it."""

    dataset: str
    """A name of `streams()`, folder:/path for class folders or a zip of them, or module:factory."""
    data_dir: Path
    """The folder of datasets."""
    tasks: range
    """Their numbers in the whole stream."""
    examples_per_task: int | None = None
    """None shows each task's whole training set."""
    images: ImageOptions | None = None
    """Classes per task and size, of a stream of images."""
    beside: Path = Path()
    """The folder in which a module of the user's own may lie."""
    scenario: str | None = None
    """One of `SCENARIOS`; None for the usual one of the stream."""
    source: Mapping[str, str] | None = None
    """Hashes of the files that it must be made of, as `describe` of its stream names them; None: whatever is there."""
    validation: float = 0.0
    """Share of each task's training examples that is held out of training."""
    validates: bool = False
    """Whether these examples are the tests, in the place of the test sets."""
    order: Order = 0
    """The order of the tasks: a number, by which it is drawn, 0 for their own; or the tasks."""
    of_class: int | None = None
    """How many of the examples that are held out, of each class, are the tests, the first ones; None for all."""

    def load(self) -> Images | ImageSet | None:
        """Returns the images from which all its tasks are cut, for `open` on a machine without the data.

        None of a user's own stream, which finds its data itself. Raises DataError.
        """
        if self.dataset in PIXELS:
            return PIXELS[self.dataset].load(self.data_dir)
        if registry.has_images(self.dataset):
            return registry.load(self.dataset, self.data_dir, registry.required_options(self.dataset, self.images))
        return None

    def open(self, images: Images | ImageSet | None = None) -> TaskStream:
        """Opens the stream, and downloads what it lacks.

        images: what `load` has returned, perhaps elsewhere; then no data are looked for here.

        Raises DataError when the data can neither be read nor downloaded, or the sizes do not fit them, and
        ForeignError where a user's own module cannot be imported or its factory fails.
        """
        # Classes are shuffled before examples of them are held out.
        stream = in_order(self._whole(images), self.order)
        return hold_out(stream, self.validation, self.validates, self.of_class) if self.validation else stream

    def _whole(self, images: Images | ImageSet | None) -> TaskStream:
        """Returns the stream with all training examples, as `open`."""
        data = self.load() if images is None else images
        if isinstance(data, Images):
            return PIXELS[self.dataset].make(data, self.tasks, self.examples_per_task, self.scenario)
        if isinstance(data, ImageSet):
            options = registry.required_options(self.dataset, self.images)
            return registry.open_images(self.dataset, data, self.tasks, self.examples_per_task, options, self.scenario)
        if ":" not in self.dataset:
            raise DataError(f"no dataset {self.dataset!r}; known: {', '.join(streams())}, {FOLDER}PATH, module:factory")
        if self.scenario is not None:
            raise DataError(f"scenario of {self.dataset} is an attribute of its stream, got {self.scenario!r}")
        return plugin.open_own(self.dataset, self.tasks, self.examples_per_task, self.beside.absolute(), self.source)


def streams() -> tuple[str, ...]:
    """Returns names of all datasets."""
    return (*PIXELS, *sources.DATASETS)


def is_downloadable(dataset: str) -> bool:
    """Returns whether torchvision downloads the dataset where it is missing."""
    source = PIXELS.get(dataset)
    return source.downloaded if source else bool(sources.DATASETS[dataset].downloaded_as)


def endless(dataset: str) -> bool:
    """Returns whether there are always further tasks, as every task moves the pixels of the same images in its way."""
    source = PIXELS.get(dataset)
    return source is not None and source.make in (PermutedStream, RotatedStream)


def clear_cache() -> None:
    """Drops the images that this process holds, so that those that are opened next are what lies on the disk now."""
    registry.clear_cache()
    mnist.load.cache_clear()


def open_stream(dataset: str, data_dir: Path, tasks: range, examples_per_task: int | None) -> TaskStream:
    """Returns the given tasks of a dataset's stream, as `StreamRequest` says."""
    return StreamRequest(dataset, data_dir, tasks, examples_per_task).open()


def present(dataset: str, data_dir: Path) -> str | None:
    """Returns the place of the images of one of `streams()`, or None; downloads nothing."""
    try:
        return PIXELS[dataset].present(data_dir) if dataset in PIXELS else sources.present(dataset, data_dir)
    except DataError:  # what lies there cannot be read
        return None


__all__ = [
    "SCENARIOS",
    "DataError",
    "ImageOptions",
    "ImageStream",
    "Images",
    "PermutedStream",
    "PixelStream",
    "RotatedStream",
    "SplitPixelsStream",
    "StreamRequest",
    "TaskStream",
    "clear_cache",
    "endless",
    "is_downloadable",
    "open_stream",
    "present",
    "streams",
]
