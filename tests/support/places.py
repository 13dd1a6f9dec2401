"""Where tests write: into memory where there is room, and to the disk what is too large for that."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

MEMORY, ROOM = Path("/dev/shm"), 8 << 30


def use_memory():
    """From now on temporary files of this process and of those that it starts lie in memory, if nobody said where.

    Ledgers wait for the disk at every commit; with tests side by side that took half of their time.
    """
    os.environ.setdefault("EPSEARCH_TESTS_DISK", tempfile.gettempdir())
    # Programs that tests write cannot be started from where containers have their memory.
    usable = MEMORY.is_dir() and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if "TMPDIR" not in os.environ and usable and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@contextmanager
def on_disk():
    """A folder for gigabytes, beside which packages can be linked instead of copied."""
    with tempfile.TemporaryDirectory(dir=os.environ["EPSEARCH_TESTS_DISK"]) as folder:
        yield Path(folder)
