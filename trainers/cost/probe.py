"""Measures the training speed of cohorts on this machine.

For a few seconds, before a study that takes hours. Every thread opens a cohort as `train_cohort` does and takes the
steps of one later task with the engine that would train it, at the same time as the others. The tasks before are
skipped: the memory holds what it would hold, but networks are untrained. That matters to the time of a step with GEM
alone, whose quadratic program is solved more often later. All threads train the same learners. Steps begin at the
task's first one again, with the parameters from before, when the task ends or diverges. Nothing is written, and no
result is kept.

What is timed are steps alone: not opening, not compiling, not the tests, whose FLOP `flops.run_flop` counts. On a CPU
steps are timed by the processor time that their thread had, and what part of the wall time that was is told beside:
what else the machine does meanwhile may be over in a moment, or not.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

from trainers.checkpoints import TRAINING
from trainers.cohort import Architecture, Cohort
from trainers.cost.flops import training_flop, works_of
from trainers.engines import make_engine
from trainers.engines.base import Engine, Learners
from trainers.forks import steps_of
from trainers.population import Training, next_stride, train_rest
from trainers.streams.base import TaskStream

WINDOWS = 8  # at most
FEWEST = 2  # calls of the engine in each thread, so that there are two windows
TOO_SLOW = 4  # times the seconds asked for, after which one call will do
now = time.perf_counter  # a clock in seconds; tests put one of their own here
CLOCKS = {
    "cpu": time.thread_time,
    "cuda": time.perf_counter,
    "mps": time.perf_counter,
}  # by which steps are timed; a GPU's are not the thread's
WARM_UP = {"cpu": 1, "cuda": 64, "mps": 8}  # steps: compiling, first use of libraries; on a GPU the recording of graphs


class EngineCall(NamedTuple):
    """A call of the engine."""

    begin: float
    """Seconds of a clock that its thread's calls have in common; from the first of them on, it is at work."""
    end: float
    """Seconds of the same clock."""
    steps: int
    """Its steps of one learner, summed over the learners."""
    wall: float = 0.0
    """Seconds of wall time that it took."""


class Rates(NamedTuple):
    """Rates of the steps of a task."""

    windows: tuple[float, ...]
    """Steps of one learner per second of all threads together, one rate of each window; windows are equally long. On a
    CPU, a second in which each thread has a core of its own."""
    share: float
    """Part of the wall time in which the threads had a core of their own; 1 on a GPU."""
    task: int
    """The stream's task, counted from 0, whose steps were taken."""
    learners: int
    """Learners trained in lockstep by each thread, as many as fit."""
    threads: int
    """At a time."""
    seconds: float
    """That all windows lasted together."""


class _Ended(Exception):
    """The measurement has ended; not an error that training knows how to handle."""


def measure(cohort: Cohort, training: Training, seconds: float, at_once: int, task: int | None = None) -> Rates:
    """Trains `at_once` such cohorts for about `seconds`, besides opening them; nothing goes into a folder.

    task: counted from 0; by default the later one whose steps have the FLOP nearest to the mean of all later tasks'.
    0 is the first, which learners of a seed share and have no reference batch in. Takes longer where steps are slow:
    each thread takes two, after one to warm up; one where they last longer than TOO_SLOW times `seconds`. Raises what
    training raises, in any thread.
    """
    if seconds <= 0 or at_once < 1:
        raise ValueError(f"seconds must be > 0 and at_once >= 1, got {seconds} and {at_once}")
    chosen = replace(training, path=training.chosen, transfer=False, folder=None, store=None, keep=TRAINING)
    number = steady_task(cohort, chosen.stream, chosen.architecture) if task is None else task
    clock = _Clock(seconds, at_once)
    # Closed before the pool, which waits for its threads: one that fails must not leave others waiting.
    with ThreadPoolExecutor(at_once, "probe") as pool, closing(clock):
        for future in [pool.submit(_train, cohort, chosen, number, clock, thread) for thread in range(at_once)]:
            future.result()
    span, windows = rates_of(clock.calls)
    return Rates(windows, share_of(clock.calls), number, clock.learners, at_once, span)


def steady_task(cohort: Cohort, stream: TaskStream, architecture: Architecture) -> int:
    """Returns the later task whose steps have the FLOP nearest to the mean of all later ones'.

    Tasks are counted from 0; 0 where there is no later one.
    """
    learner = cohort.learners[0]
    training, steps = training_flop(learner, stream, works_of(learner, stream, architecture)), steps_of(learner, stream)
    later = [task for task in range(1, len(steps)) if steps[task]]  # joint training may train at some tasks alone
    if not later:
        return 0
    mean = sum(training[1:]) / sum(steps[1:])
    return min(later, key=lambda task: abs(training[task] / steps[task] - mean))


def rates_of(threads: Sequence[Sequence[EngineCall]]) -> tuple[float, tuple[float, ...]]:
    """Returns (seconds, rates of windows) of the time in which all threads were at work, by the calls of each.

    So many windows that each holds as much time as a call of every thread takes; a call's steps are spread evenly.

    >>> rates_of([[EngineCall(0, 2, 10), EngineCall(2, 4, 30)], [EngineCall(0, 2, 20), EngineCall(2, 4, 20)]])
    (4, (15.0, 25.0))
    """
    # From the last thread's first call to the end of the one that stops first: all are at work.
    begin, end = max(calls[0].begin for calls in threads), min(calls[-1].end for calls in threads)
    count = max(1, min(WINDOWS, *(len(calls) for calls in threads)))
    length = (end - begin) / count
    windows = [(begin + length * number, begin + length * (number + 1)) for number in range(count)]
    calls = list(itertools.chain(*threads))
    return end - begin, tuple(sum(_part(call, *window) for call in calls) / length for window in windows)


def share_of(threads: Sequence[Sequence[EngineCall]]) -> float:
    """Returns the time that calls took by their own clock, as a part of their wall time; at most 1.

    >>> share_of([[EngineCall(0, 1, 10, wall=2.0)], [EngineCall(0, 2, 10, wall=2.0)]])
    0.75
    """
    calls = list(itertools.chain(*threads))
    wall = sum(call.wall for call in calls)
    return min(1.0, sum(call.end - call.begin for call in calls) / wall) if wall else 1.0


def _part(call: EngineCall, begin: float, end: float) -> float:
    """Returns the number of a call's steps within a window."""
    shared = max(0.0, min(call.end, end) - max(call.begin, begin))
    return call.steps * shared / (call.end - call.begin)


class _Clock:
    """State shared by threads that measure together.

    learners: of the cohort's part that each thread trains.
    """

    def __init__(self, seconds: float, threads: int) -> None:
        self.calls: list[list[EngineCall]] = [[] for _ in range(threads)]
        self.learners = 0
        self._seconds = seconds
        self._ready, self._waited = threading.Barrier(threads), set[int]()

    def close(self) -> None:
        """Stops all threads: nobody shall wait for anybody."""
        self._ready.abort()

    def start(self, thread: int) -> float:
        """Waits until all threads are warm, once for each: one that opens a smaller cohort begins again alone."""
        self.calls[thread].clear()
        if thread not in self._waited:
            self._waited.add(thread)
            try:
                self._ready.wait()
            except threading.BrokenBarrierError:
                raise _Ended from None
        return now()

    def over(self, begin: float) -> bool:
        """Returns whether a thread that began then may stop: all have seen enough, or it has waited too long."""
        spent, fewest = now() - begin, min(map(len, self.calls))
        enough = fewest >= FEWEST or (fewest >= 1 and spent >= TOO_SLOW * self._seconds)
        return self._ready.broken or (spent >= self._seconds and enough)


def _train(cohort: Cohort, training: Training, task: int, clock: _Clock, thread: int) -> None:
    """Opens a cohort at the task and measures until the clock says that it is over."""

    def engine_of(*what: Any) -> Engine:
        return cast(Engine, _Measured(make_engine(*what), training.chosen.device, clock, thread))

    starts = {learner: (task - 1, None) for learner in cohort.learners if task}
    try:
        train_rest(cohort, training, training.checkpoints(cohort), starts, engine_of=engine_of)
    except _Ended:
        return
    except BaseException:
        clock.close()
        raise


class _Measured:
    """An engine that repeats the first task which it is to train, without tests, and then ends the training."""

    def __init__(self, engine: Engine, device: str, clock: _Clock, thread: int) -> None:
        self._engine, self._warm_up, self._own = engine, WARM_UP[device], CLOCKS[device]
        self._clock, self._thread = clock, thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._engine.close()

    def train(self, learners: Learners, first: int, last: int) -> None:
        """Takes steps, in calls that grow as those of the training loop do, until time is over."""
        clock, steps, count = self._clock, self._engine.steps, len(learners.params)
        arrays = [learners.params, *learners.state.values()]
        start = [array.clone() for array in arrays]
        self._engine.train(learners, 0, min(self._warm_up, steps))
        at, stride, bad, clock.learners = steps, 1, False, count
        begin, started = clock.start(self._thread), self._own()
        while not clock.over(begin):
            if at == steps or bad:
                at = 0
                learners.reset()
                for array, values in zip(arrays, start, strict=True):
                    # In place: recorded graphs go on reading these addresses.
                    array.copy_(values)
            until, wall, own = min(at + stride, steps), now(), self._own()
            self._engine.train(learners, at, until)
            # Reading it waits for the device, as the training loop does: the steps have ended then.
            bad = bool((learners.first_bad.cpu() >= 0).all())
            wall = now() - wall
            clock.calls[self._thread].append(
                EngineCall(own - started, self._own() - started, (until - at) * count, wall)
            )
            at, stride = until, next_stride(stride, wall)
        raise _Ended
