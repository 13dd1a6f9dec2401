"""The registry of streams: a dataset's name and how its images are found."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trainers.streams import digits, mnist
from trainers.streams.base import DataError, Images, TaskStream
from trainers.streams.permuted import PermutedStream


class StreamSource(NamedTuple):
    """`load(data_dir)` returns the images, downloading them if need be; `present(data_dir)` says where they lie."""

    load: Callable[[Path], Images]
    present: Callable[[Path], str | None]


STREAMS: dict[str, StreamSource] = {
    "permuted_digits": StreamSource(digits.load, digits.present),
    "permuted_mnist": StreamSource(mnist.load, mnist.present),
}


def open_stream(dataset: str, data_dir: Path, tasks: range, examples_per_task: int | None) -> PermutedStream:
    """The given tasks of a dataset's stream; examples_per_task None shows each task's whole training set.

    Raises DataError when the images can neither be read nor downloaded, or the sizes do not fit them.
    """
    return PermutedStream(STREAMS[dataset].load(data_dir), tasks, examples_per_task)


__all__ = ["STREAMS", "DataError", "Images", "PermutedStream", "TaskStream", "open_stream"]
