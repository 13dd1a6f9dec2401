"""The CPU engine: one member at a time, matrix products by MKL or oneDNN, everything else compiled by Numba.

g is never made: its ten or so rows enter the inner products and the update as they are. g_ref is made once, as its
batch is large, and is read once more for the update, which adds both to the parameters in one pass.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import TrainConfig
from trainers.engines import kernels
from trainers.engines.base import Learners, steps_between
from trainers.engines.inputs import DenseInputs, Inputs, Layer, SparseInputs
from trainers.engines.products import PRODUCTS
from trainers.methods import Method, Options, Products
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.schedule import Segment, generator
from trainers.streams.base import TaskStream

TEST_ROWS = 500  # test rows of one forward pass: their activations stay in the cache


class CompiledEngine:
    """Members of one seed. They take each step one after another, so that a batch is prepared once for all."""

    def __init__(self, stream: TaskStream, seed: int, config: TrainConfig, method: Method, path: NumericPath) -> None:
        self._stream, self._seed, self._method, self._path = stream, seed, method, path
        self._options = Options(config.trigger, config.scale, config.satisfied)
        self._learning_rate = config.learning_rate
        self._net = MLP((stream.inputs, *config.hidden, stream.classes))
        self._pool = Pool(stream, seed, config, method.uses_memory)
        self._multiply = PRODUCTS[path.products]
        self._scale = (torch.arange(256, dtype=torch.float32) / stream.largest).numpy()
        self._g_ref = self._layers(torch.zeros(self._net.row))
        self._inputs: Inputs | None = None
        self._batches: dict[tuple[int, int], _Batch] = {}
        self._tests: dict[int, Inputs] = {}
        self._segments: tuple[Segment, ...] = ()

    @property
    def steps(self) -> int:
        return sum(len(segment.rows) for segment in self._segments)

    @property
    def reference(self) -> bool:
        return self._segments[0].reference > 0

    def start(self) -> Tensor:
        return torch.from_numpy(self._net.init(generator(self._seed, "init", self._stream.tasks.start)))[None]

    def load_task(self, task: int) -> None:
        self._segments = self._pool.load_task(task)
        self._inputs = None  # made when the first step asks for it: a shared first task has none

    def remember(self, task: int) -> None:
        self._pool.remember(task)

    def train(self, learners: Learners, first: int, last: int) -> None:
        members = [self._layers(row) for row in learners.params]
        first_bad, projected = learners.first_bad.numpy(), learners.projected.numpy()
        epsilons = learners.epsilon.tolist()
        if self._inputs is None:
            self._inputs = self._examples(self._pool.inputs)
        inputs = self._inputs
        for number, start, steps in steps_between([len(part.rows) for part in self._segments], first, last):
            segment = self._segments[number]
            batch = self._batch(segment.rows.shape[1], segment.current)
            for step in steps:
                rows = segment.rows[step]
                inputs.take(rows)
                inputs.split(segment.current)
                labels = self._pool.labels[rows]
                for row, member in enumerate(members):
                    loss = self._forward(member, batch, inputs, labels)
                    if first_bad[row] < 0 and not math.isfinite(loss):
                        first_bad[row] = start + step
                    products = self._backward(member, batch, inputs)
                    a, b = 1.0, 0.0
                    if segment.reference:
                        a, b, hit = self._method.mix(products, epsilons[row], self._options)
                        projected[row] += hit
                    self._update(member, batch, inputs, a, b)

    def accuracy(self, learners: Learners, task: int) -> NDArray[np.float64]:
        test = self._pool.test(task)
        if task not in self._tests:
            self._tests[task] = self._examples(test.inputs)
        inputs, count = self._tests[task], len(test.labels)
        members = [self._layers(row) for row in learners.params]
        correct = np.zeros(len(members), dtype=np.int64)
        for begin in range(0, count, TEST_ROWS):
            rows = np.arange(begin, min(begin + TEST_ROWS, count))
            inputs.take(rows)
            batch = self._batch(len(rows), len(rows))
            for row, member in enumerate(members):
                logits = self._logits(member, batch, inputs)
                correct[row] += int((logits.argmax(dim=1).numpy() == test.labels[rows]).sum())
        return correct / count

    def _examples(self, examples: NDArray[np.uint8]) -> Inputs:
        if self._path.sparse:
            return SparseInputs(examples, self._scale)
        return DenseInputs(examples, self._scale, self._multiply)

    def _batch(self, rows: int, current: int) -> "_Batch":
        """Room is made once for each shape of batch, and used again."""
        if (rows, current) not in self._batches:
            self._batches[rows, current] = _Batch(self._net, rows, current)
        return self._batches[rows, current]

    def _logits(self, member: list[Layer], batch: "_Batch", inputs: Inputs) -> Tensor:
        """Fills batch.hidden; returns the logits [B, classes]."""
        hidden, last = batch.hidden, len(member) - 1
        inputs.forward(member[0], hidden[0])
        for number in range(1, last + 1):
            self._multiply.affine(hidden[number - 1], member[number].weight, member[number].bias, hidden[number])
            if number < last:
                hidden[number].relu_()
        return hidden[last][:, : self._stream.classes]

    def _forward(self, member: list[Layer], batch: "_Batch", inputs: Inputs, labels: NDArray[np.int64]) -> float:
        """Fills batch.hidden and the last of batch.delta; returns the sum of both losses."""
        self._logits(member, batch, inputs)
        loss: float = kernels.output_delta(
            batch.hidden_array[-1], labels, self._stream.classes, batch.current, batch.delta_array[-1]
        )
        return loss

    def _backward(self, member: list[Layer], batch: "_Batch", inputs: Inputs) -> Products:
        """Fills batch.delta and g_ref; returns the three inner products, zeros without a reference batch."""
        found = []
        for number in reversed(range(len(member))):
            delta, g_ref = batch.delta_array[number], self._g_ref[number]
            if number:
                if batch.reference:
                    self._multiply.product(batch.hidden_ref[number - 1].T, batch.delta_ref[number], g_ref.weight)
                    now = batch.hidden_now[number - 1]
                    found.append(kernels.layer_products(now, delta, batch.current, *g_ref.arrays))
                self._multiply.product(batch.delta[number], member[number].weight.T, batch.delta[number - 1])
                kernels.mask(batch.delta_array[number - 1], batch.hidden_array[number - 1])
            elif batch.reference:
                found.append(inputs.products(delta, g_ref))
        return Products(*map(sum, zip(*found, strict=True))) if found else Products(0.0, 0.0, 0.0)

    def _update(self, member: list[Layer], batch: "_Batch", inputs: Inputs, a: float, b: float) -> None:
        """params −= learning rate · (a·g + b·g_ref)."""
        of_g, of_ref = np.float32(-self._learning_rate * a), np.float32(-self._learning_rate * b)
        inputs.update(member[0], self._g_ref[0], of_ref, batch.delta_now[0], of_g)
        for number in range(1, len(member)):
            arrays = (*member[number].arrays, *self._g_ref[number].arrays)
            kernels.update_layer(*arrays, of_ref, batch.hidden_now[number - 1], batch.delta_now[number], of_g)

    def _layers(self, row: Tensor) -> list[Layer]:
        return [Layer.of(weight[0], bias[0]) for weight, bias in self._net.layers(row[None])]


class _Batch:
    """Room for one batch's activations and their gradients [B, width], of all layers, with views of its two parts."""

    def __init__(self, net: MLP, rows: int, current: int) -> None:
        self.current, self.reference = current, rows - current
        self.hidden = [torch.zeros(rows, width) for width in net.widths[1:]]
        self.delta = [torch.zeros(rows, width) for width in net.widths[1:]]
        self.hidden_array, self.delta_array = ([part.numpy() for part in all_] for all_ in (self.hidden, self.delta))
        self.hidden_now, self.delta_now = (
            [part[:current] for part in all_] for all_ in (self.hidden_array, self.delta_array)
        )
        self.hidden_ref, self.delta_ref = ([part[current:] for part in all_] for all_ in (self.hidden, self.delta))
