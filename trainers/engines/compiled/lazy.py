"""Passes of a member that compute only what its step needs.

No product has a zero factor, and no g_ref is made where a sign is enough. The sign of g·g_ref alone decides whether
A-GEM and ε-SOFT-GEM project, and most steps are not projected. It follows from inner products of examples, Σ (xᵢ·xⱼ +
1) (δᵢ·δⱼ) over the layers, i in g's batch and j in g_ref's; those of the images are shared by all members of a seed.
Then g_ref is made in projected steps only. Of two small batches it never is: the inner products of their examples give
every product of the gradients, and the update is one with their rows.
"""

from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainers.engines.compiled import nonzero
from trainers.engines.compiled.inputs import Inputs, Layer, Sums
from trainers.engines.compiled.kernels import Floats
from trainers.engines.compiled.lists import ListedInputs, Output
from trainers.engines.compiled.passes import Batch, Passes
from trainers.hyperparameters import Hyperparameters
from trainers.methods import Mixing
from trainers.methods.rules import SIGN, Mix
from trainers.networks import MLP
from trainers.networks.layout import pad
from trainers.numeric_path import NumericPath
from trainers.schedule import Indices

FEW = 64  # examples of both batches, at most, of which all inner products are made rather than g_ref
# Of the mean squared residual: a shorter g_ref is made. From products of examples ‖g_ref‖² is off by 2⁻²⁴ of what
# cancels in it, from the gradient itself by the square of that.
CANCELLATION = 2.0**-8


class _LazyPasses(Passes):
    """Like `Passes`, but `mix` computes no more than the rule needs."""

    test_rows = 100
    """As few as let the activations stay in the second-level cache; each row is computed by itself."""

    def __init__(self, net: MLP, largest: float, path: NumericPath) -> None:
        super().__init__(net, largest, path)
        between = list(pairwise(net.widths))
        self._tests, self._makes = sum(k + n for k, n in between), sum(k * n for k, n in between)

    def examples(self, rows: NDArray[np.uint8]) -> Inputs:
        """Returns examples as lists of their pixels."""
        # Of an `Inputs` it has what the engine asks for; what the layers ask for is theirs alone.
        return cast(Inputs, ListedInputs(rows, self._scale))

    def logits(self, member: list[Layer], batch: Batch, inputs: Inputs) -> Tensor:
        """Fills batch.hidden and the lists of active units; returns the logits [B, classes]."""
        rows, lists = cast(ListedInputs, inputs).batch
        nonzero.forward(rows, lists, _arrays(member), batch.hidden_array, batch.outputs)
        return batch.hidden[-1][:, : self._net.sizes[-1]]

    def forward(self, member: list[Layer], batch: Batch, inputs: Inputs, labels: Indices) -> float:
        """Runs the forward pass as `Passes.forward`, and the backward pass, too."""
        rows, lists = cast(ListedInputs, inputs).batch
        loss = labels, self._net.sizes[-1], batch.current, self._net.subtracted, self.competing
        arrays = _arrays(member), batch.hidden_array, batch.delta_array, batch.outputs
        batch.losses = nonzero.both_ways(rows, lists, *arrays, loss)
        return sum(batch.losses)

    def mix(
        self, member: list[Layer], batch: Batch, inputs: Inputs, rule: Mixing | None, values: Hyperparameters
    ) -> Mix:
        """Returns the step's coefficients as `Passes.mix`.

        Computes g_ref where the rule needs more than a sign and the batches are not small.
        """
        if rule is None:
            return Mix(1.0, 0.0, False)
        images, current, rows = cast(ListedInputs, inputs), batch.current, batch.rows

        def inner(begin: int, end: int, count: int) -> Sums:
            sizes = self._net.widths[1:], (begin, end), (count, current)
            return cast(Sums, nonzero.inner(images.gram(count), batch.outputs, *sizes))

        if rows <= FEW:
            products = self._products(batch, *inner(0, rows, rows))
            if products.rr > CANCELLATION * products.residual:
                return rule.mix(products, values)
        elif rule.needs(values) == SIGN and self._test_pays(current):
            gr = inner(current, rows, current)[1]
            if gr >= 0:
                return Mix(1.0, 0.0, False)
            rr = self._reference(batch, images, self.g_ref)
            gg = inner(0, current, current)[0]
            return rule.mix(self._products(batch, gg, gr, rr), values)
        rr = self._reference(batch, images, self.g_ref)
        now = images.by_pixel(0, current)
        gr = nonzero.with_reference(now, batch.delta_array, batch.outputs, current, _arrays(self.g_ref))
        gg = inner(0, current, current)[0]
        return rule.mix(self._products(batch, gg, gr, rr), values)

    def update(self, member: list[Layer], batch: Batch, inputs: Inputs, of_g: float, of_ref: float) -> None:
        """Updates the parameters as `Passes.update`, after `mix`: of small batches from their rows."""
        few = of_ref != 0 and batch.rows <= FEW
        factors = np.full(batch.rows if few else batch.current, of_g, dtype=np.float32)
        factors[batch.current :] = of_ref
        made = np.float32(0 if few else of_ref), _arrays(self.g_ref)
        pixels = cast(ListedInputs, inputs).by_pixel(0, len(factors))
        nonzero.update(pixels, batch.delta_array, batch.outputs, factors, _arrays(member), made)

    def _whole_from(self, member: list[Layer], batch: Batch, inputs: Inputs, into: list[Layer]) -> None:
        nonzero.backward(_arrays(member), batch.delta_array, batch.outputs)
        self._whole(member, batch, inputs, into)

    def _whole(self, member: list[Layer], batch: Batch, inputs: Inputs, into: list[Layer]) -> None:
        self._reference(batch, cast(ListedInputs, inputs), into)

    def _test_pays(self, current: int) -> bool:
        """Returns whether products of examples take less than half the work of g_ref, which every third step needs."""
        return 2 * pad(current) * self._tests <= self._makes

    def _views(self, rows: int, current: int) -> Batch:
        if not self._batches:  # the first in these buffers
            self._units = [Output.empty(self._rows, width) for width in self._net.widths[1:-1]]
        batch = super()._views(rows, current)
        last = Output.whole(batch.delta_array[-1], self._net.sizes[-1])
        batch.outputs = (*(output.first(rows) for output in self._units), last)
        return batch

    def _reference(self, batch: Batch, images: ListedInputs, into: list[Layer]) -> float:
        """Writes g_ref; returns ‖g_ref‖²."""
        current = batch.current
        pixels = images.by_pixel(current, batch.rows)
        return float(nonzero.reference(pixels, batch.delta_array, batch.outputs, current, _arrays(into)))


def make_passes(net: MLP, largest: float, path: NumericPath) -> Passes:
    """Returns the passes that the numeric path names; arguments as of `Passes`."""
    return (_LazyPasses if path.lazy else Passes)(net, largest, path)


def _arrays(layers: list[Layer]) -> tuple[tuple[Floats, Floats], ...]:
    """Returns the layers' arrays, as kernels take them."""
    return tuple(layer.arrays for layer in layers)
