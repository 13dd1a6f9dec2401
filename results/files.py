"""Files that are written atomically: always the old content or the complete new one."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> Path:
    """Writes `data` to a file beside `path`, flushes it to the disk, and renames it to `path`, which it returns.

    Missing folders are made. Raises OSError where any of this fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a file can be renamed only within one file system.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a machine that dies may leave the new name with nothing in it
        os.chmod(name, 0o644)  # mkstemp makes files only their owner can read
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def writable(path: Path) -> bool:
    """Returns whether this process may write to the path: as its effective user, and not on a read-only file system."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
