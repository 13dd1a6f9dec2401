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
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import Interrupted, Unavailable, UsageError
from epsearch.failures.lines import surroundings
from epsearch.loop.base import Loop
from epsearch.runners.local import Threads, local_slots
from epsearch.runners.on_ray import cleanup, cluster, ray_start, resources, watchdog
from epsearch.runners.on_ray.payload import carried, runtime_env
from epsearch.runners.on_ray.private import PrivateRay
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study
from trainers.notes import first_line
from trainers.streams import DataError

if TYPE_CHECKING:
    from epsearch.runners.on_ray.trials import Setting

IMPORTS = threading.Lock()


@dataclass
class Starting:
    """A Ray that starts in the background."""

    begun: Future[None]
    """Raises what its start has raised."""
    folder: Path
    """Of this run, gone when it ends."""
    own: PrivateRay | None = None
    """The Ray of this run alone, which is joined last; None for a cluster, which is joined in the background."""
    workers_took: float | None = None
    """Seconds from when Tune was handed the study to the first steps of a worker; None as long as there are none."""

    def join(self) -> None:
        """Waits for its start and joins it. Raises what that has raised, and Unavailable where it has been lost."""
        self.begun.result()
        if self.own is not None:
            self.own.join()

    def lost(self) -> watchdog.Look:
        """Returns the function that tells what has been lost of the Ray that was joined."""
        if self.own is not None:
            return self.own.lost
        import ray

        return watchdog.silence(str(ray.get_runtime_context().gcs_address))

    def __call__(self, loop: Loop, monitor: Monitor, threads: Threads | None = None) -> None:
        """Trains until the study is done; see `ready`. threads: train some of its jobs already, and Ray is joined."""
        _run(self, loop, monitor, threads)


@contextmanager
def ready(study: Study, with_tune: bool = False) -> Iterator[Starting]:
    """Starts Ray in the background, as that takes seconds in which the study can be prepared; ends it behind.

    Yields the function that trains until the study is done. It raises UsageError where Ray cannot be had, and
    Interrupted on Ctrl-C, or where the listener wants to stop; everything told by then is stored.

    with_tune: what the driver needs of Tune is imported there, too, as this thread has other things to do.
    """
    # Ray prints to standard output when a worker dies, whatever it is told; our answer must stand there alone.
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        _own_signals(),
        cleanup.run_folder() as folder,
    ):
        os.environ |= ray_start.SETTINGS
        background = ThreadPoolExecutor(1)
        own = PrivateRay(local_slots(study), folder, study.niceness) if study.address == "local" else None
        begun = background.submit(_start, study, own, folder, with_tune)
        background.shutdown(wait=False)
        try:
            yield Starting(begun, folder, own)
        finally:
            if own is not None:
                own.end()  # and nobody waits for a start that is still going on
            elif begun.exception() is None:
                cluster.leave()


def _start(study: Study, own: PrivateRay | None, folder: Path, with_tune: bool) -> None:
    """Starts the private Ray, or joins that of the study's address. Raises Unavailable or UsageError.

    folder: of this run, gone when it ends.
    """
    if own is not None:
        importing = threading.Thread(target=_import, args=[with_tune])
        importing.start()  # both take seconds, in different processes
        own.start()
        importing.join()
    with _ray_is_to_blame("cannot be imported"):
        _import_ray()
    if own is None:
        cluster.join(study.address, runtime_env(study, folder))
    if with_tune:
        import_tune()


def _import(with_tune: bool) -> None:
    """Imports what this process needs of Ray; what that raises is raised where it is imported again."""
    with suppress(Exception):
        _import_ray()
        if with_tune:
            import_tune()


def _import_ray() -> None:
    """Imports Ray, in one thread at a time: two that begin with different parts of it each see a half of it."""
    with IMPORTS:
        import ray  # noqa: F401


def import_tune() -> None:
    """Imports Ray Tune, and all that the driver needs of it. Raises Unavailable."""
    with _ray_is_to_blame("cannot be imported"), IMPORTS:
        import epsearch.runners.on_ray.trials  # noqa: F401


@contextmanager
def _ray_is_to_blame(what: str) -> Iterator[None]:
    """Whatever is raised is Ray's, but for bad input and what the machine refuses: Unavailable, in one line."""
    try:
        yield
    except (UsageError, DataError):
        raise
    except Exception as error:
        if surroundings(error) is not None:  # a full disk, no memory: that is said as it is
            raise
        raise Unavailable(ray_start.trouble(what, first_line(error))) from error


def _run(starting: Starting, loop: Loop, monitor: Monitor, threads: Threads | None) -> None:
    """Trains until the study is done; raises as `ready` says.

    What the study itself raised was kept from Tune (`Source.error`), and comes before what Ray ran into meanwhile.
    """
    import_tune()  # takes seconds, too: Ray starts meanwhile
    from epsearch.runners.on_ray.trials import Source, fit

    ours = signal.getsignal(signal.SIGINT)
    if threads is None:
        starting.join()
    # As Ctrl-C, for which Tune has a handler; without one of its own Ray prints a stack trace.
    _handle(signal.SIGTERM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT))
    source = Source(loop, monitor, loop.study.task_timeout, threads)
    source.first_steps = partial(_note, starting, time.monotonic())
    try:
        with watchdog.watching(starting.lost()):
            setting = _setting(loop, starting.folder)
            interrupted = False
            # Tune may end with something left: what threads or other studies trained, and others no longer claim.
            while not (interrupted or source.error or source.stopping or loop.done):
                with _ray_is_to_blame("was lost"):
                    interrupted = fit(source, setting)
                _handle(signal.SIGINT, ours)  # Tune leaves its own behind, which would swallow a Ctrl-C
                while not interrupted and source.pausing:
                    source.wait()
    except Unavailable:  # an error of the study's own comes first, and is raised below
        if source.error is None:
            raise
    if source.error is not None:
        raise source.error
    if not loop.done:
        raise Interrupted


def _note(starting: Starting, begun: float) -> None:
    if starting.workers_took is None:
        starting.workers_took = time.monotonic() - begun


def _setting(loop: Loop, folder: Path) -> "Setting":
    """How the trials of the loop are run; what it puts into the object store is there until Ray is left."""
    from epsearch.runners.on_ray.trials import Setting

    loop.workers = loop.study.workers or resources.slots(loop.study)
    share = resources.share(loop, resources.nodes(), resources.smallest_gpu)
    if loop.study.address == "local":  # workers read what this process has read, on the same machine
        return Setting(loop.workers, share, folder)
    import ray

    return Setting(loop.workers, share, folder, ray.put(carried(loop.study)))


def _handle(number: int, handler: Any) -> None:
    """Gives the signal this handler; only the first thread may."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Gives back the handlers of Ctrl-C and SIGTERM, which Ray and Tune replace and leave replaced."""
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python lets nobody set a handler
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.getsignal(number))
        yield
