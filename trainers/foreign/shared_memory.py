"""Removes shared memory that processes of a trainer leave behind.

A POSIX segment belongs to a trainer where one of its processes has it open or mapped, it was not there before, and no
other process has it. A System V segment names the process that made it.
"""

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SEGMENTS, PROC = Path("/dev/shm"), Path("/proc")
SYSTEM_V = PROC / "sysvipc/shm"
REMOVE = 0  # IPC_RMID of linux/ipc.h


class SharedMemory:
    """The segments of one trainer, from its start on."""

    def __init__(self) -> None:
        self._before = self._looked = _names()
        self._segments, self._pids = set[str](), set[int]()

    def grows(self) -> bool:
        """Returns whether there are segments, of whatever process, that were not there at the last look."""
        return not _names() <= self._looked

    def record(self, pids: Iterable[int]) -> None:
        """Notes the segments that some processes of the trainer use."""
        listed = list(pids)
        self._looked |= _names()
        self._pids.update(listed)
        self._segments |= _segments_of(listed) - self._before

    def remove(self, but: int = 0) -> None:
        """Removes the noted segments that no process uses but one, or none."""
        unused = self._segments & _names()
        if unused:
            pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
            unused -= _segments_of(pid for pid in pids if pid != but)
        for name in unused:
            with suppress(OSError):
                (SEGMENTS / name).unlink()
        _remove_system_v(self._pids)


def _names() -> frozenset[str]:
    """Returns the POSIX segments that are there; none where the system has no such folder."""
    try:
        return frozenset(os.listdir(SEGMENTS))
    except OSError:
        return frozenset()


def _segments_of(pids: Iterable[int]) -> set[str]:
    """Returns the POSIX segments that some processes have open or mapped."""
    return {name for pid in pids for name in _of_process(pid)}


def _of_process(pid: int) -> Iterator[str]:
    folder = PROC / str(pid)
    with suppress(OSError):
        for entry in (folder / "fd").iterdir():
            with suppress(OSError):
                yield from _name(os.readlink(entry))
    with suppress(OSError):
        for line in (folder / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            yield from _name(line[line.find("/") :])


def _name(place: str) -> Iterator[str]:
    """Yields the name of the segment at a place; none for other files, and those that are removed already."""
    begin = f"{SEGMENTS}/"
    if place.startswith(begin) and not place.endswith(" (deleted)"):
        yield place.removeprefix(begin)


def _remove_system_v(pids: set[int]) -> None:
    with suppress(OSError):
        heads, *rows = (line.split() for line in SYSTEM_V.read_text(encoding="ascii").splitlines())
        where, maker = heads.index("shmid"), heads.index("cpid")
        for segment in [int(row[where]) for row in rows if int(row[maker]) in pids]:
            ctypes.CDLL(None).shmctl(segment, REMOVE, None)
