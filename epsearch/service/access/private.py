"""Files of secrets: read and written by their owner alone."""

import os
import secrets
import stat
from pathlib import Path

from epsearch.failures.errors import UsageError

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_private(file: Path, what: str) -> str:
    """Returns the text of a file, which messages call `what`. Raises UsageError, also where others may read it."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"cannot read the {what} {file}: {why}") from error
    if mode & OTHERS and os.name == "posix":
        may = "write to" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
        raise UsageError(f"others may {may} the {what} {file}; `chmod 600` it")
    return text


def write_private(file: Path, text: str, new: bool = False) -> None:
    """Writes a file that only its owner can read, whole or not at all; new: FileExistsError where there is one.

    Raises UsageError where it cannot be written.
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(handle)
            if new:
                os.link(beside, file)
            else:
                os.replace(beside, file)
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write to {file}: {error.strerror}") from error


def stamp(file: Path) -> tuple[int, int, int]:
    """Returns what differs where a file was replaced or changed; zeros without one."""
    try:
        seen = file.stat()
    except OSError:
        return 0, 0, 0
    return seen.st_mtime_ns, seen.st_ino, (seen.st_size << 16) | stat.S_IMODE(seen.st_mode)
