"""Trains on all GPUs of this machine: a process of its own on each, so that a GPU that fails ends no other's work.

What a process may see is said by CUDA_VISIBLE_DEVICES. Cohorts are cut by what fits on each GPU (`Loop.fitting`).
"""

import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import IO, Any

from epsearch.failures.errors import Interrupted, Unavailable
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, Progress, decode
from epsearch.machine import VISIBLE, visible_gpus
from epsearch.operating_system import add_niceness, new_group
from epsearch.runners import local
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study
from results.labels import count_text
from trainers.cohort import Cohort

WORKER = ["-P", "-m", "epsearch.runners.gpu_worker"]  # arguments of Python
ATTEMPTS = 3  # of a cohort whose process dies
POLL_SECONDS = 0.5  # between two looks at lines for the user
START_SECONDS = 300.0  # at most: a driver that hangs is a GPU that is left out
GIB = 2**30


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains a loop to its end, see `tune.ready`."""
    yield _run


def _run(loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; raises as `local` does, and Unavailable where no GPU can be used."""
    with local.as_interrupted(), ExitStack() as stack:
        gpus = _Gpus()
        stack.callback(gpus.end)
        gpus.begin(loop)
        threads = stack.enter_context(local.Threads(loop.workers, monitor, loop.study.niceness, gpus.train))
        stack.callback(gpus.stop)  # before the threads, which may wait for one that reports nothing
        while not loop.done:
            gpus.pass_lines(loop)
            if jobs := local.open_jobs(loop, monitor):
                threads.begin(jobs)
                threads.collect(loop, POLL_SECONDS)
        gpus.pass_lines(loop)


class _Process:
    """A process that trains on one GPU, or one of several that share it.

    token: what CUDA_VISIBLE_DEVICES is for it; share: of the GPU's memory.
    """

    def __init__(self, token: str, share: float = 1.0) -> None:
        self.token, self.share = token, share
        self.name, self.free, self.total = "", 0, 0  # bytes, of the GPU
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, *WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | {VISIBLE: token},
            **new_group(),
        )

    def begin(self) -> None:
        """Waits for its first answer, the facts of its GPU. Raises EOFError, with one line, where it cannot start."""
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        try:
            self.name, self.free, self.total = self._answer()
        except EOFError:
            self.end()
            raise
        finally:
            timer.cancel()

    def __str__(self) -> str:
        return f"GPU {self.token} ({self.name})"

    @property
    def room(self) -> int:
        """Bytes that cohorts may take, of those that were free at its start."""
        return int(self.free * self.share)

    def train(self, job: Job, progress: Progress) -> dict[str, Any]:
        """Returns the last answer of a job. Raises EOFError, and what `progress` raises; it has been ended then."""
        try:
            self._ask((job, self.share))
            while True:
                answer: dict[str, Any] = self._answer()
                progress(answer.pop("steps", 0), answer.pop("work", 0.0))
                if answer:
                    return answer
        except BaseException:
            self.end()
            raise

    def kill(self) -> None:
        """Ends it at once, from any thread; one that waits for its answer gets EOFError."""
        self._process.kill()

    def end(self) -> None:
        """Ends it, and gives up what is held of it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(OSError, AttributeError):
                stream.close()  # type: ignore[union-attr]

    def _ask(self, what: tuple[Job, float]) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()
        except OSError:
            raise EOFError(self._last_words()) from None

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)  # of our own process
        except (EOFError, OSError, pickle.UnpicklingError):
            raise EOFError(self._last_words()) from None

    def _last_words(self) -> str:
        """Returns how it ended, in words: the last line that it printed, or its status."""
        self._process.kill()
        status = self._process.wait()
        self._errors.seek(0)
        printed = self._errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(printed) if line.strip()), f"its status was {status}")


class _Gpus:
    """The processes on the GPUs of this machine that can train a study.

    `train` is called by one thread for each; the lines that it has for the user wait for the thread of the loop.
    """

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._changed, self._deaths, self._ended = threading.Condition(), Counter[int](), False
        self._ever: list[_Process] = []  # also those that are left out, or have not answered yet
        self._all: list[_Process] = []
        self._free: list[_Process] = []

    def begin(self, loop: Loop) -> None:
        """Starts the processes; sets the loop's workers and `fitting`. Raises Unavailable where no GPU can be used."""
        tokens, needed = visible_gpus(), _largest(loop)
        # Threads have the nice value that their processes are to have.
        with ThreadPoolExecutor(len(tokens), initializer=add_niceness, initargs=(loop.study.niceness,)) as pool:
            try:
                self._all = self._with_room(self._start_all(pool, ((token, 1.0) for token in tokens)), needed)
                if not self._all:
                    raise Unavailable(f"no GPU can be used; {self._lines.get()}")
                workers = loop.study.workers or len(self._all)
                while len(self._all) > workers:
                    self._all.pop().end()
                self._all += self._start_all(pool, self._more(workers, needed))
            except BaseException:
                self.stop()  # the threads of the pool wait for them
                raise
        self._free = list(self._all)
        loop.workers, loop.fitting = len(self._all), self._fitting
        names = Counter(process.name for process in self._all)
        kinds = ", ".join(f"{count} × {name}" for name, count in names.items())
        self._lines.put(f"trained by {count_text(len(self._all), 'worker')} on GPUs: {kinds}")

    def stop(self) -> None:
        """Kills the processes, and lets none begin; what they train is not trained again."""
        with self._changed:
            self._ended = True
            for process in self._ever:
                process.kill()
            self._changed.notify_all()

    def end(self) -> None:
        """Gives up what is held of them, when no thread trains any more."""
        for process in self._ever:
            process.end()

    def pass_lines(self, loop: Loop) -> None:
        """Passes waiting lines to the user."""
        with suppress(queue.Empty):
            while True:
                loop.notify(self._lines.get_nowait())

    def train(self, job: Job, progress: Progress) -> JobResult:
        """Trains a job on a free GPU, as `jobs.execute`; on another one where the first is at fault."""
        while True:
            process = self._take(job)
            if process is None:
                return JobResult(job.number, None, error=f"no GPU is left ({job.stage})", stops=True)
            try:
                answer = process.train(job, progress)
            except EOFError as death:
                if self._ended:
                    raise Interrupted from None
                self._deaths[job.number] += 1
                self._replace(process)
                if self._deaths[job.number] == ATTEMPTS:
                    error = f"its process died, in the last of {ATTEMPTS} attempts ({job.stage}): {death}"
                    return JobResult(job.number, None, error=error)
                self._lines.put(f"the process of {process} died ({death}): its cohort is trained again")
                continue
            except BaseException:  # the training ends
                self._leave_out(process)
                raise
            if answer.pop("of_this_gpu", False) and self._spares(process):
                process.end()
                self._lines.put(f"{process} is left out: {answer['error']}")
                continue
            self._give_back(process)
            value = answer.pop("value", None)
            return JobResult(job.number, None if value is None else decode(value), **answer)

    def _take(self, job: Job) -> _Process | None:
        """Returns the smallest free GPU on which a job fits, else the largest, which trains it in parts; None if none.

        Waits until one is free. Raises Interrupted at the end of the training.
        """
        needed = _bytes(job)
        with self._changed:
            # Nothing is reported meanwhile: the time of a cohort begins with its first report.
            self._changed.wait_for(lambda: self._ended or self._free or not self._all)
            if self._ended:
                raise Interrupted
            if not self._all:
                return None
            by_room = sorted(self._free, key=lambda process: process.room)
            choice = next((process for process in by_room if process.room >= needed), by_room[-1])
            self._free.remove(choice)
            return choice

    def _give_back(self, process: _Process) -> None:
        with self._changed:
            self._free.append(process)
            self._changed.notify_all()

    def _leave_out(self, process: _Process) -> None:
        with self._changed:
            self._all.remove(process)
            self._changed.notify_all()

    def _spares(self, process: _Process) -> bool:
        """Leaves one out; returns False where it is the last."""
        with self._changed:  # others may be left out at the same time
            if len(self._all) > 1:
                self._leave_out(process)
                return True
        return False

    def _replace(self, dead: _Process) -> None:
        """Starts a new process in the place of one that died."""
        try:
            if (fresh := self._start(dead.token, dead.share)) is not None:
                with self._changed:
                    self._all.append(fresh)
                self._give_back(fresh)
        finally:  # also where the system starts no process: nobody may wait for this one
            self._leave_out(dead)

    def _start_all(self, pool: ThreadPoolExecutor, places: Iterable[tuple[str, float]]) -> list[_Process]:
        """Starts processes, with (token, share) each, at the same time; returns those that have begun."""
        return [process for process in pool.map(lambda place: self._start(*place), places) if process is not None]

    def _start(self, token: str, share: float) -> _Process | None:
        """Starts a process, and waits until it has begun; returns None where it does not."""
        with self._changed:
            if self._ended:
                return None
            process = _Process(token, share)
            self._ever.append(process)
        try:
            process.begin()
        except EOFError as death:
            self._lines.put(f"GPU {token} is left out: its process does not start ({death})")
            return None
        return process

    def _with_room(self, processes: Sequence[_Process], needed: int) -> list[_Process]:
        """Returns those on which a member of so many bytes fits, the largest first."""
        for process in processes:
            if process.room < needed:
                process.end()
                self._lines.put(
                    f"{process} is left out: a member needs {needed / GIB:.1f} GiB, "
                    f"{process.free / GIB:.1f} of {process.total / GIB:.1f} may be taken"
                )
        return sorted((process for process in processes if process.room >= needed), key=lambda process: -process.room)

    def _more(self, workers: int, needed: int) -> Iterator[tuple[str, float]]:
        """Yields (token, share) of further processes, for `workers` in all, as far as members of `needed` bytes fit."""
        count, rest = len(self._all), workers - len(self._all)
        for place, process in enumerate(self._all):
            more = max(0, min(-(-rest // (count - place)), process.room // max(1, needed) - 1))
            rest -= more
            process.share = 1 / (1 + more)
            yield from [(process.token, process.share)] * more

    def _fitting(self, job: Job) -> list[int]:
        """Returns how many of a job's first members fit on each GPU."""
        learners = job.cohort.learners

        @cache
        def bytes_needed(count: int) -> int:
            return _bytes(replace(job, cohort=Cohort(learners[:count])))

        with self._changed:
            rooms = [process.room for process in self._all]
        return [bisect_right(range(1, len(learners) + 1), room, key=bytes_needed) for room in rooms]


def _bytes(job: Job) -> int:
    """Returns the bytes that a job needs; 0 for plug-in trainers, whose needs nobody knows."""
    if job.limits is not None:
        return 0
    from trainers.footprint import bytes_of
    from trainers.numeric_path import NumericPath

    return bytes_of(job.cohort, job.stream.open(), job.architecture, NumericPath.parse(job.path))


def _largest(loop: Loop) -> int:
    """Returns the bytes of the largest member of the next jobs."""
    jobs = loop.upcoming(1)
    return max((_bytes(replace(job, cohort=Cohort(job.cohort.learners[:1]))) for job in jobs), default=0)
