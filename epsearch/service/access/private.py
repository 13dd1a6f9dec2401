"""Files of secrets, which only their owner can read and write."""

import os
import secrets
import stat
from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.operating_system import HAS_MODES

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_private(file: Path, title: str) -> str:
    """Returns the text of a file; title: its name in messages. Raises UsageError, also if others may read it."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"cannot read the {title} {file}: {reason}") from error
    if mode & OTHERS and HAS_MODES:
        access = "write to" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
        raise UsageError(f"others may {access} the {title} {file}; `chmod 600` it")
    return text


def write_private(file: Path, text: str, new: bool = False) -> None:
    """Writes a file that only its owner can read, atomically; new: raises FileExistsError if it exists.

    Raises UsageError if it cannot be written.
    """
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(handle)
            if new:
                os.link(temporary, file)
            else:
                os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write to {file}: {error.strerror}") from error


def stamp(file: Path) -> tuple[int, int, int]:
    """Returns numbers that differ after any change of a file; zeros if there is none."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_ino, (status.st_size << 16) | stat.S_IMODE(status.st_mode)
