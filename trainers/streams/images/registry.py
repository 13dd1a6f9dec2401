"""The registry of image streams: published datasets and class folders."""

from dataclasses import dataclass
from pathlib import Path

from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.cache import Progress
from trainers.streams.images.decode import decode
from trainers.streams.images.image_set import ImageSet
from trainers.streams.images.split import ReoccurringStream, SplitStream

FOLDER = "folder:"
DECODED = "decoded"  # where decoded images lie, under the folder of datasets, unless told otherwise


@dataclass(frozen=True)
class ImageOptions:
    """Options of a stream of images."""

    classes: int
    """Of each task."""
    size: int
    """Side of the images in pixels."""
    skip_corrupt: bool = False
    """Whether images that cannot be decoded are left out; else they are an error."""
    cache: Path | None = None
    """The folder of decoded images; None is one beside the datasets."""


_LOADED: dict[tuple[str, Path, ImageOptions], ImageSet] = {}  # by this process


def required_options(dataset: str, options: ImageOptions | None) -> ImageOptions:
    """Returns the options, which every stream of images needs. Raises DataError without."""
    if options is None:
        raise DataError(f"{dataset} needs the number of classes of a task and the size of the images")
    return options


def open_images(
    dataset: str,
    images: ImageSet,
    tasks: range,
    examples_per_task: int | None,
    options: ImageOptions,
    scenario: str | None = None,
) -> SplitStream | ReoccurringStream:
    """Returns the stream of these images. Raises DataError where they do not make such tasks."""
    published = sources.DATASETS.get(dataset)  # of class folders of the user's own None
    kind = ReoccurringStream if published and published.recurring else SplitStream
    return kind(
        images=images,
        tasks=tasks,
        classes_per_task=options.classes,
        examples_per_task=examples_per_task,
        embedding=bool(published and published.embedding),
        scenario=scenario,
    )


def has_images(dataset: str) -> bool:
    """Returns whether the dataset is one of images that are decoded: published, or class folders of the user's own."""
    return dataset in sources.DATASETS or dataset.startswith(FOLDER)


def load(dataset: str, data_dir: Path, options: ImageOptions, progress: Progress | None = None) -> ImageSet:
    """Returns the images, decoded if they have not been before; those asked for last are kept by this process.

    progress(images done, in all) is called while they are decoded. Raises DataError.
    """
    key = (dataset, data_dir, options)
    if key not in _LOADED:
        _LOADED.clear()  # one at a time: what is mapped twice is not read twice, but lists of names take memory
        _LOADED[key] = decode(
            source=find(dataset, data_dir),
            size=options.size,
            cache=options.cache or data_dir / DECODED,
            skip_corrupt=options.skip_corrupt,
            progress=progress,
        )
    return _LOADED[key]


def clear_cache() -> None:
    """Looks at the files again at the next `load`: they may have changed since this process read them."""
    _LOADED.clear()


def find(dataset: str, data_dir: Path) -> sources.Source:
    """Returns the source of the images; decodes nothing. Raises DataError."""
    if dataset.startswith(FOLDER):
        return sources.open_folder(Path(dataset.removeprefix(FOLDER)))
    return sources.find(dataset, data_dir)
