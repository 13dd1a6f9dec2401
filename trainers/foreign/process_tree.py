"""Lists, weighs and ends the descendants of a process.

On Linux the guard of a trainer adopts what is left behind below it, so that whatever a trainer starts stays below the
guard, also what has left its group. Elsewhere what has been orphaned before it was seen is lost.
"""

import ctypes
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

TIDY = ("multiprocessing.resource_tracker", "torch_shm_manager")
"""Of Python and torch, in command lines: helpers that remove shared memory."""

SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36  # of linux/prctl.h


def descendants(pid: int, tidying: bool = True) -> list[psutil.Process]:
    """Returns all processes below it; none where it is gone.

    tidying: also helpers that remove shared memory of others when these have ended, and then end themselves.
    """
    try:
        processes = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return processes if tidying else [process for process in processes if not _tidies(process)]


def resident_memory(processes: Iterable[psutil.Process]) -> int:
    """Returns bytes of memory that they have; pages that they share count for each of them."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def highest(processes: Iterable[psutil.Process]) -> int:
    """Returns bytes of memory that one of them has had at most; 0 where the system does not keep that."""
    most = [0]
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8", errors="replace")
            most.append(1024 * int(status.partition("VmHWM:")[2].split()[0]))
    return max(most)


def end(listed: Callable[[], list[psutil.Process]]) -> None:
    """Kills the listed processes, again while there are more.

    All are stopped first, so that none starts others meanwhile.
    """
    stopped: set[psutil.Process] = set()
    while more := [process for process in listed() if process not in stopped]:
        for process in more:
            with suppress(psutil.Error):
                process.suspend()
        stopped.update(more)
    for process in stopped:
        with suppress(psutil.Error):
            process.kill()


def find_marked(name: str, value: str) -> list[psutil.Process]:
    """Returns all processes that were started with a variable of this value, wherever they have gone."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(name) == value:
                processes.append(process)
    return processes


def _tidies(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        # Without one it is about to become another program, which may be such a helper.
        return not (words := process.cmdline()) or any(name in word for word in words for name in TIDY)
    return False


def become_subreaper() -> bool:
    """Makes this process the parent of every orphan below it; returns False where the system cannot.

    Linux: `PR_SET_CHILD_SUBREAPER`.
    """
    return _prctl(SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Asks Linux to kill this process when the thread that has started it ends."""
    _prctl(SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    return sys.platform == "linux" and bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
