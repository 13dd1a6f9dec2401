"""Under a limit of address space (`ulimit -v`): room for libraries that take their end badly is made sure of before.

Where OpenBLAS has no memory for its buffers, it ends the process or tries again for ever, while it is being loaded.
"""

import mmap
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

LIBRARIES = ("numpy", "scipy.linalg")
"""Modules that bring an OpenBLAS along."""
OWN, EACH = 160 * 2**20, 40 * 2**20
"""Bytes that one takes: for its code and the process, and for each core's buffer. As measured, and some more."""


class Room(MetaPathFinder):
    """Finds nothing; raises MemoryError before one of LIBRARIES is imported where there is no room for it.

    limit: bytes of the address space, as the line says it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Makes sure of the room."""
        if name in LIBRARIES:
            try:
                mmap.mmap(-1, OWN + EACH * (os.cpu_count() or 1)).close()
            except (OSError, MemoryError) as error:
                said = f"no room for {name} in the {self._limit / 2**20:.0f} MiB of `ulimit -v`"
                raise MemoryError(said) from error
        return None


def make_sure() -> None:
    """Has room made sure of from now on, where the system limits the address space of this process."""
    try:
        import resource
    except ImportError:  # as on Windows, which has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        sys.meta_path.insert(0, Room(limit))
