"""Trains in this process, one thread a cohort; torch releases the interpreter's lock while it computes."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial

from epsearch.failures.errors import Interrupted, UsageError
from epsearch.failures.lines import of_a_cohort
from epsearch.loop.base import Loop
from epsearch.loop.jobs import JobResult, execute
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


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains until the study is done; see `tune.ready`, whose place it takes."""
    yield _run


def _run(loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; what is trained is stored as it comes.

    Raises Interrupted on Ctrl-C, or where the listener wants to stop, after the running cohorts have stopped; and what
    the loop raises: TrainingFailed for cohorts that could not be trained, once all others are.
    """
    loop.workers = local_slots(loop.study)
    stop = threading.Event()

    def progress(weight: float, steps: int) -> None:
        if stop.is_set() or monitor.stopping:
            raise Interrupted
        monitor.steps(steps, weight)

    with ThreadPoolExecutor(loop.workers) as pool:
        try:
            running: dict[Future[JobResult], int] = {}
            while not loop.done:
                # Asked here, too: a job that is about to begin would train until its first report.
                if monitor.stopping:
                    raise Interrupted
                jobs = monitor.jobs(loop)
                if not jobs:
                    monitor.pause(loop)
                    continue
                waiting = [job for job in jobs if job.number not in running.values()]
                for job in waiting[: loop.workers - len(running)]:
                    running[pool.submit(execute, job, partial(progress, job.weight))] = job.number
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    loop.tell([_result(future, running.pop(future))])
                    monitor.update(loop)
        except BaseException as error:
            # What runs stops when it next tells of its steps; what waits must not begin.
            stop.set()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted from None
            raise


def _result(future: Future[JobResult], number: int) -> JobResult:
    """What came of a cohort. Raises what is not the training's: that the user stopped it, that nobody reads on."""
    try:
        return future.result()
    except (Interrupted, UsageError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001  told by the loop, with the job
        return JobResult(number, None, **of_a_cohort(error)._asdict())
