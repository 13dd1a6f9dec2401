"""Batches of the engine of tensors, from the pools, on the device."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.engines.base import parts
from trainers.networks.base import Batch
from trainers.pool import Pool
from trainers.streams.base import ImageStream, PixelStream, TaskStream

PIXEL_TEST_ROWS = 1000  # test rows of one forward pass
IMAGE_TEST_PIXELS = {"cpu": 2**18, "cuda": 2**23, "mps": 2**23}  # of all images of one forward pass
UPLOAD = 1000  # images that go to the device at a time


class _PixelFeed:
    """Rows are pixels; each seed has its own, all are on the device."""

    test_rows = PIXEL_TEST_ROWS

    def __init__(self, stream: PixelStream, pools: list[Pool], device: torch.device) -> None:
        self._largest, self._pools, self._device = stream.largest, pools, device
        self._tests: dict[tuple[int, int | None], tuple[Tensor, Tensor]] = {}

    def load(self) -> None:
        """Uploads the inputs [S, rows, P], as bytes, the labels [S, rows] and the competing outputs of all pools."""
        self._competing = self._open()
        self._inputs = self._upload([pool.inputs for pool in self._pools])
        self._labels = self._upload([pool.labels for pool in self._pools])

    def batch(self, rows: Tensor, seed: Tensor) -> Batch:
        """Returns inputs [M, B, P] in [0, 1], labels [M, B] and the outputs allowed for each example."""
        mine = rows[seed]
        labels = self._labels[seed[:, None], mine]
        return self._batch(self._inputs[seed[:, None], mine], labels, self._competing, seed)

    def test(self, task: int, part: slice, seed: Tensor, images: int | None = None) -> Batch:
        """Returns inputs [M, n, P] and labels [M, n] of a part of the test set, which is uploaded once a task.

        images: as for `Pool.test`.
        """
        if (task, images) not in self._tests:
            tests = [pool.test(task, images) for pool in self._pools]
            uploaded = (self._upload([t.inputs for t in tests]), self._upload([t.labels for t in tests]))
            self._tests[task, images] = uploaded
        inputs, labels = self._tests[task, images]
        return self._batch(inputs[seed, part], labels[seed, part], self._open(task), seed)

    def labels(self, task: int, images: int | None = None) -> NDArray[np.int64]:
        """Returns the labels [S, n] of the task's test set; images: as for `Pool.test`."""
        return np.stack([pool.test(task, images).labels for pool in self._pools])

    def _batch(self, stored: Tensor, labels: Tensor, competing: Tensor | None, seed: Tensor) -> Batch:
        allowed = None if competing is None else competing[seed[:, None], labels]
        return Batch(stored.to(torch.float32).div_(self._largest), labels, allowed)

    def _open(self, tested: int = 0) -> Tensor | None:
        """Returns the competing outputs [S, outputs, outputs], None for all; tested: as for `Pool.competing`."""
        of_seeds = [competing for pool in self._pools if (competing := pool.competing(tested)) is not None]
        return self._upload(of_seeds) if of_seeds else None

    def _upload(self, parts: Sequence[NDArray[Any]]) -> Tensor:
        return torch.from_numpy(np.stack(parts)).to(self._device)


class ImageFeed:
    """Rows are positions in one set of images, which is on the device; on a CPU it stays where it is, mapped.

    One seed: its members all have the same batch, which is made once.
    """

    def __init__(self, stream: ImageStream, pools: list[Pool], device: torch.device) -> None:
        (self._pool,) = pools
        self._pixels, self._device = stream.pixels, device
        self._mean = torch.tensor(stream.mean, device=device)
        self.test_rows = max(1, IMAGE_TEST_PIXELS[device.type] // (stream.pixels.shape[1] * stream.pixels.shape[2]))
        self._uploaded = None if device.type == "cpu" else _upload_images(stream.pixels, device)

    def load(self) -> None:
        """Uploads the pool's positions [rows], labels [rows] and competing outputs."""
        self._competing = self._open()
        self._positions = torch.from_numpy(self._pool.inputs).to(self._device)
        self._labels = torch.from_numpy(self._pool.labels).to(self._device)

    def batch(self, rows: Tensor, seed: Tensor) -> Batch:
        """Returns images [1, B, H, W, 3], labels [1, B] and the outputs allowed for each of them."""
        return self._batch(self._positions[rows[0]], self._labels[rows], self._competing)

    def test(self, task: int, part: slice, seed: Tensor, images: int | None = None) -> Batch:
        """Returns a part of the test set, in the shapes of a batch; images: as for `Pool.test`."""
        tested = self._pool.test(task, images)
        positions, labels = (torch.from_numpy(values[part]).to(self._device) for values in tested)
        return self._batch(positions, labels[None], self._open(task))

    def labels(self, task: int, images: int | None = None) -> NDArray[np.int64]:
        """Returns the labels [1, n] of the task's test set; images: as for `Pool.test`."""
        return self._pool.test(task, images).labels[None]

    def _open(self, tested: int = 0) -> Tensor | None:
        """Returns the competing outputs [outputs, outputs], None for all; tested: as for `Pool.competing`."""
        competing = self._pool.competing(tested)
        return None if competing is None else torch.from_numpy(competing).to(self._device)

    def _batch(self, positions: Tensor, labels: Tensor, competing: Tensor | None) -> Batch:
        if self._uploaded is None:
            stored = torch.from_numpy(np.take(self._pixels, positions.numpy(), axis=0))
        else:
            stored = self._uploaded[positions]
        x = stored.to(self._mean.dtype).div_(255).sub_(self._mean)
        return Batch(x[None], labels, None if competing is None else competing[labels])


Feed: TypeAlias = _PixelFeed | ImageFeed
"""Batches of the loaded task and parts of test sets, as networks take them; seed [M]: index of the pool of each member.

test_rows: examples of a test in one forward pass, so many that their activations fit.
"""


def make_feed(stream: TaskStream, pools: list[Pool], device: torch.device) -> Feed:
    """Returns the feed for the inputs of a stream."""
    if hasattr(stream, "pixels"):
        return ImageFeed(cast(ImageStream, stream), pools, device)
    return _PixelFeed(cast(PixelStream, stream), pools, device)


# Cohorts of a study follow each other in a process, all on the same images: they are uploaded for the first alone.
_on_device: dict[tuple[int, str], tuple[NDArray[np.uint8], Tensor]] = {}  # the last one, for later cohorts


def on_device(pixels: NDArray[np.uint8], device: str) -> bool:
    """Returns whether a GPU, "cuda" or "mps", has these images already."""
    return (id(pixels), device) in _on_device


def _upload_images(pixels: NDArray[np.uint8], device: torch.device) -> Tensor:
    """Returns all images on the device, once for all cohorts that this process trains on them."""
    key = (id(pixels), str(device))
    if key not in _on_device:
        _on_device.clear()
        whole = torch.empty(pixels.shape, dtype=torch.uint8, device=device)
        # In parts: a mapped file need not fit into memory a second time.
        for part in parts(len(pixels), UPLOAD):
            whole[part] = torch.from_numpy(np.array(pixels[part]))
        _on_device[key] = (pixels, whole)  # the array is kept, so that its id stays its own
    return _on_device[key][1]
