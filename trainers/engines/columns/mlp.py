"""The engine of progressive perceptrons, for CPUs and GPUs.

Each step trains the newest column of one member alone. Frozen columns do not change while a task is trained, so they
run over the images of many steps at once, in large products. What is left of a step is the newest column's: a forward
pass, a hand-derived backward pass and updates that go into the parameters directly, without a gradient in between.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import Architecture, Cohort
from trainers.engines import optimizers
from trainers.engines.base import Learners, parts, steps_between
from trainers.engines.columns.base import GrowingEngine, note_bad
from trainers.engines.compiled.products import PRODUCTS
from trainers.engines.precision import set_precision
from trainers.networks.losses import one_hot, output_delta
from trainers.networks.progressive.mlp import Affine, Column, MLPColumns
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.streams.base import PixelStream

TEST_ROWS = 500  # test rows of one forward pass: their activations stay near the processor
BLOCK = 64  # steps; what the training loop asks for at once


Optimiser: TypeAlias = tuple[Column, Callable[[], None]]
"""(zeros, to which a step's gradient is added; a function that takes the step and makes them zeros again)."""

Block: TypeAlias = tuple[Tensor, Tensor, list[Tensor]]
"""Images [S, B, inputs] of steps that frozen columns pass at once, labels [S, B], and their `frozen_units`."""


class ColumnsEngine(GrowingEngine):
    """For columns that are multilayer perceptrons, on a CPU or a GPU.

    Seeds can be trained together. They share the schedule, as the method has no memory, and each has its own images.
    """

    _stream: PixelStream
    _net: MLPColumns

    def __init__(
        self, cohort: Cohort, seeds: tuple[int, ...], stream: PixelStream, architecture: Architecture, path: NumericPath
    ) -> None:
        super().__init__(cohort, seeds, stream, path)
        self._net = MLPColumns(
            (stream.inputs, *architecture.hidden, stream.outputs), len(stream.tasks), path.subtracted
        )
        self._affine = PRODUCTS["onednn" if path.products == "onednn" else "mkl"].affine  # torch's own on a GPU
        self._block, self._hidden = (-1, -1), dict[int, list[Tensor]]()

    def load_task(self, task: int) -> None:
        """Makes the task ready, and forgets what frozen columns made of the last block."""
        self._block = (-1, -1)
        super().load_task(task)
        self._closed = [self._closed_outputs(pool, task) for pool in self._pools]

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner's newest column, in place; raises PrecisionError."""
        set_precision(self._path)
        self._begin(learners, first)
        rates: list[float] = (learners.own["lr"] * self.of_rate).tolist()
        seeds: list[int] = learners.seed.tolist()
        members = [self._net.columns(row)[: self._task + 1] for row in learners.params]
        for number, start, steps in steps_between([len(segment.rows) for segment in self._segments], first, last):
            rows = self._segments[number].rows
            # Blocks begin at the same steps however few are asked for, as products of another size round differently.
            for begin in range(steps.start // BLOCK * BLOCK, steps.stop, BLOCK):
                steps_of_block = range(max(steps.start - begin, 0), min(steps.stop - begin, BLOCK))
                of_seeds = [self._batches(pool, rows[begin : begin + BLOCK]) for pool in self._pools]
                for row, columns in enumerate(members):
                    x, labels = of_seeds[seeds[row]]
                    block = x, labels, self._frozen_units(learners.params[row], columns, x, (number, begin))
                    closed = self._closed[seeds[row]]
                    optimise = None if self._plain else self._optimiser(learners, row, rates[row])
                    loss = train_column(
                        self._net, columns, block, steps_of_block, rates[row], self._affine, closed, optimise
                    )
                    note_bad(learners.first_bad[row], loss, start + begin + steps_of_block.start)

    def _optimiser(self, learners: Learners, row: int, rate: float) -> Optimiser:
        """Returns the newest column's gradient, and the step that an optimizer makes of it.

        Of the gradient of one summand of what is stored as a sum: all take the same step. Weight decay is linear with
        SGD, which alone has it here: the decay of a sum is the sum of the decays.
        """
        place = self._net.slice(self._task)
        state = {
            name: array[row : row + 1] if name == optimizers.COUNT else array[row : row + 1, place]
            for name, array in learners.state.items()
        }
        params = learners.params[row : row + 1, place]
        gradient, summands = torch.zeros_like(learners.params[row]), torch.ones_like(learners.params[row])
        (first, *rest) = self._net.columns(summands)[self._task]
        for stored in (first.weight, first.bias, *(layer.bias for layer in rest)):
            stored.fill_(self._task + 1)
        number, into = summands[place], gradient[place]

        def take() -> None:
            step = optimizers.step_along(state, params / number, into[None], self._shared)
            params.sub_(step * number, alpha=rate)
            into.zero_()

        return self._net.columns(gradient)[self._task], take

    def _frozen_units(self, row: Tensor, columns: Sequence[Column], x: Tensor, block: tuple[int, int]) -> list[Tensor]:
        """Returns the frozen units of a block, computed once for each member.

        Also where only a few of the block's steps are asked for at a time.
        """
        if block != self._block:
            self._block, self._hidden = block, {}
        if row.data_ptr() not in self._hidden:
            self._hidden[row.data_ptr()] = frozen_units(self._net, columns, x, self._affine)
        return self._hidden[row.data_ptr()]

    def _test_state(self, learners: Learners, row: int, task: int) -> Tensor:
        return learners.params[row, : self._net.slice(task).stop]

    def _test(self, learners: Learners, row: int, task: int, images: int | None) -> float:
        columns = self._net.columns(learners.params[row])[: task + 1]
        pool = self._pools[int(learners.seed[row])]
        test, closed = pool.test(task, images), self._closed_outputs(pool, task)
        answers = [
            close(self._net.logits(columns, self._scale(test.inputs[part]), self._affine), closed).argmax(dim=1)
            for part in parts(len(test.labels), TEST_ROWS)
        ]
        return float(np.mean(torch.cat(answers).cpu().numpy() == test.labels))

    def _closed_outputs(self, pool: Pool, task: int) -> Tensor | None:
        """Returns [outputs], True where an output does not compete on a task's examples; None where all do."""
        competing = pool.competing(task)
        # The examples of a task have the same competing outputs, whatever their label.
        return None if competing is None else torch.from_numpy(~competing[pool.test(task).labels[0]]).to(self._device)

    def _batches(self, pool: Pool, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Returns images [S, B, inputs] and labels [S, B] for rows [S, B] of a pool."""
        return self._scale(pool.inputs[rows]), torch.from_numpy(pool.labels[rows]).to(self._device)

    def _scale(self, stored: NDArray[np.uint8]) -> Tensor:
        return torch.from_numpy(stored).to(self._device).to(torch.float32).div_(self._stream.largest)


def frozen_units(net: MLPColumns, columns: Sequence[Column], x: Tensor, affine: Affine) -> list[Tensor]:
    """Returns the hidden units of all columns but the last, with space for those of the last.

    x [S, B, inputs]: the inputs of a block. The columns run over the whole block at once, also where few of its steps
    are wanted: products of another size may round differently.
    """
    rows = x.flatten(0, 1)
    hidden = net.buffers(rows, len(columns))
    net.fill(columns[:-1], rows, hidden, affine)
    return hidden


def train_column(  # noqa: PLR0913
    net: MLPColumns,
    columns: Sequence[Column],
    block: Block,
    steps: range,
    rate: float,
    affine: Affine,
    closed: Tensor | None = None,
    optimise: Optimiser | None = None,
) -> Tensor:
    """Takes steps of the last of these columns, in place; returns the loss [steps] of each.

    The other columns are frozen.

    `steps` of the block's batches are taken. rate: the learning rate of one summand of what is stored as a sum. closed
    [outputs]: True where an output does not compete. optimise: None for plain SGD. The losses are computed for all
    steps at once in the end, from the logits that are kept: nothing waits for them.
    """
    (x, labels, hidden), number, classes = block, len(columns) - 1, net.sizes[-1]
    units = [part.view(*x.shape[:2], -1) for part in hidden]
    logits, delta = x.new_empty(*x.shape[:2], net.widths[-1]), x.new_zeros(x.shape[1], net.widths[-1])
    target = one_hot(labels, delta)
    # Unbound once: to make views in every step would be a good part of a small step.
    inputs = list(zip(*(part.unbind() for part in (x, *units)), strict=True))
    outputs = list(zip(*(part.unbind() for part in (*net.of_column(units, number), logits)), strict=True))
    newest = _Newest(net, columns[-1], number, rate, x.new_ones(x.shape[1]), optimise)
    for step in steps:
        newest.forward(inputs[step], outputs[step], affine)
        torch.softmax(close(outputs[step][-1][:, :classes], closed), 1, out=delta[:, :classes])
        newest.backward(inputs[step], outputs[step], output_delta(delta, target[step], net.subtracted))
    taken = slice(steps.start, steps.stop)
    log_p = torch.log_softmax(logits[taken, :, :classes], 2)
    return -log_p.gather(2, labels[taken, :, None])[..., 0].mean(1)


def close(logits: Tensor, closed: Tensor | None) -> Tensor:
    """Sets logits [B, outputs] to −∞, in place, where outputs [outputs] do not compete; returns them."""
    return logits if closed is None else logits.masked_fill_(closed, -torch.inf)


class _Newest:
    """The column in training. The mean over the batch is in its rates; ones [B] sum over the batch."""

    def __init__(
        self, net: MLPColumns, column: Column, number: int, rate: float, ones: Tensor, optimise: Optimiser | None
    ) -> None:
        self._column, self._ones = column, ones
        self._into: Column = optimise[0] if optimise else column
        self._take = optimise[1] if optimise else None
        # A stored bias is the sum of number + 1, each of which takes the step: `networks/progressive/mlp.py`.
        self._bias_rate = -rate * (number + 1) / len(ones)
        # So is the first layer's weight, of matrices that all see the image.
        self._rates = [self._bias_rate, *[-rate / len(ones)] * (len(column) - 1)]
        if optimise:
            self._bias_rate = 1 / len(ones)
            self._rates = [self._bias_rate] * len(column)
        self._above = net.of_column([layer.weight.T for layer in column[1:]], number)  # what the column itself feeds

    def forward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], affine: Affine) -> None:
        """Writes the outputs of every layer; those of a hidden layer are a part of the next layer's inputs."""
        for index, (layer, below, out) in enumerate(zip(self._column, inputs, outputs, strict=True)):
            affine(below, layer.weight, layer.bias, out)
            if index < len(self._column) - 1:
                out.relu_()

    def backward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], delta: Tensor) -> None:
        """Updates the column; delta [B, out] is the gradient of the losses' sum at the logits."""
        for index in reversed(range(len(self._column))):
            weight, bias = self._into[index]
            if index:
                below = torch.mm(delta, self._above[index - 1])  # with the weights from before their update
                torch.ops.aten.threshold_backward(below, outputs[index - 1], 0, grad_input=below)
            weight.addmm_(inputs[index].T, delta, alpha=self._rates[index])
            bias.addmv_(delta.T, self._ones, alpha=self._bias_rate)
            if index:
                delta = below
        if self._take:
            self._take()
