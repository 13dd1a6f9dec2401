"""Processes that would make the same folder take turns, and what killed ones left is removed."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ABANDONED = 7 * 86_400.0  # seconds after which an unfinished folder is nobody's
UNFINISHED = re.compile(r"\.[0-9a-f]{24}-\d+-v\d+\.")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until no other process makes this folder, then removes what killed ones left beside it.

    Where files cannot be locked nobody waits, and the first to rename wins. Raises OSError.
    """
    with open(folder.parent / f"{beside(folder)}lock", "ab") as file:
        locked = _lock(file.fileno())
        _clean(folder, locked)
        yield


def beside(folder: Path) -> str:
    """How the names of a folder's unfinished neighbours begin."""
    return f".{folder.name}."


def _lock(file: int) -> bool:
    """Whether the lock is held, until the file is closed."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    except (ImportError, OSError):  # Windows, and some network file systems
        return False
    return True


def _clean(folder: Path, locked: bool) -> None:
    """Unfinished folders of this name are nobody's while the lock is held; others are when they are old.

    Nothing else is touched: the cache may lie in a folder of the user's.
    """
    for path in folder.parent.glob(".*"):
        with suppress(OSError):
            ours = locked and path.name.startswith(beside(folder))
            old = UNFINISHED.match(path.name) and time.time() - path.stat().st_mtime > ABANDONED
            if path.is_dir() and (ours or old):
                shutil.rmtree(path, ignore_errors=True)
