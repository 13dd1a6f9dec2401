"""Forward and backward pass of a member on a CPU.

Matrix products are those of MKL or oneDNN, the rest is compiled by Numba.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.engines.compiled import kernels
from trainers.engines.compiled.inputs import DenseInputs, Inputs, Layer, SparseInputs, Sums
from trainers.engines.compiled.lists import Output
from trainers.engines.compiled.products import PRODUCTS
from trainers.hyperparameters import Hyperparameters
from trainers.methods import Mixing, Products
from trainers.methods.rules import Mix
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.schedule import Indices

ALL_OUTPUTS = np.zeros((0, 0), dtype=np.bool_)
"""The competing outputs where all compete, as kernels take them."""


class Passes:
    """The arithmetic of an MLP, for the layers of one member at a time. `backward` writes `g_ref`.

    largest: what bytes are divided by. A batch is at hand in the `Inputs`, which all members share; its activations are
    in a `Batch`, which the next member overwrites.
    """

    test_rows = 500
    """Test rows of one forward pass. Rounding depends on it, so no other number will do."""

    def __init__(self, net: MLP, largest: float, path: NumericPath) -> None:
        self._net, self._sparse = net, path.sparse
        self._multiply = PRODUCTS[path.products]
        # What a network sees of each byte: a table spares a division for every pixel of every batch.
        self._scale = (torch.arange(256, dtype=torch.float32) / largest).numpy()
        self._batches: dict[tuple[int, int], Batch] = {}
        self._allocate(0)
        self.competing = ALL_OUTPUTS
        """[outputs, outputs], as `streams.competing` has it while the loaded task is the newest one."""
        self.tasks = 1
        """Tasks so far, the loaded one included."""
        self.g_ref = self.layers(torch.zeros(net.row))

    def layers(self, row: Tensor) -> list[Layer]:
        """Returns views of one row of parameters or of a gradient."""
        return [Layer.of(weight[0], bias[0]) for weight, bias in self._net.layers(row[None])]

    def examples(self, rows: NDArray[np.uint8]) -> Inputs:
        """Returns examples in the form that the numeric path names."""
        return SparseInputs(rows, self._scale) if self._sparse else DenseInputs(rows, self._scale, self._multiply)

    def batch(self, rows: int, current: int) -> "Batch":
        """Returns a batch of so many rows, the first `current` of them g's and the rest g_ref's.

        The same buffers, made for the largest batch so far, are used for all, so that no step allocates; batches are
        views of them.
        """
        if rows > self._rows:
            self._allocate(rows)
        if (rows, current) not in self._batches:
            self._batches[rows, current] = self._views(rows, current)
        return self._batches[rows, current]

    def _allocate(self, rows: int) -> None:
        """Makes buffers for activations and their gradients [rows, width], one a layer; padding is and stays zero."""
        self._rows = rows
        self._hidden, self._delta = ([torch.zeros(rows, width) for width in self._net.widths[1:]] for _ in range(2))
        self._batches.clear()  # views of the buffers that have just been replaced

    def _views(self, rows: int, current: int) -> "Batch":
        hidden, delta = ([part[:rows] for part in all_] for all_ in (self._hidden, self._delta))
        return Batch(hidden, delta, current)

    def logits(self, member: list[Layer], batch: "Batch", inputs: Inputs) -> Tensor:
        """Fills batch.hidden; returns the logits [B, classes]."""
        hidden, last = batch.hidden, len(member) - 1
        inputs.forward(member[0], hidden[0])
        for number in range(1, last + 1):
            self._multiply.affine(hidden[number - 1], member[number].weight, member[number].bias, hidden[number])
            if number < last:
                hidden[number].relu_()
        return hidden[last][:, : self._net.sizes[-1]]

    def forward(self, member: list[Layer], batch: "Batch", inputs: Inputs, labels: Indices) -> float:
        """Fills batch.hidden, the last of batch.delta and batch.losses, of which it returns the sum."""
        self.logits(member, batch, inputs)
        logits, delta = batch.hidden_array[-1], batch.delta_array[-1]
        kernels.close_outputs(logits, labels, self.competing)
        what = labels, self._net.sizes[-1], batch.current, delta, self._net.subtracted
        batch.losses = kernels.output_delta(logits, *what)
        return sum(batch.losses)

    def backward(self, member: list[Layer], batch: "Batch", inputs: Inputs, g_ref: list[Layer]) -> Products:
        """Fills batch.delta and g_ref; returns the inner products, zeros without a reference batch.

        From the last layer down, as a layer's delta is made from the one above it.
        """
        sums: list[Sums] = []
        for number in reversed(range(len(member))):
            delta, reference = batch.delta_array[number], g_ref[number]
            if number:
                if batch.reference:
                    self._multiply.product(batch.hidden_ref[number - 1].T, batch.delta_ref[number], reference.weight)
                    now = batch.hidden_now[number - 1]
                    sums.append(kernels.layer_products(now, delta, batch.current, *reference.arrays))
                self._multiply.product(batch.delta[number], member[number].weight.T, batch.delta[number - 1])
                kernels.mask(batch.delta_array[number - 1], batch.hidden_array[number - 1])
            elif batch.reference:
                sums.append(inputs.products(delta, reference))
        # Each layer has its own sums, added in the same order in every step.
        gg, gr, rr = map(sum, zip(*sums, strict=True)) if sums else (0.0, 0.0, 0.0)
        return self._products(batch, gg, gr, rr)

    def mix(
        self, member: list[Layer], batch: "Batch", inputs: Inputs, rule: Mixing | None, values: Hyperparameters
    ) -> Mix:
        """Returns the step's coefficients of g and g_ref after `forward`, for `update`; rule None: plain SGD."""
        products = self.backward(member, batch, inputs, self.g_ref)
        return rule.mix(products, values) if rule else Mix(1.0, 0.0, False)

    def update(self, member: list[Layer], batch: "Batch", inputs: Inputs, of_g: float, of_ref: float) -> None:
        """Adds of_g·g + of_ref·g_ref to the parameters, in place, after `forward` and `mix` of the same batch."""
        a, b = np.float32(of_g), np.float32(of_ref)
        inputs.update(member[0], self.g_ref[0], b, batch.delta_now[0], a)
        for number in range(1, len(member)):
            layer, reference = member[number].arrays, self.g_ref[number].arrays
            kernels.update_layer(layer, reference, b, batch.hidden_now[number - 1], batch.delta_now[number], a)

    def gradient(self, member: list[Layer], inputs: Inputs, labels: Indices, into: list[Layer]) -> float:
        """Writes the whole gradient of the mean loss over the batch at hand; returns that loss.

        The batch is taken as a reference batch, whose gradient is made anyway; `inputs.split(0)` must have said so.
        """
        batch = self.batch(len(labels), 0)
        loss = self.forward(member, batch, inputs, labels)
        self._whole(member, batch, inputs, into)
        return loss

    def pull_back(
        self, member: list[Layer], inputs: Inputs, rows: int, pull: Callable[[Tensor, Tensor], None], into: list[Layer]
    ) -> None:
        """Writes the gradient of a loss of the logits over the batch at hand, of so many rows, split as for `gradient`.

        pull(logits, delta) writes its gradient by the logits [B, classes] into delta [B, padded classes].
        """
        batch = self.batch(rows, 0)
        pull(self.logits(member, batch, inputs), batch.delta[-1])
        self._whole_from(member, batch, inputs, into)

    def sensitivity(self, member: list[Layer], inputs: Inputs, labels: Indices, into: list[Layer]) -> None:
        """Writes the gradient of Σ ‖logits‖² of competing outputs over the batch at hand, split as for `gradient`."""

        def double(logits: Tensor, delta: Tensor) -> None:
            delta = delta[:, : logits.shape[1]]
            torch.mul(logits, 2, out=delta)
            if len(self.competing):
                delta.mul_(torch.from_numpy(self.competing[labels]))

        self.pull_back(member, inputs, len(labels), double, into)

    def _whole_from(self, member: list[Layer], batch: "Batch", inputs: Inputs, into: list[Layer]) -> None:
        """Does as `_whole` where the last of batch.delta was not written by `forward`."""
        self._whole(member, batch, inputs, into)

    def _products(self, batch: "Batch", gg: float, gr: float, rr: float) -> Products:
        """Returns the products, with the batch's other numbers for a rule, after `forward`."""
        residual = float(kernels.residual(batch.delta_array[-1], batch.current))
        return Products(gg, gr, rr, batch.current / batch.rows, residual, self.tasks, *batch.losses)

    def _whole(self, member: list[Layer], batch: "Batch", inputs: Inputs, into: list[Layer]) -> None:
        """Writes the gradient from the last of batch.delta, all of whose rows are a reference batch's."""
        self.backward(member, batch, inputs, into)


class Batch:
    """Activations and their gradients of a batch, with views of its two parts: now [current, width], ref [rest, width].

    Lists have one tensor or array a layer. Tensors are for matrix products, arrays for kernels.
    """

    outputs: tuple[Output, ...] = ()
    """Active units of each layer as lists, on the lazy path."""
    losses: tuple[float, float] = (0.0, 0.0)
    """Mean losses of the rows of now and of ref, once they have passed."""

    def __init__(self, hidden: list[Tensor], delta: list[Tensor], current: int) -> None:
        self.hidden, self.delta = hidden, delta
        self.rows, self.current = len(delta[0]), current
        self.reference = self.rows - current
        # As tuples, which kernels take.
        self.hidden_array, self.delta_array = (
            tuple(part.numpy() for part in all_) for all_ in (self.hidden, self.delta)
        )
        self.hidden_now, self.delta_now = (
            [part[:current] for part in all_] for all_ in (self.hidden_array, self.delta_array)
        )
        self.hidden_ref, self.delta_ref = ([part[current:] for part in all_] for all_ in (self.hidden, self.delta))
