"""Files that begin with a checksum of all that they hold and of what they are for.

What is read is therefore what was written, under the name it was written for. A damaged file is as good as none, and
one line says so. SHA-256, because processors have instructions for it, with which it is as fast as CRC-32.
"""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from trainers.notes import tell

HEADER = 65  # bytes: the checksum in hexadecimal, and a line's end


class Damaged(OSError):
    """What a file holds is not what was written under its mark."""


def write(path: Path, mark: str, content: bytes | memoryview) -> None:
    """Replaces the file, never by half of it. mark: one line that says what the content is. Raises OSError."""
    # In the same folder: a rename replaces a file at once only within a file system.
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(checksum(mark, content))
            file.write(content)
        os.chmod(beside, 0o644)  # others may share the folder
        os.replace(beside, path)
    finally:
        Path(beside).unlink(missing_ok=True)


def read(path: Path, mark: str, otherwise: str) -> bytes | None:
    """What was written under this mark; None where it was not. Tells what is damaged, and what happens otherwise."""
    try:
        return contents(path, mark)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        tell(f"{path} cannot be used, {error.strerror or error}: {otherwise}")
        return None


def contents(path: Path, mark: str) -> bytes:
    """What was written under this mark. Raises OSError; Damaged where the file holds something else."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged("it is no regular file")
    return opened(path.read_bytes(), mark)


def opened(found: bytes, mark: str) -> bytes:
    """What was written under this mark, of all that a file holds. Raises Damaged where that is something else."""
    content = memoryview(found)[HEADER:]
    if found[:HEADER] != checksum(mark, content):
        raise Damaged("it is damaged")
    return bytes(content)


def checksum(mark: str, content: bytes | memoryview) -> bytes:
    """What a file begins with."""
    digest = hashlib.sha256(f"{mark}\n".encode())
    digest.update(content)
    return f"{digest.hexdigest()}\n".encode()
