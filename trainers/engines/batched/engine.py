"""The engine of tensors: all members in one batch of matrices.

For GPUs, where a step is replayed from a CUDA graph, and for networks of images. Without a GPU the same code runs step
by step on the CPU: its twin in the tests, and the way without Numba. Residual networks and those of users always run
here; on a CPU their members can take each step one after another, in products of their own.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import Architecture, Cohort
from trainers.engines import optimizers
from trainers.engines.base import FixedEngine, Learners, is_due, parts, steps_between
from trainers.engines.batched.graphs import Graphs
from trainers.engines.batched.losses import Weighed, pull
from trainers.engines.feed import make_feed
from trainers.engines.precision import set_precision
from trainers.methods import Losses, Mixing, Penalty, Products, Projection, Subspaces
from trainers.methods.inner import inner
from trainers.methods.losses import LOGITS, TAUGHT, statistics_of
from trainers.methods.penalty import State, Step, column
from trainers.networks import MLP, OwnNetwork
from trainers.networks.base import Batch
from trainers.networks.layout import consecutive
from trainers.networks.losses import mask
from trainers.notes import notify
from trainers.numeric_path import NumericPath
from trainers.pool import smallest_batch
from trainers.schedule import Segment
from trainers.streams.base import TaskStream
from trainers.streams.scores import accuracies


class BatchedEngine(FixedEngine):
    """Schedules, examples and parameters live on the device; a step reads its number there too.

    Several seeds are trained together where the stream's inputs are pixels; of images there is one seed, whose members
    have the same batch. Which learner is which does not matter to a step: all of them are rows of the same matrices.
    """

    def __init__(
        self, cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, architecture: Architecture, path: NumericPath
    ) -> None:
        super().__init__(cohort, seeds, stream, architecture, path)
        self._one_by_one = path.one_by_one or not self._net.together
        # Batch normalisation mixes a batch's examples: only there two passes are not one.
        self._together = self._net.normalises and isinstance(self._rule, Mixing) and self._rule.together
        self._check_batches(cohort, architecture.network)
        if isinstance(self._net, OwnNetwork) and self._one_by_one and not path.one_by_one:
            notify(f"network {architecture.network}: {self._net.way(path.one_by_one)}")
        self._balanced = bool(getattr(stream, "balanced", False))
        self._feed = make_feed(stream, self._pools, self._device)
        self._groups: tuple[Tensor, Tensor] | None = None
        self._step = torch.zeros(1, dtype=torch.int64, device=self._device)
        # GEM solves its programs on the CPU, which no graph can hold.
        self.recordable = self._net.recordable and not isinstance(self._rule, Projection)
        self.graphs = Graphs() if self._device.type == "cuda" and self.recordable else None

    def state(self, params: Tensor) -> State:
        """Returns a rule's arrays and the network's statistics [M, …], as of untrained networks."""
        state, statistics = super().state(params), self._net.statistics(params)
        teachers = {f"{TAUGHT}.{name}": value.clone() for name, value in statistics.items()} if TAUGHT in state else {}
        return state | statistics | teachers

    def load_task(self, task: int) -> None:
        """Puts the task's examples and schedules of all seeds on the device, and forgets the last task's graphs."""
        # A graph holds the addresses of the arrays that it was recorded with, the last task's rows among them.
        self.close()
        self._segments = [_Segment(of_seeds, self._device) for of_seeds in zip(*self._schedules(task), strict=True)]
        self._feed.load()
        self._groups = self._output_groups() if isinstance(self._rule, Losses) and self._rule.taught and task else None

    def _output_groups(self) -> tuple[Tensor, Tensor]:
        """Returns `Pool.distillation_outputs` of all seeds, [S, groups, outputs] each."""
        theirs, mine = zip(*(pool.distillation_outputs for pool in self._pools), strict=True)
        teacher, network = (torch.from_numpy(np.stack(masks)).to(self._device) for masks in (theirs, mine))
        return teacher, network

    def close(self) -> None:
        """Gives up its graphs, before another engine records some."""
        if self.graphs is not None:
            self.graphs.clear()

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner, in place; raises PrecisionError."""
        set_precision(self._path)
        for begin, end in self._between_refreshes(learners, first, last):
            for number, start, steps in steps_between([segment.steps for segment in self._segments], begin, end):
                self._step.fill_(steps.start)
                self._advance(learners, number, len(steps), start)

    def _between_refreshes(self, learners: Learners, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yields the steps first…last−1 in pieces, perhaps empty, and refreshes a penalty in between.

        No graph holds the refresh.
        """
        refresh, begin = self._rule.refresh if isinstance(self._rule, Penalty) else None, first
        for step in range(first, last):
            if refresh and is_due(step, self._shared.fisher_every):
                yield begin, step
                refresh(learners.state, learners.params, self._values(learners))
                begin = step
        yield begin, last

    def _sensitivities(self, learners: Learners) -> Iterator[Tensor]:
        gradient = torch.empty_like(learners.params)
        for number, _, steps in steps_between([segment.steps for segment in self._segments], 0, self.first_pass):
            segment = self._segments[number]
            for step in steps:
                rows = segment.rows[:, step, : segment.current]
                for turn in self._turns(learners):
                    some = learners.part(turn)
                    x, _, allowed = self._feed.batch(rows, some.seed)
                    self._net.sensitivity(some.params, some.state, x, allowed, gradient[turn])
                yield gradient

    def accuracy(self, learners: Learners, task: int, images: int | None = None) -> NDArray[np.float64]:
        """Returns each learner's accuracy [M] on the task's test set, in [0, 1]; raises PrecisionError.

        images: how many of its examples are tested, as `Pool.test` draws them; None for all.
        Balanced streams count every class alike. What other tasks' outputs say is not looked at.
        """
        set_precision(self._path)
        labels = self._feed.labels(task, images)
        # Compared on the device, and fetched once at the end: a GPU goes on to the next part meanwhile.
        hits = torch.empty(len(learners.params), labels.shape[1], dtype=torch.bool, device=self._device)
        for part in parts(labels.shape[1], self._feed.test_rows):
            for turn in self._turns(learners):
                some = learners.part(turn)
                x, y, allowed = self._feed.test(task, part, some.seed, images)
                logits = mask(self._net.logits(some.params, some.state, x), allowed)
                hits[turn, part] = logits.argmax(dim=2) == y
        return accuracies(hits.cpu().numpy(), labels[learners.seed.cpu().numpy()], self._balanced)

    def _check_batches(self, cohort: Cohort, network: str) -> None:
        """Raises ValueError where a batch would be smaller than the network takes, before hours of training."""
        what = cohort.declared, cohort.shared, self._together
        smallest = min(smallest_batch(self._stream, seed, *what) for seed in self._seeds)
        if smallest < self._net.least:
            raise ValueError(
                f"network {network} takes batches of {self._net.least} or more examples in training, as batch "
                f"normalisation does, and one of these tasks has {smallest}; choose another batch-size, "
                "examples-per-task, memory or memory-batch"
            )

    def _turns(self, learners: Learners) -> list[slice]:
        """Returns the members that are trained in one batch of products: all at once, or one after another."""
        count = len(learners.params)
        # One after another, products have the same shapes in any cohort, and so the same rounding.
        return [slice(row, row + 1) for row in range(count)] if self._one_by_one else [slice(count)]

    def _advance(self, learners: Learners, number: int, steps: int, start: int) -> None:
        """Takes steps of one segment, by a graph where there may be one.

        number: the segment's, start: its first step. The one to begin with is in `_step`, which moves on.
        """
        step = partial(self._one_step, learners, number, start)
        if self.graphs is not None:
            self.graphs.take(step, steps, number, (self._step, *learners.arrays))
            return
        for _ in range(steps):
            step()

    def _one_step(self, learners: Learners, number: int, start: int) -> None:
        """Takes one step of every learner, without reading any value, so that a CUDA graph can hold it."""
        segment = self._segments[number]
        # The number is read on the device, so that one recorded graph takes the next steps each time it is replayed.
        rows = segment.rows.index_select(1, self._step)[:, 0]
        for turn in self._turns(learners):
            self._step_of(learners.part(turn), segment, rows, start)
        self._step.add_(1)

    def _step_of(self, learners: Learners, segment: "_Segment", rows: Tensor, start: int) -> None:
        """Takes one step of learners that are trained in one batch of products.

        rows [S, B]: each seed's batch, in its pool.
        """
        params, batch = learners.params, self._feed.batch(rows, learners.seed)
        if isinstance(self._rule, Losses):
            gradients = [torch.empty_like(params)]
            loss = self._weigh(learners, self._rule, segment, batch, gradients[0])
            losses = loss[:, None]
        else:
            sizes, weight = (segment.current, *segment.parts), segment.row_weight
            if self._together:
                sizes, weight = (sum(sizes),), torch.full_like(weight, 1 / sum(sizes))
            gradients = [torch.empty_like(params) for _ in sizes]  # the network writes all of them
            losses = self._net.gradients(params, learners.state, batch, weight[learners.seed], sizes, gradients)
            loss = losses[:, :-1].sum(1)
        bad = (learners.first_bad < 0) & ~torch.isfinite(loss)
        # By torch.where and in place: a graph can neither branch on a value nor write to a new address.
        learners.first_bad.copy_(torch.where(bad, self._step + start, learners.first_bad))
        self._update(learners, segment, gradients[0], gradients[1:], losses)

    def _weigh(self, learners: Learners, rule: Losses, segment: "_Segment", batch: Batch, into: Tensor) -> Tensor:
        """Writes the gradient [M, D] of a rule's weighted losses; returns their sum [M], and stores logits."""
        params, state, seed, sizes = learners.params, learners.state, learners.seed, (segment.current, *segment.parts)
        stored = segment.stored_logits(state[LOGITS], self._step, seed) if rule.stores and segment.parts else None
        values, weight, slices = self._values(learners), segment.row_weight[seed], consecutive(sizes)
        teacher = groups = None
        if self._groups is not None:
            teacher = self._net.logits(state[TAUGHT], statistics_of(state), batch.x[:, slices[0]])
            groups = self._groups[0][seed], self._groups[1][seed]
        step = Weighed(batch, slices, weight, values, self.tasks, stored, teacher, groups, self._path.subtracted)
        results: list[Tensor] = []

        def by_logits(logits: Tensor) -> Tensor:
            loss, delta = pull(rule, step, logits)
            results.extend((loss, logits))
            return delta

        self._net.pull_back(params, state, batch.x, sizes, by_logits, into)
        loss, logits = results
        if rule.stores:
            segment.store(state[LOGITS], self._step, seed, logits)
        return loss

    def _update(
        self, learners: Learners, segment: "_Segment", g: Tensor, references: list[Tensor], losses: Tensor
    ) -> None:
        """Subtracts rate · the rule's direction, or what the optimizer makes of it, from the parameters, in place.

        g [M, D]: the mini-batch's gradient; references: those [M, D] of the reference batches, one for each previous
        task for projections, else one or none; losses: as of `Network.gradients`.
        """
        params, rule, values = learners.params, self._rule, self._values(learners)
        rate, along = column(values.lr), None if self._plain else self._along(learners)

        def descend(direction: Tensor) -> None:
            params.addcmul_(along(direction) if along else direction, -rate)

        if isinstance(rule, Subspaces) and self.tasks > 1:
            rule.project(learners.state, cast(MLP, self._net).layer_views(g))
        if isinstance(rule, Penalty):
            params.addcmul_(rule.direction(learners.state, Step(params, g, values), along), -rate)
        # Without a reference batch, as in a first task, no other rule changes the gradient.
        elif not references:
            descend(g)
        elif isinstance(rule, Projection):
            direction, projected = rule.direction(g, torch.stack(references, dim=1), values)
            descend(direction)
            learners.projected.add_(projected)
        elif isinstance(rule, Mixing):
            loss, reference_loss, residual = losses.unbind(1)
            share = torch.full_like(loss, segment.current / (segment.current + segment.reference))
            facts = (share, residual, self.tasks, loss, reference_loss)
            mix = rule.mix(Products(*inner_products(g, references[0]), *facts), values)
            if along:
                descend((g * column(mix.a)).addcmul_(references[0], column(mix.b)))
            else:
                params.addcmul_(g, -rate * column(mix.a))
                params.addcmul_(references[0], -rate * column(mix.b))
            learners.projected.add_(mix.projected)

    def _along(self, learners: Learners) -> Callable[[Tensor], Tensor]:
        return lambda gradient: optimizers.step_along(learners.state, learners.params, gradient, self._shared)


class _Segment:
    """A schedule segment of all seeds on the device: rows [S, steps, B]; row_weight [S, B, 1] = 1/rows of its part.

    A seed that has fewer examples stored than the others repeats a row, with weight 0.
    """

    def __init__(self, segments: tuple[Segment, ...], device: torch.device) -> None:
        self.current, self.steps = segments[0].current, len(segments[0].rows)
        self.parts = tuple(map(max, zip(*(segment.parts for segment in segments), strict=True)))
        self.reference = sum(self.parts)
        batch = self.current + self.reference
        rows = np.zeros((len(segments), self.steps, batch), dtype=np.int64)
        weight = np.zeros((len(segments), batch, 1), dtype=np.float32)
        for seed, segment in enumerate(segments):
            taken = into = 0
            for wide, size in zip((self.current, *self.parts), (self.current, *segment.parts), strict=True):
                rows[seed, :, into : into + size] = segment.rows[:, taken : taken + size]
                weight[seed, into : into + size] = 1 / max(size, 1)  # of no rows there is no mean
                taken, into = taken + size, into + wide
        self.rows, self.row_weight = torch.from_numpy(rows).to(device), torch.from_numpy(weight).to(device)
        if segments[0].written is not None:
            of_seeds = zip(*map(self._slots, segments), strict=True)
            tensors = (torch.from_numpy(np.stack(arrays)).to(device) for arrays in of_seeds)
            self._read, self._source, self._slot, self._some = tensors

    def _slots(self, segment: Segment) -> tuple[NDArray[Any], ...]:
        """Returns (slots [steps, reference] that rows of the draws are read from, *`_slots_by_step`)."""
        assert segment.read is not None and segment.written is not None
        read = np.zeros((self.steps, self.reference), dtype=np.int64)
        for into, taken in zip(consecutive(self.parts), consecutive(segment.parts), strict=True):
            read[:, into.start : into.start + taken.stop - taken.start] = segment.read[:, taken]
        return (read, *_slots_by_step(segment.written))

    def stored_logits(self, logits: Tensor, step: Tensor, seed: Tensor) -> Tensor:
        """Returns the stored logits [M, reference, outputs] of the step's reference rows.

        logits: [M, slots, outputs].
        """
        slots = self._read.index_select(1, step)[seed, 0]
        return logits.gather(1, slots[:, :, None].expand(-1, -1, logits.shape[2]))

    def store(self, logits: Tensor, step: Tensor, seed: Tensor, fresh: Tensor) -> None:
        """Writes the logits of the examples that enter the memory after a step, of fresh [M, B, outputs], in place."""
        if not logits.shape[1]:
            return
        source, slot, some = (array.index_select(1, step)[seed, 0] for array in (self._source, self._slot, self._some))
        source, slot = (array[:, :, None].expand(-1, -1, logits.shape[2]) for array in (source, slot))
        # Where several are written to one slot they are the same, so that their order is nothing.
        logits.scatter_(1, slot, torch.where(some[:, None, None], fresh.gather(1, source), logits.gather(1, slot)))


def _slots_by_step(slots: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Returns (examples [steps, current], slots of their logits [steps, current], whether there are any [steps]).

    slots [steps, current]: −1 for no slot. Instead, the step's last one is written once more; slot 0 where there are
    none.
    """
    entered = slots >= 0
    last = slots.shape[1] - 1 - entered[:, ::-1].argmax(axis=1)
    source = np.where(entered, np.arange(slots.shape[1]), last[:, None])
    return source, np.maximum(np.take_along_axis(slots, source, axis=1), 0), np.asarray(entered.any(axis=1))


def inner_products(g: Tensor, g_ref: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (‖g‖², g·g_ref, ‖g_ref‖²), [M] each, of gradients [M, D].

    Each is one global L2 inner product over all parameters.

    Padding is zero in both, and adds nothing.
    """
    gr = inner(g[:, None], g_ref)[:, 0]
    gg, rr = (inner(gradient[:, None], gradient)[:, 0] for gradient in (g, g_ref))
    return gg, gr, rr
