"""Writes files atomically: the old content or the complete new one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DESCRIPTORS = "/proc/self/fd"
"""Where Linux has names of open files."""


def write_atomically(path: Path, data: bytes) -> Path:
    """Writes `data` to a file beside `path`, flushes it to the disk, and renames it to `path`, which it returns.

    Missing folders are made. Raises OSError where any of this fails.
    """
    with atomically(path) as file:
        file.write(data)
    return path


@contextmanager
def atomically(path: Path) -> Iterator[IO[bytes]]:
    """Within it, what is written goes to a file beside `path`, which takes its place at the end, unless it fails.

    On Linux the file has a name only when it is complete: a kill before leaves nothing. Missing folders are made.
    Raises OSError where any of this fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a file can be renamed only within one file system.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    handle = _unnamed_file(path.parent)
    named = handle is None
    try:
        if handle is None:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)  # or a machine that dies may leave the new name with nothing in it
            if os.chmod in os.supports_fd:  # not on Windows, where a mode says only whether a file may be written
                os.chmod(handle, 0o644)  # whatever this process's umask is
            if not named:
                # A descriptor as the folder of the source, which is not looked at: only so does Python follow the link.
                os.link(f"{DESCRIPTORS}/{handle}", beside, src_dir_fd=handle)
        os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:  # of a write
            error.filename = str(path)
        raise


def _unnamed_file(folder: Path) -> int | None:
    """Returns a new file in a folder, without a name; None where the system or the file system has no such files."""
    if not (hasattr(os, "O_TMPFILE") and os.path.isdir(DESCRIPTORS)):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o644)
    except OSError:
        return None


def flush(place: Path) -> None:
    """Flushes the content of a file to the disk; of a folder the names in it, but on Windows. Raises OSError."""
    windows = os.name == "nt"
    if windows and place.is_dir():  # it opens no folder; NTFS has their names in a journal
        return
    handle = os.open(place, os.O_RDWR if windows else os.O_RDONLY)  # it flushes no file that is open for reading only
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def writable(path: Path) -> bool:
    """Returns whether this process may write to the path: as its effective user, and not on a read-only file system."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
