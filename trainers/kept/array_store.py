"""Arrays kept in a folder under content keys, for other cohorts and for a run that is killed.

A file is sealed with its key (`sealed`): nothing is read but what was kept under it. Losing the folder loses time only.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from trainers.kept import sealed

LARGEST_FOLDER = 4 * 2**30  # bytes; the files that were not used for longest go first

Arrays = dict[str, NDArray[Any]]


class Kept:
    """One folder of sealed `.npz` files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, content: Mapping[str, Any]) -> Arrays | None:
        """The arrays kept under this JSON-able description; None where there are none, or none that are undamaged."""
        path, mark = self._file(content)
        stored = sealed.read(path, mark, "what it kept is trained again")
        if stored is None:
            return None
        with suppress(OSError):  # somebody else's file, perhaps
            os.utime(path)
        # No pickles: what is read back could run code.
        with np.load(io.BytesIO(stored), allow_pickle=False) as archive:
            return dict(archive)

    def save(self, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keeps the arrays instead of what is kept there. A full or forbidden disk is no reason to stop."""
        buffer = io.BytesIO()  # not the file, as the seal is of the whole content
        # Without the option allow_pickle, which NumPy 1 does not know and would write as one more array.
        np.savez(buffer, **cast(Mapping[str, Any], arrays))
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            sealed.write(*self._file(content), buffer.getbuffer())
            self._prune()

    def forget(self, content: Mapping[str, Any]) -> None:
        """Removes what is kept there."""
        with suppress(OSError):
            self._file(content)[0].unlink(missing_ok=True)

    def _file(self, content: Mapping[str, Any]) -> tuple[Path, str]:
        """(the file, the mark it is sealed with)."""
        # Sorted: a description has one key, in whatever order it was put together.
        text = json.dumps(content, sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.kept", text

    def _prune(self) -> None:
        # Newest first: what goes beyond the limit is what was not used for longest, by the times that `load` sets.
        files = sorted(((path.stat(), path) for path in self._folder.iterdir()), key=lambda pair: -pair[0].st_mtime)
        total = 0
        for stat, path in files:
            total += stat.st_size
            if total > LARGEST_FOLDER:
                path.unlink(missing_ok=True)


def fingerprint(array: NDArray[np.float32]) -> str:
    """A hash of an array, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
