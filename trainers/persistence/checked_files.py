"""Files that begin with a checksum of content and purpose.

What is read is therefore what was written, under the name it was written for. A damaged file is as good as none, and
one line says so. SHA-256, because processors have instructions for it, with which it is as fast as CRC-32.
"""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from trainers.notes import notify
from trainers.operating_system import LOCKS, keep_lock, lock

HEADER = 65  # bytes: the checksum in hexadecimal, and a line's end
UNFINISHED = ".sealing"  # ends the name of a file that is being written, and no other name


class Damaged(OSError):
    """A file does not hold the content that was written under its mark."""


def write(path: Path, mark: str, content: bytes | memoryview) -> None:
    """Replaces the file, never by half of it. mark: one line that says what the content is. Raises OSError.

    What others who were killed have begun in that folder is removed before.
    """
    _clear(path.parent)
    handle, beside = _create(path)
    try:
        with keep_lock(handle):
            with os.fdopen(handle, "wb") as file:
                file.write(checksum(mark, content))
                file.write(content)
            os.chmod(beside, 0o644)  # others may share the folder
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def read(path: Path, mark: str, otherwise: str) -> bytes | None:
    """Returns the content under this mark; None where there is none, or the file is damaged.

    A damaged file is noted. otherwise: what happens then, for the note.
    """
    try:
        return contents(path, mark)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        notify(f"{path} cannot be used, {error.strerror or error}: {otherwise}")
        return None


def contents(path: Path, mark: str) -> bytes:
    """Returns the content under this mark. Raises OSError; Damaged where the file holds another content."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged("it is no regular file")
    return open_checked(path.read_bytes(), mark)


def open_checked(stored: bytes, mark: str) -> bytes:
    """Returns the content under this mark from the bytes of a file. Raises Damaged where they are of another one."""
    content = memoryview(stored)[HEADER:]
    if stored[:HEADER] != checksum(mark, content):
        raise Damaged("it is damaged")
    return bytes(content)


def checksum(mark: str, content: bytes | memoryview) -> bytes:
    """Returns the first bytes of a file."""
    digest = hashlib.sha256(f"{mark}\n".encode())
    digest.update(content)
    return f"{digest.hexdigest()}\n".encode()


def _create(path: Path) -> tuple[int, Path]:
    """Creates a file beside the path and locks it where there are locks; returns (handle, its path).

    The system takes the lock from a process that ends.
    """
    while True:
        # In the same folder: a rename replaces a file at once only within a file system.
        handle, name = tempfile.mkstemp(UNFINISHED, f".{path.name}.", path.parent)
        with suppress(OSError):  # a file system without locks: then nobody else gets one, either
            lock(handle)
        if not LOCKS or os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # somebody saw it before it was locked, and has removed it


def _clear(folder: Path) -> None:
    """Removes files that were begun, and that nobody has locked: who wrote them was killed."""
    if not LOCKS:
        return
    for path in folder.glob(f".*{UNFINISHED}"):
        with suppress(OSError), open(path, "r+b") as file:
            lock(file.fileno(), wait=False)
            path.unlink()  # by the name, which nobody else has: one that is finished meanwhile has another
