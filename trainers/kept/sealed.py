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


def write(path: Path, mark: str, content: bytes | memoryview) -> None:
    """Replaces the file, never by half of it. mark: one line that says what the content is. Raises OSError."""
    # In the same folder: a rename replaces a file at once only within a file system.
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_checksum(mark, content))
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
    """What was written under this mark. Raises OSError where that is not what the file holds."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no regular file")
    found = path.read_bytes()
    content = memoryview(found)[HEADER:]
    if found[:HEADER] != _checksum(mark, content):
        raise OSError("it is damaged")
    return bytes(content)


def _checksum(mark: str, content: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(f"{mark}\n".encode())
    digest.update(content)
    return f"{digest.hexdigest()}\n".encode()
