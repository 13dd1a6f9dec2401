"""Small streams of artificial images, for fast trainings."""

from typing import Any, cast

import numpy as np

from trainers.methods.rules import Method
from trainers.scenarios import CLASS
from trainers.streams import PermutedStream, SplitPixelsStream
from trainers.streams.base import Examples, Images, Labels, TaskStream
from trainers.streams.competing import scenario_of
from trainers.streams.wrapper import StreamWrapper


def toy(
    tasks: range = range(3),
    examples: int | None = 60,
    classes: int = 4,
    pixels: int = 9,
    largest: float = 255.0,
) -> PermutedStream:
    """Returns a stream of images with a bright pixel per class; 80 for training, 40 for tests."""
    rng = np.random.default_rng(0)

    def part(count: int) -> Examples:
        labels = np.arange(count) % classes
        bright = rng.integers(0, 120, (count, pixels))
        bright[np.arange(count), labels] += 130
        return Examples(bright.astype(np.uint8), labels.astype(np.int64))

    return PermutedStream(Images(part(80), part(40), classes, largest), tasks, examples)


def pairs(scenario: str, tasks: range = range(3), examples: int | None = None) -> SplitPixelsStream:
    """Returns tasks of two classes each, out of six, of such images; 26 or 27 for training, 14 or 13 for tests."""
    images = toy(classes=6).images
    return SplitPixelsStream(images, tasks, 2, examples, scenario)


def black(images: int = 60, pixels: int = 9, classes: int = 4) -> PermutedStream:
    """Returns a stream of black images, with zero gradients of the first layer's weights."""
    labels = np.arange(images) % classes
    part = Examples(np.zeros((images, pixels), dtype=np.uint8), labels.astype(np.int64))
    return PermutedStream(Images(part, part, classes, 255.0), range(3), images)


class _ByClass(StreamWrapper):
    """The same tasks class-incrementally: each has outputs of its own, its labels are counted on."""

    scenario = CLASS

    def __init__(self, stream: TaskStream) -> None:
        super().__init__(stream)
        self.outputs = stream.outputs * len(stream.tasks)

    def heads(self, seed: int) -> Labels:
        """Returns the task [outputs] that each output belongs to."""
        return np.repeat(np.asarray(self._stream.tasks), self._stream.outputs)

    def train(self, seed: int, task: int, order: Labels) -> Examples:
        """Returns the training examples at `order`."""
        return self._own(self._stream.train(seed, task, order), task)

    def test(self, seed: int, task: int) -> Examples:
        """Returns the test set of a task."""
        return self._own(self._stream.test(seed, task), task)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON description that, with a seed, determines every example of the stream."""
        return self._stream.describe() | {"scenario": CLASS}

    def _own(self, examples: Examples, task: int) -> Examples:
        return examples._replace(labels=examples.labels + self._stream.outputs * self._stream.tasks.index(task))


def suit_stream(method: Method, stream: TaskStream) -> TaskStream:
    """Returns a domain-incremental stream as it is, or class-incremental where the method is for nothing else."""
    return stream if scenario_of(stream) in method.scenarios else cast(TaskStream, _ByClass(stream))
