"""The CPU engine, which trains one member at a time.

So the result of a member does not depend on the other members of its cohort. Of methods that mix two gradients, g is
never made: its ten or so rows enter the inner products and the update as they are. g_ref is made once, as its batch is
large, and is read once more for the update, which adds both to the parameters in one pass. The other rules are given
whole gradients.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import Architecture, Cohort
from trainers.engines import optimizers
from trainers.engines.base import FixedEngine, Learners, is_due, parts, steps_between
from trainers.engines.compiled import kernels
from trainers.engines.compiled.inputs import Inputs, Layer
from trainers.engines.compiled.kernels import Floats
from trainers.engines.compiled.lazy import make_passes
from trainers.engines.compiled.losses import Weighing, bounds_of, store
from trainers.engines.compiled.passes import ALL_OUTPUTS
from trainers.engines.precision import set_precision
from trainers.hyperparameters import Hyperparameters
from trainers.methods import Losses, Mixing, Penalty, Projection, Subspaces
from trainers.methods.losses import LOGITS, TAUGHT
from trainers.methods.penalty import Step
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.schedule import Indices, Segment
from trainers.streams.base import PixelStream

# Steps between two looks at the parameters where zeros are left out: 0 · ∞ would show in the loss, and no product does.
LOOK_EVERY = 64
NOTHING: Floats = np.zeros((0, 0), dtype=np.float32)  # stored logits where there are none


class CompiledEngine(FixedEngine):
    """Members of one seed. They take each step one after another, so that a batch is prepared once for all.

    Nothing that a member is computed from depends on the other members, so it is bit-identical alone and in any cohort:
    tests/contracts holds the engine to that.
    """

    def __init__(
        self, cohort: Cohort, seeds: tuple[int, ...], stream: PixelStream, architecture: Architecture, path: NumericPath
    ) -> None:
        super().__init__(cohort, seeds, stream, architecture, path)
        (self._pool,) = self._pools
        self._passes = make_passes(cast(MLP, self._net), stream.largest, path)
        self._inputs: Inputs | None = None
        self._weighing: Weighing | None = None
        self._tests: dict[tuple[int, int | None], Inputs] = {}
        self._gradients = torch.empty(0, self._net.row)

    def load_task(self, task: int) -> None:
        """Makes the task's batches ready; its examples are prepared at the first step."""
        (self._segments,) = self._schedules(task)
        self._passes.competing, self._passes.tasks = self._competing(), self.tasks
        self._weighing = self._make_weighing(self._rule) if isinstance(self._rule, Losses) else None
        self._inputs = None  # made when the first step asks for it: a shared first task has none

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner, in place; raises PrecisionError."""
        set_precision(self._path)
        members = [
            _Member(learners, row, self._passes.layers(learners.params[row]), self._shared, self.of_rate)
            for row in range(len(learners.seed))
        ]
        for number, start, steps in steps_between([len(part.rows) for part in self._segments], first, last):
            segment = self._segments[number]
            for step in steps:
                self._step(members, segment, step, start + step)
                if self._path.lazy and (is_due(start + step, LOOK_EVERY) or start + step == self.steps - 1):
                    for member in members:
                        member.check_finite(start + step)

    def accuracy(self, learners: Learners, task: int, images: int | None = None) -> NDArray[np.float64]:
        """Returns the share of the task's test set that each learner classifies correctly, [M].

        images: how many of its examples are tested, as `Pool.test` draws them; None for all.
        """
        set_precision(self._path)
        test = self._pool.test(task, images)
        if (task, images) not in self._tests:
            self._tests[task, images] = self._passes.examples(test.inputs)
        inputs, everything = self._tests[task, images], np.arange(len(test.labels))
        members, competing = [self._passes.layers(row) for row in learners.params], self._competing(task)
        hits = np.empty((len(members), len(everything)), dtype=np.bool_)
        for part in parts(len(everything), self._passes.test_rows):
            inputs.take(everything[part])
            # All rows as current ones: a test has no reference batch.
            batch = self._passes.batch(part.stop - part.start, part.stop - part.start)
            for row, member in enumerate(members):
                logits, labels = self._passes.logits(member, batch, inputs), test.labels[part]
                kernels.close_outputs(logits.numpy(), labels, competing)
                hits[row, part] = logits.argmax(dim=1).numpy() == labels
        return np.asarray(hits.mean(axis=1))

    def _step(self, members: list["_Member"], segment: Segment, at: int, step: int) -> None:
        """Takes one step of every member; at: its number within the segment, step: within the task."""
        rows = segment.rows[at]
        if isinstance(self._rule, Penalty):
            self._penalise(members, self._rule, rows, step)
        elif self._weighing:
            self._weigh(members, self._weighing, segment, at, step)
        elif isinstance(self._rule, Subspaces) and self.tasks > 1:
            self._project_layers(members, self._rule, rows, step)
        elif isinstance(self._rule, Projection) and segment.reference:
            self._project(members, self._rule, segment, rows, step)
        else:
            self._mix(members, segment, rows, step)

    def _mix(self, members: list["_Member"], segment: Segment, rows: Indices, step: int) -> None:
        """Takes a step by a rule that mixes g and g_ref.

        Also plain SGD, for all rules but a penalty without a reference batch.
        """
        passes, batch = self._passes, self._passes.batch(len(rows), segment.current)
        # Once for all learners, who share a seed and so the batch.
        inputs, labels = self._take(rows, segment.current)
        # Plain SGD, where no rule mixes the two.
        rule = self._rule if segment.reference and isinstance(self._rule, Mixing) else None
        for member in members:
            member.note(passes.forward(member.layers, batch, inputs, labels), step)
            a, b, hit = passes.mix(member.layers, batch, inputs, rule, member.values)
            member.projected[member.row] += hit
            if self._plain:
                passes.update(member.layers, batch, inputs, -member.rate * a, -member.rate * b)
                continue
            # An update of zeros is the direction itself.
            direction = self._buffer(1).zero_()
            passes.update(passes.layers(direction[0]), batch, inputs, a, b)
            member.descend(self._along(member, direction))

    def _penalise(self, members: list["_Member"], rule: Penalty, rows: Indices, step: int) -> None:
        """Takes a step by a rule that pulls parameters back to θ*, with the whole gradient."""
        inputs, labels = self._take(rows, 0)
        g = self._buffer(1)
        # Views of g: what the backward pass writes layer by layer is the whole gradient.
        into = self._passes.layers(g[0])
        for member in members:
            if rule.refresh and is_due(step, self._shared.fisher_every):
                rule.refresh(member.state, member.params, member.values)
            member.note(self._passes.gradient(member.layers, inputs, labels, into), step)
            along = None if self._plain else partial(self._along, member)
            member.descend(rule.direction(member.state, Step(member.params, g, member.values), along))

    def _project_layers(self, members: list["_Member"], rule: Subspaces, rows: Indices, step: int) -> None:
        """Takes a step by a rule that projects each layer's whole gradient."""
        inputs, labels = self._take(rows, 0)
        g = self._buffer(1)
        into, joined = self._passes.layers(g[0]), cast(MLP, self._net).layer_views(g)
        for member in members:
            member.note(self._passes.gradient(member.layers, inputs, labels, into), step)
            rule.project(member.state, joined)
            member.descend(g if self._plain else self._along(member, g))

    def _weigh(self, members: list["_Member"], weighing: Weighing, segment: Segment, at: int, step: int) -> None:
        """Takes a step by a rule that weighs losses.

        The whole gradient is made from that by the logits.
        """
        rows, bounds, g = segment.rows[at], bounds_of(segment), self._buffer(1)
        inputs, labels = self._take(rows, 0)
        into = self._passes.layers(g[0])
        for member in members:
            teacher = NOTHING
            if weighing.taught:
                layers = self._passes.layers(member.state[TAUGHT][0])
                teacher = self._passes.logits(layers, self._passes.batch(len(rows), 0), inputs).numpy().copy()

            def pull(logits: Tensor, delta: Tensor, member: _Member = member, teacher: Floats = teacher) -> None:
                outputs, stored = logits.numpy(), member.state[LOGITS][0].numpy() if weighing.stores else NOTHING
                targets = NOTHING if segment.read is None else stored[segment.read[at]], teacher
                member.note(weighing.pull(outputs, labels, bounds, member.values, targets, delta.numpy()), step)
                if segment.written is not None:
                    store(stored, segment.written[at], outputs)

            self._passes.pull_back(member.layers, inputs, len(rows), pull, into)
            member.descend(g if self._plain else self._along(member, g))

    def _make_weighing(self, rule: Losses) -> Weighing:
        """Returns the weighing of the rule's terms in the loaded task."""
        competing, subtracted = self._passes.competing, cast(MLP, self._net).subtracted
        return Weighing(rule, self.tasks, competing, self._pool.distillation_outputs, subtracted)

    def _project(self, members: list["_Member"], rule: Projection, segment: Segment, rows: Indices, step: int) -> None:
        """Takes a step by a rule with one reference gradient for each previous task, all of them whole."""
        sizes = (segment.current, *segment.parts)
        batches = np.split(rows, np.cumsum(sizes)[:-1])
        gradients = self._buffer(len(sizes))
        into = [self._passes.layers(row) for row in gradients]
        for member in members:
            loss = 0.0
            for part, layers in zip(batches, into, strict=True):
                # All of it as a reference batch, whose gradient is written out; that of a current one never is.
                inputs, labels = self._take(part, 0)
                loss += self._passes.gradient(member.layers, inputs, labels, layers)
            member.note(loss, step)
            direction, projected = rule.direction(gradients[:1], gradients[None, 1:], member.values)
            member.projected[member.row] += float(projected)
            member.descend(direction if self._plain else self._along(member, direction))

    def _along(self, member: "_Member", gradient: Tensor) -> Tensor:
        return optimizers.step_along(member.state, member.params, gradient, member.values)

    def _sensitivities(self, learners: Learners) -> Iterator[Tensor]:
        gradient = torch.zeros_like(learners.params)
        pairs = [tuple(map(self._passes.layers, rows)) for rows in zip(learners.params, gradient, strict=True)]
        for number, _, steps in steps_between([len(part.rows) for part in self._segments], 0, self.first_pass):
            segment = self._segments[number]
            for step in steps:
                inputs, labels = self._take(segment.rows[step, : segment.current], 0)
                for member, into in pairs:
                    self._passes.sensitivity(member, inputs, labels, into)
                yield gradient

    def _competing(self, tested: int = 0) -> NDArray[np.bool_]:
        """Returns the competing outputs, as kernels take them; tested: as for `Pool.competing`."""
        competing = self._pool.competing(tested)
        return ALL_OUTPUTS if competing is None else competing

    def _buffer(self, gradients: int) -> Tensor:
        """Returns a buffer for whole gradients [gradients, D], made once for all members and steps."""
        if len(self._gradients) < gradients:
            self._gradients = torch.empty(gradients, self._net.row)
        return self._gradients[:gradients]

    def _take(self, rows: Indices, current: int) -> tuple[Inputs, Indices]:
        """Makes these rows of the pool the batch at hand, the first `current` of them those of g."""
        if self._inputs is None:
            self._inputs = self._passes.examples(self._pool.inputs)
        self._inputs.take(rows)
        self._inputs.split(current)
        return self._inputs, self._pool.labels[rows]


class _Member:
    """A row of the learners, as plain numbers and views.

    Made once for many steps, so that none of them looks numbers up in tensors. params [1, D], as rules take rows of
    matrices; state: the same row of a penalty's arrays.
    """

    def __init__(
        self, learners: Learners, row: int, layers: list[Layer], shared: Hyperparameters, of_rate: float
    ) -> None:
        self.row, self.layers, self.params = row, layers, learners.params[row : row + 1]
        self.state = {name: array[row : row + 1] for name, array in learners.state.items()}
        own = {name: float(values[row]) for name, values in learners.own.items()}
        self.values = shared.but(**own | {"lr": own["lr"] * of_rate})
        self.rate = self.values.lr
        self.projected, self._first_bad = learners.projected.numpy(), learners.first_bad.numpy()

    def descend(self, direction: Tensor) -> None:
        """Subtracts rate · direction [1, D] from the parameters, in place."""
        self.params.add_(direction, alpha=-self.rate)

    def note(self, loss: float, step: int) -> None:
        """Remembers the first step whose loss was not finite."""
        if self._first_bad[self.row] < 0 and not math.isfinite(loss):
            self._first_bad[self.row] = step

    def check_finite(self, step: int) -> None:
        """Remembers a step behind which a parameter is not finite."""
        self.note(float(self.params.sum()), step)
