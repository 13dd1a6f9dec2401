"""The engine of tensors: all members in one batch of matrices, for GPUs, where a step is replayed from a CUDA graph.

Without a GPU the same code runs step by step on the CPU: its twin in the tests, and the way without Numba.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import TrainConfig
from trainers.engines.base import Learners, steps_between
from trainers.methods import Method, Options, Products
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.schedule import Segment, generator
from trainers.streams.base import TaskStream

TEST_ROWS = 1000  # test rows of one forward pass
GRAPH_STEPS = 16  # steps in one CUDA graph: the cost of launching it is spread over them


class BatchedEngine:
    """Schedules, examples and parameters live on the device; a step reads its number there too."""

    def __init__(
        self, stream: TaskStream, seeds: tuple[int, ...], config: TrainConfig, method: Method, path: NumericPath
    ) -> None:
        self._stream, self._seeds, self._method, self._device = stream, seeds, method, torch.device(path.device)
        torch.backends.cuda.matmul.allow_tf32 = path.precision == "tf32"
        self._options = Options(config.trigger, config.scale, config.satisfied)
        self._learning_rate = config.learning_rate
        self._net = MLP((stream.inputs, *config.hidden, stream.classes))
        self._pools = [Pool(stream, seed, config, method.uses_memory) for seed in seeds]
        self._tests: dict[int, tuple[Tensor, Tensor]] = {}
        self._step = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self.steps, self.reference = 0, False

    def start(self) -> Tensor:
        rows = [self._net.init(generator(seed, "init", self._stream.tasks.start)) for seed in self._seeds]
        return torch.from_numpy(np.stack(rows)).to(self._device)

    def load_task(self, task: int) -> None:
        schedules = [pool.load_task(task) for pool in self._pools]
        self._inputs = self._upload([pool.inputs for pool in self._pools])
        self._labels = self._upload([pool.labels for pool in self._pools])
        self._segments = [_Segment(parts, self._device) for parts in zip(*schedules, strict=True)]
        self.steps = sum(segment.steps for segment in self._segments)
        self.reference = self._segments[0].reference > 0
        self._graphs.clear()

    def train(self, learners: Learners, first: int, last: int) -> None:
        for number, start, steps in steps_between([segment.steps for segment in self._segments], first, last):
            self._step.fill_(steps.start)
            self._advance(learners, number, len(steps), start)

    def remember(self, task: int) -> None:
        for pool in self._pools:
            pool.remember(task)

    def accuracy(self, learners: Learners, task: int) -> NDArray[np.float64]:
        if task not in self._tests:
            tests = [pool.test(task) for pool in self._pools]
            self._tests[task] = (self._upload([t.inputs for t in tests]), self._upload([t.labels for t in tests]))
        inputs, labels = self._tests[task]
        layers = self._net.layers(learners.params)
        correct = torch.zeros(len(learners.params), dtype=torch.int64, device=self._device)
        for x, y in zip(torch.split(inputs, TEST_ROWS, 1), torch.split(labels, TEST_ROWS, 1), strict=True):
            logits = self._net.activations(layers, self._scale(x)[learners.seed])[-1]
            correct += (logits.argmax(dim=2) == y[learners.seed]).sum(dim=1)
        share: NDArray[np.float64] = correct.cpu().numpy() / labels.shape[1]
        return share

    def _advance(self, learners: Learners, number: int, steps: int, start: int) -> None:
        """Takes steps of one segment: as many as possible from a graph, the rest one by one."""
        if self._device.type == "cuda" and steps >= GRAPH_STEPS:
            graph = self._graphs.get((learners.params.data_ptr(), number))
            if graph is None:
                self._one_step(learners, number, start)  # a first step outside of the graph sets up the libraries
                steps -= 1
                if steps < GRAPH_STEPS:
                    self._advance(learners, number, steps, start)
                    return
                graph = self._capture(learners, number, start)
            for _ in range(steps // GRAPH_STEPS):
                graph.replay()
            steps %= GRAPH_STEPS
        for _ in range(steps):
            self._one_step(learners, number, start)

    def _capture(self, learners: Learners, number: int, start: int) -> torch.cuda.CUDAGraph:
        """Records GRAPH_STEPS steps. Recording takes none of them; the parameters stay as they are."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(GRAPH_STEPS):
                self._one_step(learners, number, start)
        self._graphs[learners.params.data_ptr(), number] = graph
        return graph

    def _one_step(self, learners: Learners, number: int, start: int) -> None:
        """One step of every learner, without a look at any value: what a CUDA graph can hold."""
        segment, params = self._segments[number], learners.params
        rows = segment.rows.index_select(1, self._step)[:, 0][learners.seed]
        x = self._scale(self._inputs[learners.seed[:, None], rows])
        labels = self._labels[learners.seed[:, None], rows]
        target = (labels[..., None] == torch.arange(self._stream.classes, device=self._device)).to(x.dtype)
        g, g_ref = torch.empty_like(params), torch.empty_like(params)  # the products write all of them
        into = [self._net.layers(g), self._net.layers(g_ref)] if segment.reference else [self._net.layers(g)]
        loss = self._net.gradients(
            self._net.layers(params), x, target, segment.row_weight[learners.seed], segment.current, into
        )
        bad = (learners.first_bad < 0) & ~torch.isfinite(loss)
        learners.first_bad.copy_(torch.where(bad, self._step + start, learners.first_bad))
        if segment.reference:
            mix = self._method.mix(Products.of(g, g_ref), learners.epsilon.float(), self._options)
            params.addcmul_(g, -self._learning_rate * mix.a[:, None])
            params.addcmul_(g_ref, -self._learning_rate * mix.b[:, None])
            learners.projected.add_(mix.projected)
        else:
            params.add_(g, alpha=-self._learning_rate)
        self._step.add_(1)

    def _scale(self, stored: Tensor) -> Tensor:
        return stored.to(torch.float32).div_(self._stream.largest)

    def _upload(self, parts: list[NDArray[np.uint8]] | list[NDArray[np.int64]]) -> Tensor:
        return torch.from_numpy(np.stack(parts)).to(self._device)


class _Segment:
    """A schedule segment of all seeds on the device: rows [S, steps, B]; row_weight [S, B, 1] = 1/rows of its part.

    A seed that has fewer examples stored than the others repeats a row, with weight 0.
    """

    def __init__(self, parts: tuple[Segment, ...], device: torch.device) -> None:
        self.current, self.steps = parts[0].current, len(parts[0].rows)
        self.reference = max(part.reference for part in parts)
        batch = self.current + self.reference
        rows = np.zeros((len(parts), self.steps, batch), dtype=np.int64)
        weight = np.zeros((len(parts), batch, 1), dtype=np.float32)
        weight[:, : self.current] = 1 / self.current
        for seed, part in enumerate(parts):
            used = self.current + part.reference
            rows[seed, :, :used] = part.rows
            weight[seed, self.current : used] = 1 / max(part.reference, 1)
        self.rows, self.row_weight = torch.from_numpy(rows).to(device), torch.from_numpy(weight).to(device)
