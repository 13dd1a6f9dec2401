"""What a run has besides its results: one temporary folder, and processes. Neither outlives it, whatever was killed.

A run holds a lock on a file in its folder, which the system takes from it when it ends, however it does. A small
process, this file as a program, waits for that end and clears up where the run could not; where it was killed, too, the
next run does. A process belongs to a run if it was started with the run's folder in its environment.
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
LONGEST = 20  # letters of a path in which Ray's sockets have room: no name of a socket may have more than 107
WAIT = 10.0  # seconds for processes that were killed to end


@contextmanager
def run_folder(base: Path | None = None) -> Iterator[Path]:
    """A folder for this run, gone with all processes of `environment` behind it; clears up after earlier runs first.

    base: where it is made, the system's place for such folders by default. Raises OSError.
    """
    base = base or temporary()
    for folder in abandoned(base):
        clear(folder)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    with _locked(folder):
        try:
            with _watched(folder):
                yield folder
                clear(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    """Variables of processes that belong to the run of the folder, as does whatever these start."""
    return {VARIABLE: str(folder)}


def temporary() -> Path:
    """The folder of temporary ones, as Ray chooses it: with a short path, where there is one."""
    known = [Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()), Path("/tmp")]
    return next((path for path in known if len(str(path)) <= LONGEST and os.access(path, os.W_OK)), known[0])


def abandoned(base: Path) -> list[Path]:
    """Folders of runs of this user that have ended; none where the system does not tell, as Windows does not."""
    return [lock.parent for lock in sorted(base.glob(f"{PREFIX}*/{LOCK}")) if _ours(lock) and _free(lock)]


def clear(folder: Path) -> None:
    """Ends all processes that belong to the run of the folder, and removes it."""
    until = time.monotonic() + WAIT
    while (found := belongs(folder)) and time.monotonic() < until:  # again, as one may have started another meanwhile
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def belongs(folder: Path) -> list[int]:
    """Numbers of the processes that belong to the run of the folder, but for those that have ended and are not seen to.

    None where the system has no /proc.
    """
    found, wanted = [], f"{VARIABLE}={folder}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # of somebody else, or it has just ended; one that has ended has no environment
            if wanted in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return found


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; without one where the system has none, and nobody clears up behind this run."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / f"{LOCK}.new", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.rename(file.name, folder / LOCK)  # only now: a lock that nobody holds is that of a run that has ended
        yield


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    """Has a process wait for the end of this one, which closes its standard input, to clear up then."""
    command = [sys.executable, "-I", "-S", __file__, str(folder)]
    silent = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # In a session of its own: it is to outlive the Ctrl-C of a terminal, and what ends the whole group.
    with subprocess.Popen(command, start_new_session=True, **silent):  # type: ignore[call-overload]
        yield


def _ours(lock: Path) -> bool:
    """Whether it is a file of this user."""
    with suppress(OSError):
        return hasattr(os, "getuid") and lock.lstat().st_uid == os.getuid() and not lock.is_symlink()
    return False


def _free(lock: Path) -> bool:
    """Whether nobody holds the lock."""
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
