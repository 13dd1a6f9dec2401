"""The view that a plug-in trainer has of a stream.

Examples are sent in parts of a bounded size, as bytes, and scaled in the process of the trainer.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from trainers.scenarios import DOMAIN
from trainers.streams.competing import scenario_of

if TYPE_CHECKING:
    from trainers.streams.base import Examples, ImageStream, Labels, PixelStream, TaskStream

PART = 2**25  # bytes of a part as float32: CIFAR at 224 pixels has 2.4 GB a task


class StreamView:
    """A stream with one seed, in parts of a bounded size. Tasks are counted from 0."""

    def __init__(self, stream: "TaskStream", seed: int) -> None:
        self._stream, self._seed = stream, seed
        self._pixels: NDArray[np.uint8] | None = getattr(stream, "pixels", None)
        self._shape = _shape(stream)
        self._rows = max(1, PART // (4 * math.prod(self._shape)))
        self._trained: tuple[int, Examples] | None = None
        self._tests: dict[int, Examples] = {}  # as pools keep them: every later task is tested on them, too

    def __len__(self) -> int:
        return len(self._stream.tasks)

    @property
    def outputs(self) -> int:
        """Number of outputs: labels lie in 0…outputs−1."""
        return self._stream.outputs

    def facts(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Returns (facts of the stream for a trainer, arrays: the task [outputs] of each output, the mean of images).

        The tasks of outputs are left out in the domain-incremental scenario, the mean for pixels.
        """
        stream, tasks = self._stream, self._stream.tasks
        facts = {"tasks": len(tasks), "classes": stream.classes, "outputs": stream.outputs, "shape": self._shape}
        facts |= {"scenario": scenario_of(stream), "largest": None}
        arrays = [] if facts["scenario"] == DOMAIN else [self._heads()]
        if self._pixels is None:
            return facts | {"largest": float(cast("PixelStream", stream).largest)}, arrays
        return facts, [*arrays, np.asarray(cast("ImageStream", stream).mean, np.float32)]

    def _heads(self) -> "Labels":
        """Returns the task [outputs] of each output, counted from 0; −1 for none of this stream."""
        tasks = self._stream.tasks
        heads = np.asarray(cast("ImageStream", self._stream).heads(self._seed), np.int64)
        places = [tasks.index(head) if head in tasks else -1 for head in heads.tolist()]
        return np.array(places, dtype=np.int64)

    def train(self, task: int, first: int) -> tuple[int, "Examples"]:
        """Returns the number of training examples of a task, and a part of them, from `first` on, in its order."""
        if self._trained is None or self._trained[0] != task:
            number = self._stream.tasks[task]
            order = self._stream.order(self._seed, number)
            self._trained = task, self._stream.train(self._seed, number, order)
        return self._part(self._trained[1], first)

    def test(self, task: int, first: int) -> tuple[int, "Examples"]:
        """Returns the number of examples of a test set, and a part of them, from `first` on."""
        return self._part(self._test_examples(task), first)

    def test_labels(self, task: int) -> "Labels":
        """Returns [n], of the whole test set."""
        return np.asarray(self._test_examples(task).labels, np.int64)

    def _test_examples(self, task: int) -> "Examples":
        if task not in self._tests:
            self._tests[task] = self._stream.test(self._seed, self._stream.tasks[task])
        return self._tests[task]

    def _part(self, examples: "Examples", first: int) -> tuple[int, "Examples"]:
        rows = slice(first, first + self._rows)
        inputs = examples.inputs[rows]
        stored = inputs if self._pixels is None else np.take(self._pixels, inputs, axis=0)
        labels = np.asarray(examples.labels[rows], np.int64)
        return len(examples.labels), examples._replace(inputs=stored, labels=labels)


def _shape(stream: "TaskStream") -> list[int]:
    """Returns the shape of one input, as a trainer gets it."""
    if hasattr(stream, "pixels"):
        _, height, width, channels = cast("ImageStream", stream).pixels.shape
        return [channels, height, width]
    return [cast("PixelStream", stream).inputs]


def write_scaled(
    facts: Mapping[str, Any], mean: NDArray[np.float32] | None, stored: NDArray[np.uint8], into: NDArray[np.float32]
) -> None:
    """Writes bytes [n, P] or [n, H, W, 3] as networks see them, bit for bit, into numbers [n, P] or [n, 3, H, W].

    facts: of the stream; mean: of its training images, None for pixels. Pixels become byte / largest, images
    byte / 255 − mean.
    """
    if mean is None:
        np.divide(stored, np.float32(facts["largest"]), out=into, dtype=np.float32)
    else:
        scaled = np.divide(stored, np.float32(255), dtype=np.float32)
        scaled -= mean
        into[:] = scaled.transpose(0, 3, 1, 2)
