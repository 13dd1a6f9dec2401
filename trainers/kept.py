"""Arrays kept in a folder under content keys, for other cohorts and for a run that is killed.

A file is written to the side and renamed; what cannot be read counts as not kept. Losing the folder loses time only.
"""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

LARGEST_FOLDER = 4 * 2**30  # bytes; the files that were not used for longest go first

Arrays = dict[str, NDArray[Any]]


class Kept:
    """One folder of `.npz` files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, content: Mapping[str, Any]) -> Arrays | None:
        """The arrays kept under this JSON-able description; None where there are none."""
        path = self._path(content)
        try:
            with np.load(io.BytesIO(path.read_bytes())) as found:
                values = {name: found[name] for name in found.files}
            os.utime(path)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None
        return values

    def save(self, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keeps the arrays instead of what is kept there. A full or forbidden disk is no reason to stop."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, beside = tempfile.mkstemp(dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(buffer.getbuffer())
                os.replace(beside, self._path(content))
            finally:
                Path(beside).unlink(missing_ok=True)
            self._prune()

    def forget(self, content: Mapping[str, Any]) -> None:
        """Removes what is kept there."""
        with suppress(OSError):
            self._path(content).unlink(missing_ok=True)

    def _path(self, content: Mapping[str, Any]) -> Path:
        text = json.dumps(content, sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def _prune(self) -> None:
        files = sorted(((path.stat(), path) for path in self._folder.iterdir()), key=lambda pair: -pair[0].st_mtime)
        total = 0
        for stat, path in files:
            total += stat.st_size
            if total > LARGEST_FOLDER:
                path.unlink(missing_ok=True)


def fingerprint(array: NDArray[np.float32]) -> str:
    """A hash of an array, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
