"""Opens files from outside: only regular ones of limited size."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


Stamp = tuple[int, int, int, int]
"""Size in bytes, times of change of content and of the file in nanoseconds, inode."""


class Unfit(OSError):
    """Not a regular file, or too large a one; strerror says which."""


def odd_kind(path: Path) -> str | None:
    """Returns the type of a file that is neither a folder nor a regular file, in words; links are followed.

    >>> odd_kind(Path(os.devnull)), odd_kind(Path(os.curdir))
    ('a device', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # ValueError: a zero byte in a name
        return None
    return None if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "something else")


def stamp(status: os.stat_result) -> Stamp:
    """Returns values that change with the content of a file, without reading it.

    A file can be written again with its size and `st_mtime` as before, as rsync does; `st_ctime` cannot be set.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read it, for the context, unless it could be waited for or read without end, as a FIFO.

    Raises Unfit where it is no regular one, OSError as open does.
    """
    _check(os.stat(path))  # before it is opened, as some devices do something then
    # Without waiting, as opening a FIFO does that has taken the place of the file meanwhile.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        _check(os.fstat(file.fileno()))
        yield file


def read_regular(path: Path, most: int) -> bytes:
    """Returns all bytes of a file.

    Raises Unfit where it is no regular one, has more than `most`, or not as many as it says; OSError as open does.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise Unfit(errno.EFBIG, too_large(size, most))
        content = file.read(size + 1)
    if len(content) != size:  # something of /proc, or someone is writing it
        raise Unfit(errno.EIO, f"it does not have the {size:,} bytes that the file system says")
    return content


def too_large(size: int, most: int) -> str:
    """Returns the words for too many bytes.

    >>> too_large(2_000_000_000, 268_435_456)
    'it has 2,000,000,000 bytes, at most 268,435,456 are read'
    """
    return f"it has {size:,} bytes, at most {most:,} are read"


def _check(status: os.stat_result) -> None:
    """Raises Unfit where it is that of no regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise Unfit(errno.EINVAL, f"it is {KINDS.get(stat.S_IFMT(status.st_mode), 'something else')}, no regular file")
