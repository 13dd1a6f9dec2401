"""Arguments of a plug-in trainer: the stream, and the report function.

Everything that can be refused is refused on the other side of the pipe, which trusts nothing of this one; here it
becomes a ValueError at the trainer's own line.
"""

import operator
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trainers.foreign.inputs import write_scaled
from trainers.foreign.inside.seeds import Seeds
from trainers.foreign.messages import AT_ONCE, Message, pack, take_message
from trainers.scenarios import DOMAIN

CACHED = 2**29  # bytes of test inputs that are kept, as bytes of pixels; others come again for every test
REPORTING = "report() was called while another report() was not over"

Predict = Callable[[NDArray[np.float32], int], ArrayLike]
"""predict(inputs, task): a label [n] for each of the inputs [n, …]."""


class Channel:
    """Asks epsearch and waits for the answer; ends this process when there is nobody any more."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers, self._incoming = requests, answers, bytearray()
        self._lock, self._process = threading.Lock(), os.getpid()

    def ask(self, header: Mapping[str, Any], *arrays: NDArray[Any]) -> Message:
        """Returns the answer. Raises ValueError, in one line, where it is that this cannot be, and in a fork."""
        if os.getpid() != self._process:
            raise ValueError("stream and report can be used in the trainer's own process alone, this is a fork of it")
        with self._lock:
            self.tell(header, *arrays)
            answer = self.receive()
        if answer.kind == "refused":
            raise ValueError(answer.text("line"))
        return answer

    def tell(self, header: Mapping[str, Any], *arrays: NDArray[Any]) -> None:
        """Sends something. Ends a process that is a fork of the trainer's: it has no say."""
        if os.getpid() != self._process:
            os._exit(os.EX_USAGE)
        left = memoryview(pack(header, *arrays))
        while left:
            try:
                left = left[os.write(self._answers, left) :]
            except OSError:
                os._exit(os.EX_IOERR)

    def receive(self) -> Message:
        """Returns the next message."""
        while (message := take_message(self._incoming)) is None:
            try:
                chunk = os.read(self._requests, AT_ONCE)
            except OSError:
                chunk = b""
            if not chunk:
                os._exit(os.EX_IOERR)
            self._incoming += chunk
        return message


class Stream:
    """The tasks of a run, numbered 0…len(stream)−1 in the order in which they are to be trained."""

    tasks: range
    """Those that are still to be trained: all, or those after the last one that a resumed run has saved."""
    classes: int
    """Classes of one task."""
    outputs: int
    """Labels lie in 0…outputs−1."""
    shape: tuple[int, ...]
    """Of one input: (P,) of pixels, (3, H, W) of images."""
    scenario: str
    """"task": an example's task is known in a test, and so are its labels; "domain": all tasks have the same labels;
    "class": all labels seen so far compete.
    """

    def __init__(self, channel: Channel, job: Mapping[str, Any], arrays: list[NDArray[Any]]) -> None:
        facts = self._facts = job["stream"]
        self._channel, self._length = channel, int(facts["tasks"])
        self._heads: NDArray[Any] | None = None
        self._mean = mean_of(facts, arrays)
        self.scenario = str(facts["scenario"])
        if self.scenario != DOMAIN:
            self._heads = arrays[0]
        self.tasks = range(job["done"] + 1, self._length)
        self.classes, self.outputs, self.shape = int(facts["classes"]), int(facts["outputs"]), tuple(facts["shape"])

    def __len__(self) -> int:
        return self._length

    def labels(self, task: int) -> NDArray[np.int64]:
        """Returns the labels that the task can have, ascending."""
        number = operator.index(task)
        return np.arange(self.outputs) if self._heads is None else np.flatnonzero(self._heads == number)

    def train(self, task: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns (inputs [n, *shape], labels [n]) of the task's training examples.

        They are in the order in which the task shows them. Pixels lie in [0, 1]; images are pixels / 255 less the mean
        of the training images. Both are the caller's own. Raises ValueError where the task before has not been reported
        yet.
        """
        number, first, rows = operator.index(task), 0, 1
        while first < rows:
            answer = self._channel.ask({"kind": "train", "task": number, "first": first})
            if first == 0:
                rows = answer.whole("rows")
                inputs, labels = np.empty((rows, *self.shape), np.float32), np.empty(rows, np.int64)
            stored, part_labels = answer.arrays
            last = first + len(part_labels)
            write_scaled(self._facts, self._mean, stored, inputs[first:last])
            labels[first:last], first = part_labels, last
        return inputs, labels


def mean_of(facts: Mapping[str, Any], arrays: list[NDArray[Any]]) -> NDArray[Any] | None:
    """Returns the mean of a stream's images, which comes last; None for pixels."""
    return arrays[-1] if facts["largest"] is None else None


class Report:
    """Tells epsearch what has been learned: `report(k, predict)` after task k."""

    def __init__(self, channel: Channel, job: Mapping[str, Any], arrays: list[NDArray[Any]], seeds: Seeds) -> None:
        self._channel, self._seeds, self._facts = channel, seeds, job["stream"]
        self._mean = mean_of(self._facts, arrays)
        self._save: Callable[[Path], object] | None = None
        self._curve = int(job["curve"])
        self._open, self._lock = False, threading.Lock()
        self._cache: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._cached = 0

    def saved_by(self, save: Callable[[Path], object]) -> None:
        """Sets the function that saves the state after each task, where epsearch wants it."""
        self._save = save

    def __call__(
        self,
        task: int,
        predict: Predict | None = None,
        *,
        accuracies: ArrayLike | None = None,
        batches: int | None = None,
        diverged: bool = False,
    ) -> None:
        """Reports task `task`; −1, before training, what the untrained learner can do.

        predict: is called by and by with test inputs of several tasks, in parts.
        accuracies: instead of it, a row of numbers in [0, 1], one for each task up to this one; what is not finite
        means that training has diverged. diverged: training of this task has diverged, which ends the run.
        batches: that this is after so many mini-batches of task + 1, whose accuracy is to be measured. Of more than
        ten nothing is measured, and no time taken.

        Raises ValueError for a report that cannot be, and whatever `predict` raises.
        """
        number, reports = operator.index(task), (predict is not None) + (accuracies is not None) + bool(diverged)
        if reports != 1:
            raise ValueError("report() takes one of predict, accuracies and diverged=True")
        after = None if batches is None else operator.index(batches)
        if after is not None and after > self._curve:
            return
        with self._lock:
            if self._open:
                raise ValueError(REPORTING)
            self._open = True
        try:
            self._report(number, after, predict, accuracies)
        finally:
            self._open = False

    def _report(self, task: int, batches: int | None, predict: Predict | None, accuracies: ArrayLike | None) -> None:
        header = {"kind": "report", "task": task, "batches": batches, "how": "diverged"}
        if accuracies is not None:
            self._channel.ask(header | {"how": "accuracies"}, _numbers(accuracies))
        elif predict is not None:
            answer = self._channel.ask(header | {"how": "predict"})
            with self._seeds.preserve():
                for tested, rows in answer.header["tests"]:
                    for first, inputs in self._inputs(tested, rows):
                        labels = _labels(predict(inputs, tested))
                        self._channel.ask({"kind": "labels", "task": tested, "first": first}, labels)
        else:
            self._channel.ask(header)
        answer = self._channel.ask({"kind": "reported"})
        if batches is not None or task < 0:
            return
        # Before what follows: a run that is resumed begins with these generators, too.
        self._seeds.begin(task + 1)
        if self._save is not None and (place := answer.header["save"]) is not None:
            with self._seeds.preserve():
                self._save(Path(place))
            self._channel.ask({"kind": "saved"})

    def _inputs(self, task: int, rows: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yields (the first row, inputs) of each part of a test set of so many rows."""
        first = 0
        while first < rows:
            stored = self._cache.get((task, first))
            if stored is None:
                (stored,) = self._channel.ask({"kind": "test", "task": task, "first": first}).arrays
                if self._cached + stored.nbytes <= CACHED:
                    self._cache[task, first], self._cached = stored, self._cached + stored.nbytes
            inputs = np.empty((len(stored), *self._facts["shape"]), np.float32)
            write_scaled(self._facts, self._mean, stored, inputs)
            yield first, inputs
            first += len(stored)


def _labels(predicted: ArrayLike) -> NDArray[Any]:
    """Returns predicted labels as they travel. Raises ValueError for other than whole numbers [n]."""
    labels = np.asarray(_on_cpu(predicted))
    if labels.dtype.kind not in "iu":
        raise ValueError(f"predict() must return labels, whole numbers; got an array of {labels.dtype}")
    if labels.ndim != 1:
        more = "; of scores [n, outputs] it is argmax(axis=1)" if labels.ndim == 2 else ""
        raise ValueError(f"predict() must return one label for each input, [n]; got {list(labels.shape)}{more}")
    return labels.astype(np.int64)


def _numbers(accuracies: ArrayLike) -> NDArray[np.float64]:
    """Returns accuracies that were reported. Raises ValueError for None, which NumPy takes for a NaN, and for words."""
    row = np.asarray(_on_cpu(accuracies)).reshape(-1)
    wrong = [value for value in row.tolist() if value is None or isinstance(value, (str, bytes))]
    if wrong:
        raise ValueError(f"report() takes a row of numbers in [0, 1] as accuracies; got {wrong[0]!r} among them")
    return row.astype(np.float64)


def _on_cpu(values: Any) -> Any:
    """Returns a tensor of torch as NumPy can read it; anything else as it is."""
    return values.detach().cpu() if hasattr(values, "detach") else values
