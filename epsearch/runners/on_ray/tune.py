"""Trains with Ray Tune: one Tune trial is one cohort. The ledger, not Tune's snapshot, is the record."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import Interrupted, Unavailable, UsageError
from epsearch.failures.lines import surroundings
from epsearch.loop.base import Loop
from epsearch.runners.local import Threads, local_slots
from epsearch.runners.on_ray import cluster, leftovers, lost, ray_start, resources
from epsearch.runners.on_ray.carried import carried, runtime_env
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study
from trainers.notes import first_line
from trainers.streams import DataError

if TYPE_CHECKING:
    from epsearch.runners.on_ray.trials import Setting

# Ray reads these when it is imported, which is why this module does that late.
SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # nobody reads Tune's own CSV, JSON and TensorBoard files
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # workers take this interpreter, they do not set up `uv run` once more
    "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1",  # what a module of the user's needs travels, whatever git is told
    **ray_start.SETTINGS,
}
IMPORTS = threading.Lock()
OBJECT_STORE_BYTES = 10**8  # jobs and results are small; Ray would reserve 30 % of the memory


@dataclass
class Starting:
    """A Ray that starts in the background."""

    begun: Future[None]
    """Raises what its start has raised."""
    folder: Path
    """Of this run, gone when it ends."""
    workers_took: float | None = None
    """Seconds from when Tune was handed the study to the first steps of a worker; None as long as there are none."""

    def __call__(self, loop: Loop, monitor: Monitor, threads: Threads | None = None) -> None:
        """Trains until the study is done; see `ready`. threads: train some of its jobs already."""
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
        leftovers.run_folder() as folder,
        ThreadPoolExecutor(1) as background,
    ):
        os.environ |= SETTINGS
        starting = background.submit(_start, study, folder, with_tune)
        try:
            yield Starting(starting, folder)
        finally:
            if starting.exception() is None:  # waits for a start that is still going on
                ray_start.shut_down()


def _start(study: Study, folder: Path, with_tune: bool) -> None:
    """Starts a private Ray, or joins that of the study's address. Raises Unavailable or UsageError.

    folder: of this run, gone when it ends.
    """
    with _ray_is_to_blame("cannot be imported"):
        _import_ray()
    if study.address == "local":
        with _ray_is_to_blame("does not start here"), leftovers.belonging(folder):
            start_private_ray(local_slots(study), folder, study.niceness)
    else:
        cluster.join(study.address, runtime_env(study, folder))
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
    starting.begun.result()
    # As Ctrl-C, for which Tune has a handler; without one of its own Ray prints a stack trace.
    _handle(signal.SIGTERM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT))
    study, source = loop.study, Source(loop, monitor, loop.study.task_timeout, threads)
    source.first_steps = partial(_note, starting, time.monotonic())
    try:
        with lost.watching(private=study.address == "local"):
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


def start_private_ray(cores: int, folder: Path | None = None, niceness: int = 0) -> None:
    """Starts a Ray of this process alone, without a word on the terminal.

    cores: how many one-core trials it may run at a time; niceness: of its workers, beside ours; folder: for its own
    files, with a short path, None for where Ray has them by itself.
    """
    os.environ |= SETTINGS | {"RAY_worker_niceness": str(niceness)}
    import ray

    with ray_start.starting():
        ray.init(
            address="local",
            _node_ip_address="127.0.0.1",  # private: nobody else on the network is to reach it
            _temp_dir=None if folder is None or len(str(folder.parent)) > leftovers.LONGEST else str(folder),
            num_cpus=cores,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
