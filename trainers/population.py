"""The protocol of a run for all members of a cohort: tasks, measurements, divergence. An engine does the arithmetic."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.capacity import in_halves
from trainers.checkpoints import Checkpoints, Origin, restore
from trainers.cohort import LEARNING_CURVE_BATCHES, Cohort, CohortResult, Member, TrainConfig
from trainers.engines import make_engine
from trainers.engines.base import Engine, Learners
from trainers.engines.fastest import fastest_for
from trainers.footprint import bytes_of
from trainers.kept.array_store import Arrays, fingerprint
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

Progress = Callable[[int], None]
"""Called a few times a second with the member-steps done since the last call, 0 while it tests; may raise to stop
the training.
"""

EngineOf = Callable[[str, tuple[int, ...], TaskStream, TrainConfig, NumericPath], Engine]
"""What makes an engine, as `make_engine` does."""

REPORT_SECONDS = 0.25
CHECK_EVERY = 64  # steps at most between looks at whether every member has diverged; fewer where they are slow


def train_cohort(
    cohort: Cohort,
    stream: TaskStream,
    config: TrainConfig,
    path: NumericPath | None = None,
    progress: Progress | None = None,
    transfer: bool = True,
    folder: Path | None = None,
    room: int | None = None,
) -> CohortResult:
    """Trains every member on the whole stream from a fresh network, and measures it on the way.

    path: the arithmetic to use; by default the fastest of this machine's CPU. A member's result depends on the
    member, the stream, the config and the path alone; on a CPU it is bit-identical alone and in any cohort, but for
    residual networks on the path that trains their members together.
    transfer: whether to measure what only FWT and LCA need: tasks not trained yet, and every task's first batches.
    folder: keeps first tasks that other cohorts share, and the last task of a run that is killed: the same call goes
    on from there. room: bytes that there are; members that do not fit together are trained in halves of the cohort,
    and the result says so. Raises MemoryError, with one line, when not even one fits.
    """
    chosen = path or fastest_for(stream, config)
    checkpoints = Checkpoints(folder, cohort, stream, config, chosen, transfer)
    kept = {member: found for member in cohort.members if (found := checkpoints.last(member))}
    return train_rest(cohort, stream, config, chosen, progress, transfer, checkpoints, kept, room)


def train_rest(
    cohort: Cohort,
    stream: TaskStream,
    config: TrainConfig,
    chosen: NumericPath,
    progress: Progress | None,
    transfer: bool,
    checkpoints: Checkpoints,
    kept: Mapping[Member, tuple[int, Arrays | None]],
    room: int | None,
    engine_of: EngineOf = make_engine,
) -> CohortResult:
    """`train_cohort` of members that go on after a task, from what was kept of it; from untrained networks for None."""
    _check_strengths(cohort)
    ticker = _Ticker(progress)
    empty = partial(CohortResult.empty, tasks=len(stream.tasks))
    result = empty(len(cohort.members))

    def train(task: int, rows: list[int]) -> CohortResult:
        members = [cohort.members[row] for row in rows]
        seeds = tuple(sorted({member.seed for member in members}))
        with torch.no_grad():
            engine = engine_of(cohort.method, seeds, stream, config, chosen)
            run = _Run(engine, members, seeds, config.learning_rate, empty, ticker, transfer, checkpoints)
            return run.train(task, [arrays for member in members if (arrays := kept.get(member, (-1, None))[1])])

    def needed(rows: list[int]) -> int:
        return bytes_of(replace(cohort, members=tuple(cohort.members[row] for row in rows)), stream, config, chosen)

    alone = chosen.one_seed_at_a_time or config.network != "mlp"
    groups = _in_lockstep(cohort, {member: task for member, (task, _) in kept.items()}, alone)
    for rows, part, note in in_halves(groups, train, needed, room):
        for name in CohortResult.ARRAYS:
            getattr(result, name)[rows] = getattr(part, name)
        result.steps[rows] = [_steps(stream, cohort.members[row].seed, config) for row in rows]
        result = replace(result, saved=result.saved + part.saved, note=note or result.note)
    checkpoints.forget(cohort.members)
    ticker.flush()
    return result


def _in_lockstep(cohort: Cohort, done: dict[Member, int], one_seed: bool) -> list[tuple[int, list[int]]]:
    """(last task that is done, −1 for none; rows of the members) of those that can be trained together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for row, member in sorted(enumerate(cohort.members), key=lambda pair: pair[1].seed):
        seed = member.seed if one_seed else -1
        groups.setdefault((seed, done.get(member, -1)), []).append(row)
    return [(task, rows) for (_, task), rows in groups.items()]


def _steps(stream: TaskStream, seed: int, config: TrainConfig) -> int:
    """SGD steps of a whole run."""
    return sum(-(-stream.size(seed, task) // config.batch_size) for task in stream.tasks)


def _check_strengths(cohort: Cohort) -> None:
    if "strength" in METHODS[cohort.method].names and any(member.strength is None for member in cohort.members):
        raise ValueError(f"strength, the λ of {cohort.method}'s penalty, must be given for every member, got None")


class _Run:
    """Members of some seeds that are trained in lockstep: those of a seed share data, order, memory and start."""

    def __init__(
        self,
        engine: Engine,
        members: list[Member],
        seeds: tuple[int, ...],
        rate: float,
        result: Callable[[int], CohortResult],
        ticker: "_Ticker",
        transfer: bool,
        checkpoints: Checkpoints,
    ) -> None:
        self._engine, self._members, self._seeds, self._empty = engine, members, seeds, result
        self._ticker, self._transfer, self._checkpoints = ticker, transfer, checkpoints
        self._rates = [member.learning_rate or rate for member in members]
        self._stride = 1  # steps between two looks: as many as take a moment

    def train(self, done: int, kept: list[Arrays]) -> CohortResult:
        """Trains the members after the task `done`, −1 for none, from what was kept of it."""
        engine = self._engine
        if done >= 0:
            learners, result = self._fork(engine.start()), self._empty(len(self._members))
            restore(kept, learners, result)
            saved = 0
            for task in range(done + 1):
                engine.load_task(task)
                engine.remember(task)
                saved += len(self._members) * engine.steps
        else:
            done = 0
            learners, result, saved = self._first_task()
        tasks = result.initial.shape[1]
        for task in range(done + 1, tasks):
            engine.load_task(task)
            self._train_task(learners, result, task)
            self._end_task(learners, task, tasks)
            self._checkpoints.save(self._members, task, learners, result)
        for row, final in enumerate(learners.params.cpu().numpy()):
            result.params[row], result.fingerprints[row] = final, fingerprint(final)
        return replace(result, saved=saved)

    def _first_task(self) -> tuple[Learners, CohortResult, int]:
        """(members after the first task, their measurements, member-steps that sharing it has saved).

        It does not depend on ε or λ: it is trained once for each seed and learning rate.
        """
        engine, start = self._engine, self._engine.start()
        origins = sorted({Origin(one.seed, rate) for one, rate in zip(self._members, self._rates, strict=True)})
        result = self._empty(len(origins))
        seed = torch.tensor([self._seeds.index(origin.seed) for origin in origins], device=start.device)
        params = start[seed]
        zero = [0.0] * len(origins)
        learners = Learners.of(params, seed, zero, [origin.rate for origin in origins], zero, engine.state(params))
        engine.load_task(0)
        kept = [found for origin in origins if (found := self._checkpoints.first(origin))]
        if len(kept) == len(origins):
            restore(kept, learners, result)
        else:
            self._train_task(learners, result, 0)
            self._checkpoints.save_first(origins, learners, result)
        rows = [origins.index(Origin(one.seed, rate)) for one, rate in zip(self._members, self._rates, strict=True)]
        self._end_task(learners, 0, result.initial.shape[1])
        forked = self._fork(start, learners, rows)
        taken = 0 if len(kept) == len(origins) else len(origins)
        return forked, _rows_of(result, rows), (len(rows) - taken) * engine.steps

    def _fork(self, start: Tensor, first: Learners | None = None, rows: list[int] | None = None) -> Learners:
        """The members as learners, from untrained networks or from the given rows of learners."""
        seed = torch.tensor([self._seeds.index(member.seed) for member in self._members], device=start.device)
        if first is None:
            params = start[seed]
            state = self._engine.state(params)
        else:
            params, state = first.params[rows], {name: array[rows] for name, array in first.state.items()}
        epsilons, strengths = ([getattr(one, name) for one in self._members] for name in ("epsilon", "strength"))
        return Learners.of(params, seed, epsilons, self._rates, strengths, state)

    def _end_task(self, learners: Learners, task: int, tasks: int) -> None:
        """What a method does between two tasks."""
        if task < tasks - 1:
            self._engine.finish(learners, task == 0)
        self._engine.remember(task)

    def _train_task(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Trains the loaded task and measures it, into the rows of `result`."""
        engine = self._engine
        self._measure_before(learners, result, task)
        learners.reset()
        done = 0
        while done < engine.steps:
            curve = self._transfer and done < LEARNING_CURVE_BATCHES
            last = min(done + (1 if curve else self._stride), engine.steps)
            started = time.monotonic()
            engine.train(learners, done, last)
            bad = learners.first_bad.cpu().numpy() >= 0
            quick = time.monotonic() - started < REPORT_SECONDS / 2
            self._stride = min(2 * self._stride, CHECK_EVERY) if quick else max(self._stride // 2, 1)
            self._ticker.add((last - done) * len(learners.params))
            done = last
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
                result.initial[:, tested] = self._tested(learners, tested)
        result.within[:, task, 0] = result.accuracies[:, task - 1, task] if task else result.initial[:, 0]

    def _measure_after(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Accuracy on every task seen, and for FWT and LCA on the next one before its first step."""
        tasks = result.initial.shape[1]
        for tested in range(min(task + 2, tasks) if self._transfer else task + 1):
            result.accuracies[:, task, tested] = self._tested(learners, tested)
        diverged = result.diverged_task >= 0
        result.accuracies[diverged, task] = np.nan
        result.violations[diverged, task] = np.nan

    def _tested(self, learners: Learners, task: int) -> NDArray[np.float64]:
        """The engine's accuracies; many tests in a row must not keep who asks for progress from stopping them."""
        found = self._engine.accuracy(learners, task)
        self._ticker.add(0)
        return found

    def _note_divergence(self, learners: Learners, result: CohortResult, task: int, last: int) -> None:
        """A member that is not finite at the task's end diverged in its last step, unless an earlier loss said so."""
        finite = torch.isfinite(learners.params).all(dim=1).cpu().numpy()
        first_bad = learners.first_bad.cpu().numpy()
        first_bad = np.where((first_bad < 0) & ~finite, last, first_bad)
        new = (first_bad >= 0) & (result.diverged_task < 0)
        result.diverged_step[new] = first_bad[new]
        result.diverged_task[new] = task


def _rows_of(result: CohortResult, rows: list[int]) -> CohortResult:
    return replace(result, **{name: getattr(result, name)[rows] for name in CohortResult.ARRAYS})


class _Ticker:
    """Adds up member-steps and passes them on a few times a second."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._steps, self._last = progress, 0, time.monotonic()

    def add(self, steps: int) -> None:
        self._steps += steps
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._progress is not None:
            self._progress(self._steps)
        self._steps, self._last = 0, time.monotonic()
