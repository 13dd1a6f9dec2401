"""The engine of progressive residual networks, by autograd.

The newest column trains.
"""

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import Architecture, Cohort
from trainers.engines import optimizers
from trainers.engines.base import Learners, parts, steps_between
from trainers.engines.columns.base import GrowingEngine, note_bad
from trainers.engines.feed import ImageFeed
from trainers.engines.precision import set_precision
from trainers.methods.penalty import State
from trainers.networks import make_resnet
from trainers.networks.losses import mask
from trainers.networks.progressive.resnet import ResNetColumns
from trainers.networks.weights import load, put
from trainers.numeric_path import NumericPath
from trainers.streams.base import ImageStream
from trainers.streams.scores import accuracies


class ResNetColumnsEngine(GrowingEngine):
    """Its state is the moving averages of all columns. One seed: another one's tasks may have another number of steps.

    With pretrained weights every column starts from them. Raises ValueError where a stream has a joint embedding.
    """

    _net: ResNetColumns

    def __init__(
        self, cohort: Cohort, seeds: tuple[int, ...], stream: ImageStream, architecture: Architecture, path: NumericPath
    ) -> None:
        if stream.attributes is not None:
            raise ValueError("prognn has no form with a joint embedding; train it on the stream without one")
        super().__init__(cohort, seeds, stream, path)
        self._net = ResNetColumns(make_resnet(architecture, stream, path.subtracted), len(stream.tasks))
        self._feed = ImageFeed(stream, self._pools, self._device)
        self._balanced, self._pretrained = stream.balanced, architecture.pretrained

    def start(self) -> Tensor:
        """Returns all columns [1, D], from pretrained weights where there are some; raises DataError."""
        rows = super().start()
        if self._pretrained is not None:
            for number in range(self._net.count):
                put(self._net.net, self._net.backbone(rows, number), load(self._pretrained), self._pretrained)
        return rows

    def state(self, params: Tensor) -> State:
        """Returns the moving averages of all columns, [M, S], and the optimizer's arrays."""
        return super().state(params) | self._net.statistics(params)

    def load_task(self, task: int) -> None:
        """Makes the task's training set and batches ready on the device."""
        super().load_task(task)
        self._feed.load()

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes the steps first…last−1 with every learner's newest column, in place; raises PrecisionError."""
        set_precision(self._path)
        self._begin(learners, first)
        rates: list[float] = (learners.own["lr"] * self.of_rate).tolist()
        members = [learners.part(slice(row, row + 1)) for row in range(len(rates))]
        for number, start, steps in steps_between([len(segment.rows) for segment in self._segments], first, last):
            rows = torch.from_numpy(self._segments[number].rows).to(self._device)
            for step in steps:
                x, labels, allowed = self._feed.batch(rows[step : step + 1], learners.seed)
                # The batch is made once: all members have the one seed's images.
                for member, rate in zip(members, rates, strict=True):
                    statistics = member.state["statistics"]
                    loss, gradients = self._net.gradients(member.params, statistics, self._task, x, labels, allowed)
                    if not self._plain:
                        self._optimise(member, gradients, rate)
                        gradients = []
                    for view, gradient in gradients:
                        # The views lie in the learner's row; all gradients are there before the first of them moves.
                        view.sub_(gradient, alpha=rate)
                    note_bad(member.first_bad[0], loss, start + step)

    def _optimise(self, member: Learners, gradients: list[tuple[Tensor, Tensor]], rate: float) -> None:
        """Takes a step of the newest column by the optimizer's rule, in place."""
        place, whole = self._net.slice(self._task), torch.zeros_like(member.params)
        for into, (_, gradient) in zip(self._net.views(whole, self._task).values(), gradients, strict=True):
            into.copy_(gradient)
        arrays = {name: array for name, array in member.state.items() if name in optimizers.NAMES}
        state = {name: array if name == optimizers.COUNT else array[:, place] for name, array in arrays.items()}
        params = member.params[:, place]
        params.sub_(optimizers.step_along(state, params, whole[:, place], self._shared), alpha=rate)

    def _test_state(self, learners: Learners, row: int, task: int) -> Tensor:
        # A test normalises by the moving averages, which a column keeps beside its parameters.
        params = learners.params[row, : self._net.slice(task).stop]
        averages = learners.state["statistics"][row, : self._net.statistics_slice(task).stop]
        return torch.cat([params, averages])

    def _test(self, learners: Learners, row: int, task: int, images: int | None) -> float:
        member, labels = learners.part(slice(row, row + 1)), self._feed.labels(task, images)
        hits = np.empty(labels.shape, dtype=np.bool_)
        for part in parts(labels.shape[1], self._feed.test_rows):
            x, y, allowed = self._feed.test(task, part, member.seed, images)
            logits = self._net.logits(member.params, member.state["statistics"], task, x)
            hits[:, part] = (mask(logits, allowed).argmax(dim=2) == y).cpu().numpy()
        return float(accuracies(hits, labels, self._balanced)[0])
