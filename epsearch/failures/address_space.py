"""Checks the address space (`ulimit -v`) before libraries with OpenBLAS are imported.

OpenBLAS ends the process, or tries again for ever, if it has no memory for its buffers.
"""

import mmap
import os
import sys
from functools import partial
from types import SimpleNamespace

from epsearch.operating_system import address_space

LIBRARIES = ("numpy", "scipy.linalg")
"""Modules that load an OpenBLAS."""
OWN, EACH = 160 * 2**20, 40 * 2**20
"""Bytes of an OpenBLAS and the process, and of each core's buffer, rounded up from measurements."""


def check(limit: int, name: str, *_: object) -> None:
    """Raises MemoryError where a module is one of LIBRARIES and does not fit; limit: of the address space, in bytes."""
    if name in LIBRARIES:
        try:
            mmap.mmap(-1, OWN + EACH * (os.cpu_count() or 1)).close()
        except (OSError, MemoryError) as error:
            raise MemoryError(f"no room for {name} in the {limit / 2**20:.0f} MiB of `ulimit -v`") from error


def check_imports() -> None:
    """Runs `check` before every import from now on, where the system limits the address space."""
    if (limit := address_space()) is not None:
        # A finder that finds nothing: the next ones do.
        sys.meta_path.insert(0, SimpleNamespace(find_spec=partial(check, limit)))
