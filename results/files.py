"""Files that are written atomically: always the old content or the complete new one."""

import os
import secrets
from pathlib import Path

DESCRIPTORS = "/proc/self/fd"
"""Where Linux has names of open files."""


def write_atomically(path: Path, data: bytes) -> Path:
    """Writes `data` to a file beside `path`, flushes it to the disk, and renames it to `path`, which it returns.

    Missing folders are made. Raises OSError where any of this fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a file can be renamed only within one file system.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _write(beside, data)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return path


def _write(path: Path, data: bytes) -> None:
    """Writes a new file and flushes it to the disk. On Linux it has a name only then: a kill before leaves nothing."""
    handle = _unnamed(path.parent)
    named = handle is None
    if handle is None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)  # or a machine that dies may leave the new name with nothing in it
        os.chmod(handle, 0o644)  # whatever this process's umask is
        if not named:
            # A descriptor as the folder of the source, which is not looked at: only so does Python follow the link.
            os.link(f"{DESCRIPTORS}/{handle}", path, src_dir_fd=handle)


def _unnamed(folder: Path) -> int | None:
    """A new file in a folder, without a name; None where the system or the file system has no such files."""
    if not (hasattr(os, "O_TMPFILE") and os.path.isdir(DESCRIPTORS)):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o644)
    except OSError:
        return None


def writable(path: Path) -> bool:
    """Returns whether this process may write to the path: as its effective user, and not on a read-only file system."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
