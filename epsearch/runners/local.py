"""Trains in this process, one thread a cohort; torch releases the interpreter's lock while it computes."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from typing import Self

from epsearch.failures.errors import Interrupted, UsageError
from epsearch.failures.lines import cohort_failure
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, execute
from epsearch.machine import usable_cores
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study


def local_slots(study: Study) -> int:
    """How many cohorts this machine trains at a time.

    One a core that this process may use, or the study's own number; one GPU takes one cohort at a time.
    """
    if study.workers is not None:
        return study.workers
    return 1 if study.device == "cuda" else usable_cores()


class Threads:
    """Trains jobs in threads of this process; the loop is looked at by the one thread that asks and tells.

    workers: jobs at a time; niceness: of the threads. What runs ends at its next report once this is left by an error;
    what waits does not begin.
    """

    def __init__(self, workers: int, monitor: Monitor, niceness: int = 0) -> None:
        self.workers, self._monitor = workers, monitor
        self._pool, self._stop = ThreadPoolExecutor(workers, initializer=_stand_back, initargs=(niceness,)), Event()
        self._running: dict[Future[JobResult], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether any job is trained here."""
        return bool(self._running)

    @property
    def free(self) -> int:
        """How many more jobs may be begun, here or elsewhere."""
        return self.workers - len(self._running)

    def waiting(self, jobs: Sequence[Job]) -> list[Job]:
        """Those that no thread trains."""
        return [job for job in jobs if job.number not in self._running.values()]

    def begin(self, jobs: Sequence[Job]) -> None:
        """Begins as many of them as there are threads free."""
        for job in self.waiting(jobs)[: self.free]:
            self._running[self._pool.submit(execute, job, self._progress)] = job.number

    def tell(self, loop: Loop, seconds: float | None = None) -> None:
        """Tells the loop what has been trained; waits for that, at most so long where that is given.

        Raises what is not the training's: that the user stopped it, that nobody reads on; and what the loop raises.
        """
        if not self._running:
            return
        for future in wait(self._running, seconds, FIRST_COMPLETED).done:
            loop.tell([_result(future, self._running.pop(future))])
            self._monitor.update(loop)

    def _progress(self, steps: int, work: float) -> None:
        if self._stop.is_set() or self._monitor.stopping:
            raise Interrupted
        self._monitor.steps(steps, work)


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains until the study is done; see `tune.ready`, whose place it takes."""
    yield _run


def _run(loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; what is trained is stored as it comes.

    Raises Interrupted on Ctrl-C, or where the listener wants to stop, after the running cohorts have stopped; and what
    the loop raises: TrainingFailed for cohorts that could not be trained, once all others are.
    """
    with stopped_by_ctrl_c(), training(loop, monitor) as threads:
        while not loop.done:
            if jobs := open_jobs(loop, monitor):
                threads.begin(jobs)
                threads.tell(loop)


def training(loop: Loop, monitor: Monitor) -> Threads:
    """The threads that train a loop, as many as this machine has for its study."""
    loop.workers = local_slots(loop.study)
    return Threads(loop.workers, monitor, loop.study.niceness)


def open_jobs(loop: Loop, monitor: Monitor) -> list[Job]:
    """What the loop has to train; where that is nothing yet, it has waited a moment. Raises Interrupted."""
    # Asked here, too: a job that is about to begin would train until its first report.
    if monitor.stopping:
        raise Interrupted
    if not (jobs := monitor.jobs(loop)):
        monitor.pause(loop)
    return jobs


@contextmanager
def stopped_by_ctrl_c() -> Iterator[None]:
    """Raises Interrupted in the place of KeyboardInterrupt."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted from None


def _stand_back(niceness: int) -> None:
    """Gives this thread alone, and the processes that it will start, a higher niceness."""
    if niceness and sys.platform == "linux":  # elsewhere it is that of the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + niceness)


def _result(future: Future[JobResult], number: int) -> JobResult:
    """What came of a cohort. Raises what is not the training's: that the user stopped it, that nobody reads on."""
    try:
        return future.result()
    except (Interrupted, UsageError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001  told by the loop, with the job
        return JobResult(number, None, **cohort_failure(error))
