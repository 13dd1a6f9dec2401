"""The common steps of guard processes of plug-in trainers: start, watch and end the processes below them."""

import os
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from trainers.foreign import process_tree
from trainers.foreign.shared_memory import SharedMemory
from trainers.operating_system import keep_niceness

EVERY = 0.1  # seconds between two looks at who has ended
TIDYING = 5.0  # seconds that helpers have to remove shared memory of processes that were killed
LOOKS = 2  # in a row that must find nothing where a server stays, as one may miss something
WAIT_SECONDS = 10.0  # seconds that killed processes have to go; one that waits for a disk may take longer


def run(serve: Callable[[], None], guard: int, memory: SharedMemory) -> NoReturn:
    """Does the work of a new process below the guard, which ends with it."""
    status = os.EX_SOFTWARE
    try:
        os.setsid()  # whoever kills its own group leaves the guard out
        keep_niceness()
        process_tree.die_with_parent()
        if os.getppid() == guard:
            serve()
            status = os.EX_OK
    except BaseException:  # noqa: BLE001  the guard's own code must not run here
        traceback.print_exc()
    finally:
        with suppress(Exception):  # whatever a trainer has done to its process
            memory.record([os.getpid()])
            memory.remove(but=os.getpid())
        os._exit(status)  # threads that were left behind would be waited for


def silence() -> None:
    """Closes this process's output, which it would hold open for others."""
    with open(os.devnull, "r+b") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)


def end(guard: int, memory: SharedMemory, but: int = 0) -> None:
    """Ends all processes below the guard, but a server, if there is one.

    Orphans are below it where it adopts them.
    """

    def others(tidying: bool = True) -> list[Any]:
        return [process for process in process_tree.descendants(guard, tidying) if process.pid != but]

    begun, empty = time.monotonic(), 0
    while time.monotonic() < begun + WAIT_SECONDS:
        # Again, as a look misses the children of a process that ends meanwhile.
        processes = others()
        memory.record(process.pid for process in processes)
        process_tree.end(lambda: others(tidying=time.monotonic() > begun + TIDYING))
        while ended := reap():
            pass
        empty = 0 if processes else empty + 1
        if ended is None or (but and empty == LOOKS):
            break
        if processes or not but:
            time.sleep(EVERY / 10)
    memory.remove()


def reap() -> tuple[int, int] | None:
    """Returns (process, status) of one that has ended; () where none has, None where there are none."""
    try:
        ended = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return ended if ended[0] else ()  # type: ignore[return-value]


def leave(number: int, frame: FrameType | None) -> None:
    """Ends this process on a signal, by its own last steps."""
    raise SystemExit(128 + number)
