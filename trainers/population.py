"""The protocol of a run: tasks, measurements, divergence; an engine does the arithmetic."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.capacity import split_to_fit
from trainers.checkpoints import EVERY, TRAINING, CheckpointOptions, Checkpoints, origin_of, restore
from trainers.cohort import LEARNING_CURVE_BATCHES, Architecture, Cohort, CohortResult, Learner
from trainers.engines import fastest_for, make_engine, one_thread
from trainers.engines.base import Engine, Learners
from trainers.footprint import bytes_of, check_images
from trainers.forks import Fork, steps_of
from trainers.methods.penalty import State
from trainers.methods.rules import JOINT
from trainers.numeric_path import NumericPath
from trainers.persistence.array_store import Arrays, fingerprint
from trainers.scenarios import CLASS
from trainers.streams.base import TaskStream
from trainers.streams.competing import scenario_of
from trainers.streams.union import union_of

Progress = Callable[[Mapping[int, int]], None]
"""Called a few times a second with the member-steps since the last call, by task, none while it tests; what it raises
stops the training.
"""

EngineOf = Callable[[Cohort, tuple[int, ...], TaskStream, Architecture, NumericPath], Engine]
"""What makes an engine, as `make_engine` does."""

Kept = Mapping[Learner, tuple[int, Arrays | None]]
"""The last task that learners are to go on after, and what was kept of it: None for untrained networks."""

REPORT_SECONDS = 0.25
CHECK_EVERY = 64  # steps at most between looks at whether every learner has diverged; fewer where they are slow

MLP = Architecture()


@dataclass(frozen=True)
class Training:
    """Stream, network and arithmetic of a training, and its storage."""

    stream: TaskStream
    architecture: Architecture = MLP
    path: NumericPath | None = None
    """The arithmetic to use; None for the fastest of this machine's CPU."""
    transfer: bool = True
    """Whether to measure what only FWT and LCA need: tasks not trained yet, and every task's first batches."""
    measure: tuple[int, int] | None = None
    """Tests inside tasks, (every so many steps, images of each task): on the current task and all earlier ones."""
    until: int | None = None
    """How many tasks are trained, the first ones of the stream; None for all. A run that is kept goes on from there."""
    last_steps: int | None = None
    """SGD steps of the last of these tasks, its first ones; None for all. The network is tested after them as at the
    end of a task; a run that is kept goes on from the task before, and steps of this one are taken anew.
    """
    folder: Path | None = None
    """Keeps first tasks that other cohorts share, and the last task of a run that is killed: a cache."""
    store: str | Path | None = None
    """Keeps runs instead of `folder`, for all machines: a folder or a URL of fsspec."""
    keep: str = TRAINING
    """What the store keeps: "training", each run's newest task until the training ends; "newest", that task until
    `Checkpoints.delete`; "all", every task until then, each of which is a fork point.
    """
    bytes_free: int | None = None
    """Memory that there is; None where only trying tells."""

    @property
    def trained_tasks(self) -> int:
        """Number of trained tasks. Raises ValueError where it is less than one, or more than the stream has."""
        tasks = len(self.stream.tasks)
        until = tasks if self.until is None else self.until
        if not 1 <= until <= tasks:
            raise ValueError(f"until must lie in 1…{tasks}, the tasks of the stream, got {until}")
        return until

    @property
    def whole_tasks(self) -> int:
        """Number of tasks that are trained to their ends; raises as `trained_tasks`."""
        return self.trained_tasks - (self.last_steps is not None)

    @property
    def chosen(self) -> NumericPath:
        """The arithmetic that is used."""
        return self.path or fastest_for(self.stream, self.architecture)

    def of(self, cohort: Cohort) -> "Training":
        """Returns the training of such a cohort: tasks shown together leave nothing for FWT, LCA and tests inside.

        A last task of which all steps are taken is not cut. Raises ValueError where there are fewer.
        """
        stream, apart = union_of(cohort.declared, cohort.shared, self.stream), cohort.declared.union is None
        for name, value in (("until", self.until), ("last_steps", self.last_steps)):
            if not apart and value is not None:
                raise ValueError(f"{cohort.declared.title} shows tasks together: {name} must be None, got {value}")
        last = self.last_steps
        if last is not None:
            steps = {steps_of(learner, stream)[self.trained_tasks - 1] for learner in cohort.learners}
            if not 1 <= last <= min(steps):
                raise ValueError(f"last_steps must lie in 1…{min(steps)}, the steps of the last task, got {last}")
            last = None if steps == {last} else last
        transfer, measure = self.transfer and apart, self.measure if apart else None
        return replace(self, stream=stream, transfer=transfer, measure=measure, last_steps=last)

    def checkpoints(self, cohort: Cohort) -> Checkpoints:
        """Returns the checkpoints of such a cohort. Raises ValueError as `CheckpointOptions`, and as `of`."""
        training = self.of(cohort)
        options = CheckpointOptions(self.folder, self.store, self.keep, training.whole_tasks)
        return Checkpoints(
            options, cohort, training.stream, self.architecture, self.chosen, training.transfer, training.measure
        )


def train_cohort(cohort: Cohort, training: Training, progress: Progress | None = None) -> CohortResult:
    """Trains every learner on the whole stream from a fresh network, and measures it on the way.

    A learner's result depends on the learner, the stream, the architecture and the numeric path alone; on a CPU it is
    bit-identical alone and in any cohort, but for all networks but perceptrons on the path that has them together.
    A run that was killed goes on from what was kept of it, a fork (`forks.fork`) from what was kept of its origin
    (`paths.train_path` does without). Learners that do not fit into memory together are trained in halves of the
    cohort, and the result says so. Raises MemoryError, with one line, when not even one fits, and ValueError where a
    fork has nothing to begin with.
    """
    checkpoints = training.checkpoints(cohort)
    check_forks(cohort, training)
    starts = {learner: checkpoint for learner in cohort.learners if (checkpoint := checkpoints.last(learner))}
    if lost := next(
        (learner for learner in cohort.learners if isinstance(learner, Fork) and learner not in starts), None
    ):
        raise ValueError(
            f"nothing that a machine like this one has kept after task {lost.after} of {lost.origin} "
            f"is in {training.store or training.folder or 'any store'}; train that with keep={EVERY!r} first"
        )
    return train_rest(cohort, training, checkpoints, starts, progress)


def check_forks(cohort: Cohort, training: Training) -> None:
    """Raises ValueError, in one line, where a fork has no task to train."""
    until = training.trained_tasks
    if late := next(
        (learner for learner in cohort.learners if isinstance(learner, Fork) and learner.after >= until - 1), None
    ):
        raise ValueError(f"a fork must come before the last of {until} tasks, got after={late.after}")


@one_thread()
def train_rest(
    cohort: Cohort,
    training: Training,
    checkpoints: Checkpoints,
    starts: Kept,
    progress: Progress | None = None,
    engine_of: EngineOf = make_engine,
) -> CohortResult:
    """Trains the remaining tasks of learners, as `train_cohort`, from the checkpoints `starts`."""
    training = training.of(cohort)
    stream, architecture, path, ticker = training.stream, training.architecture, training.chosen, _Ticker(progress)
    points = _points(cohort, training)
    result = CohortResult.empty(len(cohort.learners), len(stream.tasks), points)

    def train(task: int, rows: list[int]) -> CohortResult:
        part = cohort.part(rows)
        seeds = tuple(sorted({learner.seed for learner in part.learners}))
        with torch.no_grad(), engine_of(part, seeds, stream, architecture, path) as engine:
            run = _Run(engine, part, seeds, training, ticker, checkpoints, points)
            return run.train(
                task, [arrays for learner in part.learners if (arrays := starts.get(learner, (-1, None))[1])]
            )

    done = {learner: task for learner, (task, _) in starts.items()}
    groups = _in_lockstep(cohort, done, path.one_seed_at_a_time or not architecture.perceptron)
    free = training.bytes_free
    check_images(stream, path, free)
    parts = split_to_fit(groups, train, lambda rows: bytes_of(cohort.part(rows), stream, architecture, path), free)
    for rows, part, note in parts:
        for name in CohortResult.ARRAYS:
            getattr(result, name)[rows] = getattr(part, name)
        result.steps[rows] = [_steps_taken(cohort.learners[row], training) for row in rows]
        result = replace(result, saved=result.saved + part.saved, note=note or result.note)
    if training.keep == TRAINING and training.whole_tasks == len(stream.tasks):
        # Not part by part: a run that is killed in a later part goes on from the last task of every learner.
        checkpoints.delete(cohort.learners)
    ticker.flush()
    return result


def _steps_taken(learner: Learner, training: Training) -> int:
    *before, last = steps_of(learner, training.stream)[: training.trained_tasks]
    return sum(before) + (last if training.last_steps is None else training.last_steps)


def _points(cohort: Cohort, training: Training) -> int:
    """Returns the largest number of points inside tasks of a learner of the cohort."""
    if training.measure is None:
        return 0
    every, _ = training.measure
    return max(sum(-(-steps // every) for steps in steps_of(learner, training.stream)) for learner in cohort.learners)


def _in_lockstep(cohort: Cohort, done: Mapping[Learner, int], one_seed: bool) -> list[tuple[int, list[int]]]:
    """Returns (last task that is done, −1 for none; rows of the learners) of those that can be trained together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for row, learner in sorted(enumerate(cohort.learners), key=lambda pair: pair[1].seed):
        groups.setdefault((learner.seed if one_seed else -1, done.get(learner, -1)), []).append(row)
    return [(task, rows) for (_, task), rows in groups.items()]


def next_stride(stride: int, seconds: float) -> int:
    """Returns the number of steps before the next look, given that `stride` steps took `seconds`."""
    # No constant, with which slow networks told nothing for minutes. Twice the steps still fit between two reports.
    return min(2 * stride, CHECK_EVERY) if seconds < REPORT_SECONDS / 2 else max(stride // 2, 1)


class _Run:
    """Learners of some seeds that are trained in lockstep: those of a seed share data, order, memory and start."""

    def __init__(
        self,
        engine: Engine,
        cohort: Cohort,
        seeds: tuple[int, ...],
        training: Training,
        ticker: "_Ticker",
        checkpoints: Checkpoints,
        points: int,
    ) -> None:
        self._measure, self._points = training.measure, points
        self._point = 0  # the next row of `CohortResult.inside`
        self._engine, self._cohort, self._seeds = engine, cohort, seeds
        self._stream, self._tasks, self._transfer = training.stream, len(training.stream.tasks), training.transfer
        self._until, self._last_steps = training.trained_tasks, training.last_steps
        self._ticker, self._checkpoints = ticker, checkpoints
        self._anew = cohort.declared.union == JOINT
        self._stride = 1  # steps between two looks: as many as take a moment

    def train(self, done: int, starts: list[Arrays]) -> CohortResult:
        """Trains the learners after the task `done`, −1 for none, from their checkpoints."""
        engine = self._engine
        if done >= 0:
            learners, result = self._new_learners(engine.start(), self._cohort.learners)
            restore(starts, learners, result)
            self._point = _count_points(result)
            saved = sum(sum(steps_of(learner, self._stream)[: done + 1]) for learner in self._cohort.learners)
            # Nothing is trained, but the memory has to hold what it held then.
            for task in range(0 if self._anew else done + 1):
                engine.load_task(task)
                engine.remember(task)
        elif self._anew:
            (learners, result), saved = self._new_learners(engine.start(), self._cohort.learners), 0
        else:
            done = 0
            learners, result, saved = self._first_task()
            self._checkpoints.save(self._cohort.learners, 0, learners, result)
        for task in range(done + 1, self._until):
            if self._anew and not self._stream.size(self._seeds[0], self._stream.tasks[task]):
                continue
            if self._anew:
                learners, _ = self._new_learners(engine.start(), self._cohort.learners)
            self._load_task(task)
            self._train_task(learners, result, task)
            self._end_task(learners, task)
            self._checkpoints.save(self._cohort.learners, task, learners, result)
        for row, final in enumerate(learners.params.cpu().numpy()):
            result.params[row], result.fingerprints[row] = final, fingerprint(final)
        for row, averages in enumerate(learners.state.get("statistics", torch.empty(0)).cpu().numpy()):
            result.statistics[row] = averages
        return replace(result, saved=saved)

    def _first_task(self) -> tuple[Learners, CohortResult, int]:
        """Returns (learners after the first task, their measurements, steps that sharing it has saved).

        It does not depend on ε or λ: it is trained once for each seed and learning rate.
        """
        engine, start = self._engine, self._engine.start()
        of_each = {origin_of(learner): learner for learner in self._cohort.learners}
        origins = sorted(of_each)
        learners, result = self._new_learners(start, [of_each[origin] for origin in origins])
        self._load_task(0)
        stored = [arrays for origin in origins if (arrays := self._checkpoints.first(origin))]
        rows = [origins.index(origin_of(learner)) for learner in self._cohort.learners]
        saved = len(rows)
        if len(stored) == len(origins):
            restore(stored, learners, result)
            self._point = _count_points(result)
        else:
            self._train_task(learners, result, 0)
            self._checkpoints.save_first(origins, learners, result)
            saved -= len(origins)
        # Before the learners part: what is found at the end of the task is the same for all that have shared it.
        self._end_task(learners, 0)
        state = {name: array[rows] for name, array in learners.state.items()}
        forked = self._learners(self._cohort.learners, learners.params[rows], state)
        result = replace(result, **{name: getattr(result, name)[rows] for name in CohortResult.ARRAYS})
        return forked, result, saved * engine.steps

    def _new_learners(self, start: Tensor, chosen: Sequence[Learner]) -> tuple[Learners, CohortResult]:
        """Returns (learners with new networks, their result without measurements)."""
        params = start[self._seed(chosen, start)]
        learners = self._learners(chosen, params, self._engine.state(params))
        return learners, CohortResult.empty(len(chosen), self._tasks, self._points)

    def _learners(self, chosen: Sequence[Learner], params: Tensor, state: State) -> Learners:
        values = {
            name: [learner.hyperparameters.get(name) for learner in chosen]
            for name in self._cohort.declared.per_learner
        }
        return Learners.of(params, self._seed(chosen, params), values, state)

    def _seed(self, chosen: Sequence[Learner], beside: Tensor) -> Tensor:
        """Returns [M], indices into the engine's seeds."""
        return torch.tensor([self._seeds.index(learner.seed) for learner in chosen], device=beside.device)

    def _load_task(self, task: int) -> None:
        """Loads a task that is to be trained."""
        self._engine.load_task(task)
        if task == self._until - 1 and self._last_steps is not None:
            self._engine.cut(self._last_steps)

    def _end_task(self, learners: Learners, task: int) -> None:
        """Applies the method's change between two tasks, unless the run is cut inside the first of them."""
        if task == self._until - 1 and self._last_steps is not None:
            return
        if task < self._tasks - 1:
            self._engine.finish(learners, task == 0)
        self._engine.remember(task)

    def _train_task(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Trains the loaded task and measures it, into the rows of `result`."""
        engine = self._engine
        self._measure_before(learners, result, task)
        learners.reset()
        done = 0
        while done < engine.steps:
            # One by one while the learning curve has points: each is tested after a single step. It is that of the
            # first pass: examples that are shown again are no new ones.
            curve = self._transfer and done < min(LEARNING_CURVE_BATCHES, engine.first_pass)
            last = min(done + (1 if curve else self._stride), engine.steps, self._next_point(done))
            started = time.monotonic()
            engine.train(learners, done, last)
            bad = learners.first_bad.cpu().numpy() >= 0
            self._stride = next_stride(self._stride, time.monotonic() - started)
            self._ticker.add(task, (last - done) * len(learners.params))
            done = last
            if curve:
                result.within[:, task, done] = np.where(bad, np.nan, engine.accuracy(learners, task))
            if done == min(self._next_point(last - 1), engine.steps):
                self._test_inside(learners, result, task, done, bad)
            if bad.all():
                break
        self._note_divergence(learners, result, task, done - 1)
        if engine.reference:
            result.violations[:, task] = (learners.projected / done).cpu()
        self._measure_after(learners, result, task)

    def _next_point(self, done: int) -> int:
        """Returns the step after which the learners are tested next inside a task; without such tests the task's end.

        The end of a task is a point, too.
        """
        return self._engine.steps if self._measure is None else done + self._measure[0] - done % self._measure[0]

    def _test_inside(
        self, learners: Learners, result: CohortResult, task: int, done: int, bad: NDArray[np.bool_]
    ) -> None:
        """Writes the next point: accuracies on part of every task seen, NaN of learners that have diverged."""
        if self._measure is None:
            return
        row = result.inside[:, self._point]
        row[:, :2] = np.where(bad[:, None], np.nan, (task, done))  # as of a learner that is trained alone
        for tested in range(task + 1):
            accuracies = self._engine.accuracy(learners, tested, self._measure[1])
            row[:, 2 + tested] = np.where(bad, np.nan, accuracies)
            self._ticker.add(task, 0)
        self._point += 1

    def _measure_before(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Measures the start of the learning curve and, for FWT, the untrained network on every task."""
        if not self._transfer:
            return
        if task:
            result.within[:, task, 0] = result.accuracies[:, task - 1, task]
            return
        result.within[:, 0, 0] = self._test(learners, 0)
        # A class-incremental test depends on the classes seen so far: untrained networks have no other task's accuracy.
        if scenario_of(self._stream) != CLASS:
            result.initial[:, 0] = result.within[:, 0, 0]
            for tested in range(1, self._tasks):
                result.initial[:, tested] = self._test(learners, tested)

    def _measure_after(self, learners: Learners, result: CohortResult, task: int) -> None:
        """Measures accuracy on every task seen, and for FWT and LCA on the next one before its first step."""
        for tested in range(min(task + 2, self._tasks) if self._transfer else task + 1):
            result.accuracies[:, task, tested] = self._test(learners, tested)
        diverged = result.diverged_task >= 0
        result.accuracies[diverged, task] = np.nan
        result.violations[diverged, task] = np.nan

    def _test(self, learners: Learners, task: int) -> NDArray[np.float64]:
        """Returns the engine's accuracies, and reports progress.

        The caller can stop the training there, also between many tests in a row.
        """
        accuracies = self._engine.accuracy(learners, task)
        self._ticker.add(task, 0)
        return accuracies

    def _note_divergence(self, learners: Learners, result: CohortResult, task: int, last: int) -> None:
        """Records the first step at which each learner has diverged.

        A learner that is not finite at the task's end diverged in its last step, unless an earlier loss said so.
        """
        finite = torch.isfinite(learners.params).all(dim=1).cpu().numpy()
        first_bad = learners.first_bad.cpu().numpy()
        first_bad = np.where((first_bad < 0) & ~finite, last, first_bad)
        new = (first_bad >= 0) & (result.diverged_task < 0)
        result.diverged_step[new], result.diverged_task[new] = first_bad[new], task


def _count_points(result: CohortResult) -> int:
    """Returns the largest number of points inside tasks that a learner has."""
    return int((~np.isnan(result.inside[:, :, 0])).sum(axis=1).max(initial=0))


class _Ticker:
    """Adds up steps and passes them on a few times a second."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._steps, self._last = progress, Counter[int](), time.monotonic()

    def add(self, task: int, steps: int) -> None:
        self._steps[task] += steps
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._progress is not None:
            self._progress(self._steps)
        self._steps, self._last = Counter(), time.monotonic()
