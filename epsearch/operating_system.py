"""Calls that not every operating system has, each with a fallback; docs/platforms.md says what is untested."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""Signals that end a command in good order; SIGHUP is not of Windows, SIGBREAK (Ctrl-Break) is of Windows alone."""
HAS_MODES = os.name == "posix"
"""True where the mode of a file limits its readers; on Windows access control lists do, which Python cannot read."""
ARG_START = 45  # the field of /proc/self/stat, counted behind the process's name


def new_group() -> dict[str, Any]:
    """Returns arguments for `subprocess.Popen` that let a process lead a group, out of reach of a terminal's Ctrl-C."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def interrupt(process: subprocess.Popen[Any]) -> None:
    """Asks a process that leads a group to end in good order."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            try:
                process.send_signal(signal.CTRL_BREAK_EVENT)
            except OSError:  # without a console of its own; what is trained is stored in any case
                process.terminate()
        else:
            process.send_signal(signal.SIGTERM)


def leads_group(pid: int) -> bool:
    """Returns whether a process leads a group; False on Windows. Raises ProcessLookupError without the process."""
    return hasattr(os, "getpgid") and os.getpgid(pid) == pid


def kill_group(pid: int) -> None:
    """Kills a process that leads a group, and the whole group; on Windows with its children."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # the second on macOS, for a group that has ended
            os.killpg(pid, signal.SIGKILL)
        return
    import psutil

    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in [*process.children(recursive=True), process]:
            with suppress(psutil.NoSuchProcess):
                member.kill()


def add_niceness(increment: int) -> None:
    """Raises the nice value of this thread and of the processes that it will start; on Linux alone."""
    # Elsewhere the whole process has one nice value, and a study trains beside threads that answer.
    if increment and sys.platform == "linux":
        nice = os.getpriority(os.PRIO_PROCESS, 0) + increment
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


def resident_bytes() -> int:
    """Returns the resident memory of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def address_space() -> int | None:
    """Returns the limit of the address space (`ulimit -v`) in bytes; None without one, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def user_name() -> str:
    """Returns a number of this user, for names of temporary folders; of this process where users have none."""
    return str(os.getuid() if hasattr(os, "getuid") else os.getpid())


def is_own(path: Path) -> bool:
    """Returns whether a file belongs to this user, and is no link; on Windows whether it is none. Raises OSError."""
    return not path.is_symlink() and (not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid())


def reuse_address(listening: socket.socket) -> None:
    """Lets a socket have the port of a program that ended a moment ago."""
    # On Windows the option would let two programs have one port at the same time.
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def overwrite_arguments(secrets: Iterable[str]) -> None:
    """Overwrites secrets in the memory of this process's arguments, on Linux.

    Errors are ignored: a password that cannot be hidden is no reason to refuse the command.
    """
    with suppress(OSError, ValueError, IndexError):
        start = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[ARG_START])
        line = Path("/proc/self/cmdline").read_bytes()
        # The longest first, as a shorter one may be a part of it.
        for secret in sorted(map(os.fsencode, secrets), key=len, reverse=True):
            while (place := line.find(secret)) >= 0:
                ctypes.memset(start + place, ord("*"), len(secret))
                line = line[:place] + b"*" * len(secret) + line[place + len(secret) :]
