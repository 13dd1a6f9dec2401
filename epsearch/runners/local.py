"""Trains in threads of this process, one per cohort: the arithmetic releases Python's lock."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Self

from epsearch.failures.errors import Interrupted, UsageError
from epsearch.failures.lines import cohort_failure
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, Progress, execute
from epsearch.machine import usable_cores, visible_gpus
from epsearch.operating_system import add_niceness
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study


def local_slots(study: Study) -> int:
    """Returns the number of cohorts that this machine trains at a time.

    The study's `workers` if set; otherwise one per usable core, or one per GPU.
    """
    if study.workers is not None:
        return study.workers
    return usable_cores() if study.device == "cpu" else max(1, len(visible_gpus()))


class Threads:
    """Threads that train jobs; only the thread that made them calls the loop.

    workers: jobs at a time; niceness: of the threads; train: trains a job, `execute` by default. If the block is left
    by an error, running jobs end at their next report, and others do not begin; those that finish all the same are
    stored where the training was stopped.
    """

    def __init__(
        self,
        workers: int,
        monitor: Monitor,
        niceness: int = 0,
        train: Callable[[Job, Progress], JobResult] | None = None,
    ) -> None:
        self.workers, self._monitor, self._train = workers, monitor, train or execute
        self._pool, self._stop = ThreadPoolExecutor(workers, initializer=add_niceness, initargs=(niceness,)), Event()
        self._running: dict[Future[JobResult], int] = {}
        self._loop: Loop | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        if kind is not None and issubclass(kind, (Interrupted, KeyboardInterrupt)):
            self._store_finished()

    def _store_finished(self) -> None:
        """Stores what ended, and was not collected, when the training was stopped: it would be trained again."""
        for future in self._running:
            if self._loop is not None and not future.cancelled() and future.exception() is None:
                self._hand_over(self._loop, future.result())

    def _hand_over(self, loop: Loop, result: JobResult) -> None:
        loop.tell([result])
        self._monitor.update(loop, [result.number])

    @property
    def busy(self) -> bool:
        """True while a job is trained."""
        return bool(self._running)

    @property
    def free(self) -> int:
        """Number of free workers."""
        return self.workers - len(self._running)

    def waiting(self, jobs: Sequence[Job]) -> list[Job]:
        """Returns the jobs that no thread trains."""
        return [job for job in jobs if job.number not in self._running.values()]

    def begin(self, jobs: Sequence[Job]) -> None:
        """Begins as many jobs as there are free threads."""
        for job in self.waiting(jobs)[: self.free]:
            self._running[self._pool.submit(self._train, job, partial(self._progress, job))] = job.number

    def collect(self, loop: Loop, seconds: float | None = None) -> None:
        """Hands results to the loop; waits up to `seconds` for one, None for no limit.

        Raises Interrupted, UsageError and BrokenPipeError of a job, and the errors of the loop.
        """
        if not self._running:
            return
        self._loop = loop
        for future in wait(self._running, seconds, FIRST_COMPLETED).done:
            self._hand_over(loop, _result(future, self._running.pop(future)))

    def _progress(self, job: Job, steps: int, work: float) -> None:
        if self._stop.is_set() or self._monitor.stopping:
            raise self._monitor.interruption()
        self._monitor.steps(steps, work, job)


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains a loop to its end, see `tune.ready`."""
    yield _run


def _run(loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; stores each cohort as it ends.

    Raises Interrupted on Ctrl-C, or if the listener ends the training, after the running cohorts have stopped; and the
    errors of the loop: TrainingFailed for cohorts that could not be trained, after all others.
    """
    with as_interrupted(), training(loop, monitor) as threads:
        while not loop.done:
            if jobs := open_jobs(loop, monitor):
                threads.begin(jobs)
                threads.collect(loop)


def training(loop: Loop, monitor: Monitor) -> Threads:
    """Returns threads to train a loop: as many as `local_slots` on a CPU; one on a GPU, unless the study sets more."""
    study = loop.study
    # This process uses the first of several GPUs alone, also where a study of all of them is verified.
    loop.workers = local_slots(study) if study.device == "cpu" else study.workers or 1
    return Threads(loop.workers, monitor, study.niceness)


def open_jobs(loop: Loop, monitor: Monitor) -> list[Job]:
    """Returns the jobs of a loop; waits a moment if there are none yet. Raises Interrupted."""
    # Before a job begins, which would train until its first report.
    if monitor.stopping:
        raise monitor.interruption()
    if not (jobs := monitor.jobs(loop)):
        monitor.pause(loop)
    return jobs


@contextmanager
def as_interrupted() -> Iterator[None]:
    """Raises Interrupted in the place of KeyboardInterrupt."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted from None


def _result(future: Future[JobResult], number: int) -> JobResult:
    """Returns the result of a job, also of a failed one. Raises errors that end the training."""
    try:
        return future.result()
    except (Interrupted, UsageError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001  reported by the loop, with the job
        return JobResult(number, None, **cohort_failure(error))
