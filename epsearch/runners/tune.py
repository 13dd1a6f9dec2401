"""Trains with Ray Tune: one Tune trial is one cohort. The ledger, not Tune's snapshot, is the record."""

import logging
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.failures.errors import Interrupted, Unavailable, UsageError
from epsearch.failures.lines import surroundings
from epsearch.loop.base import Loop
from epsearch.runners import lost, ray_start
from epsearch.runners.local import local_slots
from epsearch.runners.progress import Monitor
from epsearch.runners.scratch import scratch
from epsearch.study.description import Study
from trainers.notes import first_line

# Ray reads these when it is imported, which is why this module does that late.
SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # nobody reads Tune's own CSV, JSON and TensorBoard files
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # workers take this interpreter, they do not set up `uv run` once more
    **ray_start.SETTINGS,
}
REACH_SECONDS = 10.0
LONGEST_FOLDER = 43  # bytes: a socket's name has 107 at most, of which Ray takes up to 64
OBJECT_STORE_BYTES = 10**8  # jobs and results are small; Ray would reserve 30 % of the memory


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Starts Ray in the background, as that takes seconds in which the study can be prepared; ends it behind.

    Yields the function that trains until the study is done. It raises UsageError where Ray cannot be had, and
    Interrupted on Ctrl-C, or where the listener wants to stop; everything told by then is stored.
    """
    # Ray prints to standard output when a worker dies, whatever it is told; our answer must stand there alone.
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        _own_signals(),
        _scratch(study) as folder,
        ThreadPoolExecutor(1) as background,
    ):
        os.environ |= SETTINGS
        starting = background.submit(_start, study, folder)
        try:
            yield partial(_run, starting, folder)
        finally:
            if starting.exception() is None:  # waits for a start that is still going on
                ray_start.shut_down()


def _start(study: Study, folder: Path) -> None:
    """Starts a private Ray, or joins that of the study's address. Raises Unavailable or UsageError."""
    if study.address == "local":
        with _ray_is_to_blame("does not start here"):
            start_private_ray(local_slots(study), folder)
    else:
        _join_cluster(study.address)


@contextmanager
def _ray_is_to_blame(what: str) -> Iterator[None]:
    """Whatever is raised is Ray's, but for what the machine refuses: Unavailable, in one line."""
    try:
        yield
    except Exception as error:
        if surroundings(error) is not None:  # a full disk, no memory: that is said as it is
            raise
        raise Unavailable(ray_start.trouble(what, first_line(error))) from error


def _run(starting: Future[None], folder: Path, loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; raises as `ready` says.

    What the study itself raised was kept from Tune (`Source.error`), and comes before what Ray ran into meanwhile.
    """
    with _ray_is_to_blame("cannot be imported"):
        from epsearch.runners.trials import Source, fit  # takes seconds, too: Ray starts meanwhile

    ours = signal.getsignal(signal.SIGINT)
    starting.result()  # raises what the start has raised
    if threading.current_thread() is threading.main_thread():
        # As Ctrl-C, for which Tune has a handler; without one of its own Ray prints a stack trace.
        signal.signal(signal.SIGTERM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT))
    study, source = loop.study, Source(loop, monitor)
    try:
        loop.workers = study.workers or _cluster_slots(study)
        with lost.watching(private=study.address == "local"):
            while True:
                with _ray_is_to_blame("was lost"):
                    fit(source, study.device, loop.workers, folder)
                if not source.pausing:
                    break
                # Not within Tune, which would hear of Ctrl-C only once it has something to do.
                with _handled(signal.SIGINT, ours):
                    while source.pausing:
                        monitor.pause(loop)
    except Unavailable:  # an error of the study's own comes first, and is raised below
        if source.error is None:
            raise
    if source.error is not None:
        raise source.error
    if not loop.done:
        raise Interrupted


@contextmanager
def _handled(number: int, handler: Any) -> Iterator[None]:
    """Within it, the signal has this handler; only the first thread may set one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Gives back the handlers of Ctrl-C and SIGTERM, which Ray and Tune replace and leave replaced."""
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python lets nobody set a handler
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.getsignal(number))
        yield


def start_private_ray(cores: int, folder: Path | None = None) -> None:
    """Starts a Ray of this process alone, without a word on the terminal.

    cores: how many one-core trials it may run at a time. folder: for its logs and sockets, which Ray itself leaves
    behind; where its name is too long for sockets, and without one, they lie where Ray has them.
    """
    os.environ |= SETTINGS
    import ray

    with ray_start.starting():
        ray.init(
            address="local",
            _node_ip_address="127.0.0.1",  # private: nobody else on the network is to reach it
            num_cpus=cores,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _temp_dir=str(folder) if folder and len(os.fsencode(folder)) <= LONGEST_FOLDER else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )


def _join_cluster(address: str) -> None:
    """Joins the Ray cluster at an address: `auto` or HOST:PORT. Raises UsageError where there is none."""
    _reach(address)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {first_line(error)}") from error


def _reach(address: str) -> None:
    """Raises UsageError where nobody listens at HOST:PORT; where the machine's own cluster is (`auto`), Ray knows.

    Ray waits for minutes for a head that is not there, so its port is tried first.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        if address != "auto":
            raise UsageError(f"address must be local, auto or HOST:PORT, got {address!r}")
        return
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {error}") from error


def _cluster_slots(study: Study) -> int:
    """Trials that the Ray runs at a time: its cores, or its GPUs. Raises UsageError where it has none of them."""
    import ray

    kind = "GPU" if study.device == "cuda" else "CPU"
    with _ray_is_to_blame("does not say how large it is"):
        slots = int(ray.cluster_resources().get(kind, 0))  # type: ignore[no-untyped-call]
    if slots < 1:
        raise UsageError(f"the Ray cluster at {study.address!r} has no {kind}; start a worker node first")
    return slots


@contextmanager
def _scratch(study: Study) -> Iterator[Path]:
    """A folder for Tune and a private Ray: on a cluster all nodes must see it, as `--out`; else any place will do."""
    if study.address == "local":
        with scratch() as folder:
            yield folder
        return
    folder = study.out.absolute() / f".tune-{study.name}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
