"""The protocol of a run for all members of a cohort: tasks, measurements, divergence. An engine does the arithmetic."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import LEARNING_CURVE_BATCHES, Cohort, CohortResult, TrainConfig
from trainers.engines import make_engine
from trainers.engines.base import Engine, Learners
from trainers.engines.choice import fastest_path
from trainers.numeric_path import NumericPath
from trainers.prefixes import Prefixes, fingerprint
from trainers.streams.base import TaskStream

Progress = Callable[[int], None]
"""Called a few times a second with the member-steps done since the last call; may raise to stop the training."""

REPORT_SECONDS = 0.25
CHECK_EVERY = 64  # steps between looks at the clock and at whether every member has diverged


def train_cohort(
    cohort: Cohort,
    stream: TaskStream,
    config: TrainConfig,
    path: NumericPath | None = None,
    progress: Progress | None = None,
    transfer: bool = True,
    prefixes: Path | None = None,
) -> CohortResult:
    """Trains every member on the whole stream from a fresh network, and measures it on the way.

    path: the arithmetic to use; by default the fastest of this machine's CPU. A member's result depends on the
    member, the stream, the config and the path alone; on a CPU path it is bit-identical alone and in any cohort.
    transfer: whether to measure what only FWT and LCA need: tasks not trained yet, and every task's first batches.
    prefixes: a folder that keeps networks after their first task, which is the same for every ε, for other cohorts.
    """
    chosen = path or fastest_path(stream.inputs, config.hidden[0], stream.density)
    ticker = _Ticker(progress)
    tasks = len(stream.tasks)
    empty = partial(CohortResult.empty, tasks=tasks, steps=tasks * -(-stream.examples // config.batch_size))
    result = empty(len(cohort.members))
    shared = Prefixes(prefixes, stream, config, chosen, transfer) if prefixes else None
    order = sorted({member.seed for member in cohort.members})
    for seeds in [(seed,) for seed in order] if chosen.one_seed_at_a_time else [tuple(order)]:
        rows = [row for row, member in enumerate(cohort.members) if member.seed in seeds]
        members = [cohort.members[row] for row in rows]
        epsilon = torch.tensor([member.epsilon for member in members], dtype=torch.float64, device=chosen.device)
        seed = torch.tensor([seeds.index(member.seed) for member in members], device=chosen.device)
        with torch.inference_mode():
            engine = make_engine(cohort.method, seeds, stream, config, chosen)
            part = _Run(engine, seeds, empty, ticker, transfer, shared).train(epsilon, seed)
        for name in CohortResult.ARRAYS:
            getattr(result, name)[rows] = getattr(part, name)
        result = replace(result, saved=result.saved + part.saved)
    ticker.flush()
    return result


class _Run:
    """Members of some seeds that are trained in lockstep: those of a seed share data, order, memory and start."""

    def __init__(
        self,
        engine: Engine,
        seeds: tuple[int, ...],
        result: Callable[[int], CohortResult],
        ticker: "_Ticker",
        transfer: bool,
        prefixes: Prefixes | None,
    ) -> None:
        self._engine, self._seeds, self._empty = engine, seeds, result
        self._ticker, self._transfer, self._prefixes = ticker, transfer, prefixes

    def train(self, epsilon: Tensor, seed: Tensor) -> CohortResult:
        """Trains one member for each ε; `seed` holds the indices of their seeds."""
        params, first, trained = self._first_task(len(seed))
        learners = Learners.of(params[seed], epsilon, seed)
        result = replace(first, **{name: getattr(first, name)[seed.cpu().numpy()] for name in CohortResult.ARRAYS})
        saved = (len(seed) - trained) * self._engine.steps
        for task in range(1, result.initial.shape[1]):
            self._engine.load_task(task)
            self._train_task(learners, result, task)
            self._engine.remember(task)
        for row, final in enumerate(learners.params.cpu().numpy()):
            result.params[row], result.fingerprints[row] = final, fingerprint(final)
        return replace(result, saved=saved)

    def _first_task(self, members: int) -> tuple[Tensor, CohortResult, int]:
        """(parameters [S, D] after the first task, its measurements with one row a seed, seeds trained for it)."""
        engine, seeds = self._engine, self._seeds
        params, result = engine.start(), self._empty(len(seeds))
        engine.load_task(0)
        kept = [self._prefixes.load(seed) if self._prefixes else None for seed in seeds]
        if all(kept):
            for row, (values, measured) in enumerate(one for one in kept if one):
                params[row] = torch.from_numpy(values)
                for name, value in measured.items():
                    getattr(result, name)[row] = value
        else:
            learners = Learners.of(params, torch.zeros(len(seeds)), torch.arange(len(seeds), device=params.device))
            self._train_task(learners, result, 0)
            for row, seed in enumerate(seeds):
                if self._prefixes:
                    self._prefixes.save(seed, params[row].cpu().numpy(), result, row)
        engine.remember(0)
        return params, result, 0 if all(kept) else len(seeds)

    def _train_task(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Trains the loaded task and measures it, into the rows of `result`."""
        engine = self._engine
        self._measure_before(learners, result, task)
        learners.reset()
        done = 0
        while done < engine.steps:
            curve = self._transfer and done < LEARNING_CURVE_BATCHES
            last = min(done + 1 if curve else (done // CHECK_EVERY + 1) * CHECK_EVERY, engine.steps)
            engine.train(learners, done, last)
            self._ticker.add((last - done) * len(learners.params))
            done = last
            bad = learners.first_bad.cpu().numpy() >= 0
            if curve:
                result.within[:, task, done] = np.where(bad, np.nan, engine.accuracy(learners, task))
            if bad.all():
                break
        self._note_divergence(learners, result, task, done - 1)
        if engine.reference:
            result.violations[:, task] = (learners.projected / done).cpu()
        self._measure_after(learners, result, task)

    def _measure_before(self, learners: Learners, result: CohortResult, task: int) -> None:
        """The start of the learning curve; and, for FWT, the untrained network on every task."""
        if not self._transfer:
            return
        if task == 0:
            for tested in range(result.initial.shape[1]):
                result.initial[:, tested] = self._engine.accuracy(learners, tested)
        result.within[:, task, 0] = result.accuracies[:, task - 1, task] if task else result.initial[:, 0]

    def _measure_after(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Accuracy on every task seen, and for FWT and LCA on the next one before its first step."""
        tasks = result.initial.shape[1]
        for tested in range(min(task + 2, tasks) if self._transfer else task + 1):
            result.accuracies[:, task, tested] = self._engine.accuracy(learners, tested)
        diverged = result.diverged_task >= 0
        result.accuracies[diverged, task] = np.nan
        result.violations[diverged, task] = np.nan

    def _note_divergence(self, learners: Learners, result: CohortResult, task: int, last: int) -> None:
        """A member that is not finite at the task's end diverged in its last step, unless an earlier loss said so."""
        finite = torch.isfinite(learners.params).all(dim=1).cpu().numpy()
        first_bad = learners.first_bad.cpu().numpy()
        first_bad = np.where((first_bad < 0) & ~finite, last, first_bad)
        new = (first_bad >= 0) & (result.diverged_task < 0)
        result.diverged_step[new] = first_bad[new]
        result.diverged_task[new] = task


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
