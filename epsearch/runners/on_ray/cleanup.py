"""Removes the temporary folder and the processes of a run at its end, also after a kill.

A run holds a lock on a file in its folder, which the system releases at its end. A small process, this file as a
program, waits for that end and cleans up if the run could not; if it was killed, too, the next run does. A process
belongs to a run if it was started with the run's folder in its environment.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, LOCK = "epsearch-", "lock"
VARIABLE = "EPSEARCH_RUN"
LONGEST = 20  # letters of a folder's path: the name of a socket of Ray below it may have 107 at most
WAIT = 10.0  # seconds for killed processes to end


@contextmanager
def run_folder(base: Path | None = None) -> Iterator[Path]:
    """Makes a folder for this run, removed at the end of the block with all processes of `environment`.

    Cleans up after earlier runs first. base: parent folder, by default that of temporary files. Raises OSError.
    """
    base = base or temporary()
    for folder in abandoned_folders(base):
        clear(folder)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    with _lock(folder):
        try:
            with _watch(folder):
                yield folder
                clear(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    """Returns the variables that make a process, and its children, belong to the run of a folder."""
    return {VARIABLE: str(folder)}


def temporary() -> Path:
    """Returns the folder of temporary files, with a short path if possible, as Ray chooses it."""
    folders = [Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()), Path("/tmp")]
    return next((path for path in folders if len(str(path)) <= LONGEST and os.access(path, os.W_OK)), folders[0])


def abandoned_folders(base: Path) -> list[Path]:
    """Returns folders of this user's runs that have ended; none on Windows, which has no such locks."""
    return [lock.parent for lock in sorted(base.glob(f"{PREFIX}*/{LOCK}")) if _is_ours(lock) and _is_free(lock)]


def clear(folder: Path) -> None:
    """Kills all processes of a run, and removes its folder."""
    until = time.monotonic() + WAIT
    while (pids := processes(folder)) and time.monotonic() < until:  # again, as one may have started another meanwhile
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def processes(folder: Path) -> list[int]:
    """Returns the ids of the processes of a run, without zombies; none if the system has no /proc."""
    pids, variable = [], f"{VARIABLE}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # another user's, or it has just ended; a zombie has no environment
            if variable in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
    return pids


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, if the system has locks; else nobody cleans up after a kill."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / f"{LOCK}.new", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.rename(file.name, folder / LOCK)  # only now: a free lock means that its run has ended
        yield


@contextmanager
def _watch(folder: Path) -> Iterator[None]:
    """Starts a process that cleans up when this one ends, which closes its standard input."""
    command = [sys.executable, "-I", "-S", __file__, str(folder)]
    silent = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # In a session of its own, to outlive the Ctrl-C of a terminal, and a kill of the whole group.
    with subprocess.Popen(command, start_new_session=True, **silent):  # type: ignore[call-overload]
        yield


def _is_ours(lock: Path) -> bool:
    with suppress(OSError):
        return hasattr(os, "getuid") and lock.lstat().st_uid == os.getuid() and not lock.is_symlink()
    return False


def _is_free(lock: Path) -> bool:
    """Returns whether no process holds a lock."""
    try:
        import fcntl

        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


if __name__ == "__main__":
    sys.stdin.read()
    clear(Path(sys.argv[1]))
