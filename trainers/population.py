"""The training loop: tasks, steps and measurements for all members of a cohort."""

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.cohort import LEARNING_CURVE_BATCHES, Cohort, CohortResult, TrainConfig
from trainers.methods import METHODS, Options, Products
from trainers.networks import MLP
from trainers.pool import Batches, Pool
from trainers.schedule import generator
from trainers.streams.base import TaskStream

Progress = Callable[[int], None]
"""Called a few times a second with the member-steps done since the last call; may raise to stop the training."""

TEST_ROWS = 1000  # test rows in one forward pass: their activations stay in the cache
REPORT_SECONDS = 0.25
CHECK_EVERY = 64  # steps between looks at the clock and at whether every member has diverged


def train_cohort(
    cohort: Cohort, stream: TaskStream, config: TrainConfig, device: str = "cpu", progress: Progress | None = None
) -> CohortResult:
    """Trains every member on the whole stream from a fresh network, and measures it on the way.

    A member's result depends on the member, the stream and the config alone. On a CPU every matrix has one row
    while it is trained, so a member is bit-identical alone and in any place of any cohort.
    """
    ticker = _Ticker(progress)
    result = _empty_result(len(cohort.members), stream, config)
    for seed in sorted({member.seed for member in cohort.members}):
        rows = [row for row, member in enumerate(cohort.members) if member.seed == seed]
        epsilon = torch.tensor([cohort.members[row].epsilon for row in rows], device=device)
        with torch.inference_mode():
            part = _SeedRun(cohort.method, seed, epsilon, stream, config, device, ticker).train()
        for name in ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step"):
            getattr(result, name)[rows] = getattr(part, name)
    ticker.flush()
    return result


def _block_size(device: torch.device, members: int) -> int:
    """Rows trained at a time: on a CPU one, whose parameters and gradients stay in the cache; on a GPU all."""
    return 1 if device.type == "cpu" else members


def _empty_result(members: int, stream: TaskStream, config: TrainConfig) -> CohortResult:
    tasks = len(stream.tasks)
    return CohortResult(
        accuracies=np.full((members, tasks, tasks), np.nan),
        initial=np.full((members, tasks), np.nan),
        within=np.full((members, tasks, LEARNING_CURVE_BATCHES + 1), np.nan),
        violations=np.full((members, tasks), np.nan),
        diverged_task=np.full(members, -1),
        diverged_step=np.full(members, -1),
        steps=tasks * -(-stream.examples // config.batch_size),
    )


class _Ticker:
    """Adds up member-steps and passes them on a few times a second."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._steps, self._last = progress, 0, time.monotonic()

    def add(self, steps: int) -> None:
        self._steps += steps
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._progress is not None and self._steps:
            self._progress(self._steps)
        self._steps, self._last = 0, time.monotonic()


class _SeedRun:
    """All members of one seed: they share data, order, memory and initial weights, and differ in ε."""

    def __init__(
        self,
        method: str,
        seed: int,
        epsilon: Tensor,
        stream: TaskStream,
        config: TrainConfig,
        device: str,
        ticker: _Ticker,
    ) -> None:
        self._method, self._epsilon, self._ticker = METHODS[method], epsilon, ticker
        self._options = Options(config.trigger, config.scale, config.satisfied)
        self._learning_rate = config.learning_rate
        self._net = MLP((stream.inputs, *config.hidden, stream.classes))
        self._start = self._net.init(generator(seed, "init", stream.tasks.start))
        self._pool = Pool(stream, seed, config, self._method.uses_memory, device)
        self._result = _empty_result(len(epsilon), stream, config)

    def train(self) -> CohortResult:
        device, members = self._epsilon.device, len(self._epsilon)
        params = torch.from_numpy(self._start)[None].to(device)
        tasks = self._result.initial.shape[1]
        for task in range(tasks):
            self._result.initial[:, task] = self._accuracy(params, task)
        for task in range(tasks):
            batches = self._pool.load_task(task)
            if task == 0:  # without a memory ε plays no part: one row serves all members, who part ways behind it
                self._train_task(params, slice(0, members), task, batches)
                params = params.repeat(members, 1)
            else:
                size = _block_size(device, members)
                for block in (slice(row, row + size) for row in range(0, members, size)):
                    self._train_task(params[block], block, task, batches)
            self._pool.remember(task)
        return self._result

    def _train_task(self, params: Tensor, block: slice, task: int, batches: list[Batches]) -> None:
        """Trains params [M, D], which belong to the members `block`, on one task and measures them."""
        within = self._result.within[block, task]
        within[:, 0] = self._result.accuracies[block, task - 1, task] if task else self._result.initial[block, 0]
        first_bad = torch.full((len(params),), -1, device=params.device)
        projected = torch.zeros(len(params), device=params.device)
        g, g_ref = torch.zeros_like(params), torch.zeros_like(params)
        layers, into = self._net.layers(params), [self._net.layers(g), self._net.layers(g_ref)]
        step = 0
        for batch in batches:
            for rows in batch.rows:
                x, target = self._pool.gather(rows)
                x = x.expand(len(params), -1, -1)
                loss = self._net.gradients(layers, x, target, batch.row_weight, batch.current, into)
                first_bad = torch.where((first_bad < 0) & ~torch.isfinite(loss), step, first_bad)
                if batch.reference:
                    mix = self._method.mix(Products.of(g, g_ref), self._epsilon[block], self._options)
                    params.addcmul_(g, -self._learning_rate * mix.a[:, None])
                    params.addcmul_(g_ref, -self._learning_rate * mix.b[:, None])
                    projected += mix.projected
                else:
                    params.add_(g, alpha=-self._learning_rate)
                step += 1
                if step <= LEARNING_CURVE_BATCHES:
                    within[:, step] = np.where(first_bad.cpu() < 0, self._accuracy(params, task), np.nan)
                if step % CHECK_EVERY == 0:
                    self._ticker.add(CHECK_EVERY * len(params))
                    if bool((first_bad >= 0).all()):
                        break
        self._ticker.add(step % CHECK_EVERY * len(params))
        first_bad = torch.where((first_bad < 0) & ~torch.isfinite(params).all(dim=1), step - 1, first_bad)
        self._note_divergence(block, task, first_bad)
        if batches[0].reference:
            self._result.violations[block, task] = (projected / step).cpu()
        self._measure(params, block, task)

    def _note_divergence(self, block: slice, task: int, first_bad: Tensor) -> None:
        where, when = self._result.diverged_task[block], self._result.diverged_step[block]
        new = (first_bad.cpu().numpy() >= 0) & (where < 0)
        when[new] = np.broadcast_to(first_bad.cpu().numpy(), when.shape)[new]
        where[new] = task

    def _measure(self, params: Tensor, block: slice, task: int) -> None:
        """Accuracy on every task seen, and on the next one before its first step."""
        result = self._result
        for tested in range(min(task + 2, result.initial.shape[1])):
            result.accuracies[block, task, tested] = self._accuracy(params, tested)
        diverged = result.diverged_task[block] >= 0
        result.accuracies[block, task][diverged] = np.nan
        result.violations[block, task][diverged] = np.nan

    def _accuracy(self, params: Tensor, task: int) -> NDArray[np.float64]:
        """Share of the task's test set that each row of `params` classifies correctly, [M]."""
        inputs, labels = self._pool.test(task)
        layers = self._net.layers(params)
        correct = torch.zeros(len(params), dtype=torch.int64, device=params.device)
        for x, y in zip(torch.split(inputs, TEST_ROWS), torch.split(labels, TEST_ROWS), strict=True):
            logits = self._net.activations(layers, self._pool.scale(x).expand(len(params), -1, -1))[-1]
            correct += (logits.argmax(dim=2) == y).sum(dim=1)
        share: NDArray[np.float64] = correct.cpu().numpy() / len(labels)
        return share
