"""Files that are either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def write_atomically(path: Path, data: bytes) -> Path:
    """Write `data` beside `path`, flush it to the disk, and rename it over `path`. Makes missing folders.
    OSError where that fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp makes files only their owner can read
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def writable(path: Path) -> bool:
    """Whether this process may write to it: as the user as whom it acts, and not on a read-only file system."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def on_one_line(path: Path) -> str:
    """The path for a message: with quotes and escapes where a letter of it cannot be printed on one line.

    >>> on_one_line(Path("runs")), on_one_line(Path("a\\nb"))
    ('runs', "'a\\\\nb'")
    """
    return str(path) if str(path).isprintable() else repr(str(path))


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Write a table as UTF-8 CSV without an index; floats keep all their digits."""
    return write_atomically(path, frame.to_csv(index=False, lineterminator="\n").encode())
