"""Trains with Ray Tune: one Tune trial is one cohort. The ledger, not Tune's snapshot, is the record."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.failures import stopping
from epsearch.failures.errors import Interrupted, Unavailable, UsageError
from epsearch.failures.lines import surroundings
from epsearch.loop.base import Loop
from epsearch.runners.local import Threads, local_slots
from epsearch.runners.on_ray import cleanup, cluster, ray_start, resources, watchdog
from epsearch.runners.on_ray.payload import payload, runtime_env
from epsearch.runners.on_ray.private import PrivateRay
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study
from trainers.notes import first_line
from trainers.streams import DataError

IMPORTS = threading.Lock()
TUNES = (signal.SIGINT, *([] if stopping.TIME_SIGNAL is None else [stopping.TIME_SIGNAL]))
"""Signals for which Tune has handlers of its own while it runs."""


@dataclass
class RayStart:
    """A Ray that starts in the background; called to train a loop."""

    done: Future[None]
    """Done when it has started; has the error of its start."""
    folder: Path
    """The folder of this run, removed at its end."""
    private: PrivateRay | None = None
    """The private Ray, which is joined last; None for a cluster, which is joined in the background."""
    worker_seconds: float | None = None
    """Seconds from the start of Tune to the first steps of a worker; None before them."""

    def join(self) -> None:
        """Waits for its start and joins it. Raises errors of the start, and Unavailable if it has been lost."""
        self.done.result()
        if self.private is not None:
            self.private.join()

    def loss(self) -> watchdog.Loss:
        """Returns the check whether the Ray has been lost."""
        if self.private is not None:
            return self.private.loss
        import ray

        return watchdog.head_loss(str(ray.get_runtime_context().gcs_address))

    def __call__(self, loop: Loop, monitor: Monitor, threads: Threads | None = None) -> None:
        """Trains a loop to its end; see `ready`. threads: train some of its jobs already; Ray is joined then."""
        _run(self, loop, monitor, threads)


@contextmanager
def ready(study: Study, with_tune: bool = False) -> Iterator[RayStart]:
    """Starts Ray in the background, while the study is prepared; ends it behind the block.

    Yields the function that trains a loop to its end. It raises UsageError without a Ray, and Interrupted on Ctrl-C, or
    if the listener ends the training; results by then are stored.

    with_tune: True to import Tune in the background, too, while this thread trains.
    """
    # Ray prints to standard output when a worker dies, in spite of its settings; our output must be alone there.
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        _restored_signals(),
        cleanup.run_folder() as folder,
    ):
        os.environ |= ray_start.SETTINGS
        background = ThreadPoolExecutor(1)
        private = PrivateRay(local_slots(study), folder, study.niceness) if study.address == "local" else None
        done = background.submit(_start, study, private, folder, with_tune)
        background.shutdown(wait=False)
        try:
            yield RayStart(done, folder, private)
        finally:
            if private is not None:
                private.end()  # ends a start under way, too
            elif done.exception() is None:
                cluster.leave()


def _start(study: Study, private: PrivateRay | None, folder: Path, with_tune: bool) -> None:
    """Starts the private Ray, or joins the Ray at the study's address. Raises Unavailable or UsageError."""
    if private is not None:
        importing = threading.Thread(target=_import, args=[with_tune])
        importing.start()  # both take seconds, in different processes
        private.start()
        importing.join()
    with _ray_errors("cannot be imported"):
        _import_ray()
    if private is None:
        cluster.join(study.address, runtime_env(study, folder))
    if with_tune:
        import_tune()


def _import(with_tune: bool) -> None:
    """Imports Ray; errors are raised again by the next import."""
    with suppress(Exception):
        _import_ray()
        if with_tune:
            import_tune()


def _import_ray() -> None:
    """Imports Ray, in one thread at a time: concurrent imports of its parts see incomplete modules."""
    with IMPORTS:
        import ray  # noqa: F401


def import_tune() -> None:
    """Imports Ray Tune and the driver's side of it. Raises Unavailable."""
    with _ray_errors("cannot be imported"), IMPORTS:
        import epsearch.runners.on_ray.trials  # noqa: F401


@contextmanager
def _ray_errors(failure: str) -> Iterator[None]:
    """Turns errors into Unavailable, but for bad input and trouble of the machine."""
    try:
        yield
    except (UsageError, DataError):
        raise
    except Exception as error:
        if surroundings(error) is not None:  # a full disk, no memory: reported as such
            raise
        raise Unavailable(ray_start.trouble(failure, first_line(error))) from error


def _run(start: RayStart, loop: Loop, monitor: Monitor, threads: Threads | None) -> None:
    """Trains until the study is done; for the errors see `ready`.

    Errors of the study itself, which Tune does not see (`Source.error`), come before errors of Ray.
    """
    import_tune()  # takes seconds, in which Ray starts
    with watchdog.signals() as signalled:
        try:
            _run_tune(start, loop, monitor, threads, signalled)
        except Unavailable:
            # One signal to this process and its Ray, as to the processes of a container: an end, and no loss.
            if signalled():
                raise Interrupted from None
            raise


def _run_tune(
    start: RayStart, loop: Loop, monitor: Monitor, threads: Threads | None, signalled: watchdog.Signalled
) -> None:
    from epsearch.runners.on_ray.trials import Source, fit

    handlers = {number: signal.getsignal(number) for number in TUNES}
    if threads is None:
        start.join()
    # As Ctrl-C, for which Tune has a handler; Ray's own prints a stack trace.
    _handle(signal.SIGTERM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT))
    source = Source(loop, monitor, loop.study.task_timeout, threads)
    source.first_steps = partial(_measure, start, time.monotonic())
    try:
        with watchdog.watch_ray(start.loss(), signalled=signalled):
            options = _fit_options(loop)
            interrupted = False
            # Tune may end before the loop: members of threads, or claims that other studies have released.
            while not (interrupted or source.error or source.stopping or loop.done):
                with _ray_errors("was lost"):
                    interrupted = fit(source, start.folder, *options)
                for number, handler in handlers.items():  # Tune leaves its own behind, which would ignore a Ctrl-C
                    _handle(number, handler)
                while not interrupted and source.pausing:
                    source.wait()
    except Unavailable:  # an error of the study itself comes first, and is raised below
        if source.error is None:
            raise
    if source.error is not None:
        raise source.error
    if not loop.done:
        signalled()  # reads which signal Tune has handled
        raise monitor.interruption()


def _measure(start: RayStart, begun: float) -> None:
    if start.worker_seconds is None:
        start.worker_seconds = time.monotonic() - begun


def _fit_options(loop: Loop) -> tuple[int, dict[str, float], Any]:
    """Returns workers, resources and payload for `trials.fit`; a payload stays in the object store until Ray ends."""
    loop.workers = loop.study.workers or resources.slots(loop.study)
    trial = resources.trial_resources(loop, resources.nodes(), resources.smallest_gpu)
    if loop.study.address == "local":  # workers read the same files
        return loop.workers, trial, None
    import ray

    return loop.workers, trial, ray.put(payload(loop.study))


def _handle(number: int, handler: Any) -> None:
    """Sets the handler of a signal, if this is the main thread."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@contextmanager
def _restored_signals() -> Iterator[None]:
    """Restores the handlers of SIGTERM and of TUNES at the end, which Ray and Tune replace."""
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():  # only there Python sets handlers
            for number in (signal.SIGTERM, *TUNES):
                stack.callback(signal.signal, number, signal.getsignal(number))
        yield
