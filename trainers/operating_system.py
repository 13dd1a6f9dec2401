"""Calls that not every operating system has, each with a fallback; docs/platforms.md says what is untested."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCKS = fcntl is not None
"""Whether files can be locked. Without locks nobody waits, and what a killed process leaves is not cleared up."""
CAN_FORK = hasattr(os, "fork")
"""Whether a process can be copied, as the guard of a plug-in trainer does."""
SYSTEM = {"win32": "Windows", "darwin": "macOS"}.get(sys.platform, sys.platform)
"""Name of the operating system in messages."""
CGROUP = Path("/sys/fs/cgroup")
"""Limits of a container of Linux; replaced in tests."""
MEMORY_FACTS = Path("/proc/meminfo")
AUTOGROUP = Path("/proc/self/autogroup")
"""Nice value of this session among all sessions; there on Linux, where the kernel has it."""
NICENESS_TRIES = 10


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    # May be fewer than the machine has, in a container or under `taskset`; macOS and Windows do not tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_niceness() -> None:
    """Gives this process's session its nice value, which Linux may compare between processes of a session alone."""
    if CAN_FORK and (niceness := os.getpriority(os.PRIO_PROCESS, 0)) > 0:
        for _ in range(NICENESS_TRIES):
            try:
                AUTOGROUP.write_text(str(niceness), encoding="ascii")
                return
            except BlockingIOError:  # Linux lets users do so once in a tenth of a second, all of them together
                time.sleep(0.1)
            except OSError:
                return


def readable(handle: int, seconds: float) -> bool:
    """Waits until an open pipe or socket has something to read, or has ended; returns whether it has by then."""
    waiting = select.poll()  # select.select takes no handle above 1023, as a process with hundreds of workers has
    waiting.register(handle, select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


def lock(handle: int, wait: bool = True) -> bool:
    """Locks an open file until it is closed, also by the end of the process; returns False without locks.

    wait: for other processes; else raises BlockingIOError where one has the lock. Raises OSError, as on a file system
    without locks.
    """
    if fcntl is None:
        return False
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    return True


@contextmanager
def keep_lock(handle: int) -> Iterator[None]:
    """Keeps the lock of an open file within the block, also when the file has been closed."""
    # Not without locks: Windows renames no file that is open.
    copy = os.dup(handle) if LOCKS else None
    try:
        yield
    finally:
        if copy is not None:
            os.close(copy)


def available_memory() -> int | None:
    """Returns bytes of memory that processes can still have; None where the system does not tell, as all but Linux."""
    try:
        lines = MEMORY_FACTS.read_text(encoding="ascii").splitlines()
        # Not MemFree, which leaves out what caches give back when it is needed.
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None
    with suppress(OSError, ValueError):  # of a container; "max" where it has no limit
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        files = int(stat.get("active_file", 0)) + int(stat.get("inactive_file", 0))  # given back when needed
        free = min(free, limit - used + files)
    return free
