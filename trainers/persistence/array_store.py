"""Arrays in a folder under content keys: a cache of limited size.

The checksum of a file includes its key (`checked_files`): nothing is read but what was kept under it. Losing the
folder loses time only.
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

from trainers.persistence import checked_files

LARGEST_FOLDER = 4 * 2**30  # bytes; the files that were not used for longest go first
SLACK = 64

Arrays = dict[str, NDArray[Any]]


_written: dict[Path, int] = {}
"""Folder -> bytes that this process has written into it since it was last looked through."""


def load_arrays(folder: Path, content: Mapping[str, Any]) -> Arrays | None:
    """Returns the arrays of a JSON-able description; None where there are none, or damaged ones."""
    path, mark = arrays_file(folder, content)
    stored = checked_files.read(path, mark, "what it kept is trained again")
    if stored is None:
        return None
    with suppress(OSError):  # somebody else's file, perhaps
        os.utime(path)
    return unpack(stored)


def save_arrays(folder: Path, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Stores arrays under a JSON-able description, replacing others. A full or forbidden disk is no reason to stop."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        stored = pack(arrays)
        checked_files.write(*arrays_file(folder, content), stored)
        prune(folder, stored.nbytes)


def arrays_file(folder: Path, content: Mapping[str, Any]) -> tuple[Path, str]:
    """Returns the file of a description, and the mark in its checksum."""
    text = mark_of(content)
    return folder / f"{file_name(text)}.kept", text


def mark_of(content: Any) -> str:
    """Returns a JSON-able description as one line, whatever order it was put together in."""
    return json.dumps(content, sort_keys=True)


def file_name(mark: str) -> str:
    """Returns a name for a file, 32 hexadecimal digits."""
    return hashlib.sha256(mark.encode()).hexdigest()[:32]


def pack(arrays: Mapping[str, NDArray[Any]]) -> memoryview:
    """Returns the arrays as an `.npz` file."""
    buffer = io.BytesIO()  # not a file, as a checksum is of the whole content
    # Without the option allow_pickle, which NumPy 1 does not know and would write as one more array.
    np.savez(buffer, **cast(Mapping[str, Any], arrays))
    return buffer.getbuffer()


def unpack(content: bytes) -> Arrays:
    """Returns the inverse of `pack`."""
    # No pickles: what is read back could run code.
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def prune(folder: Path, added: int) -> None:
    """Removes the files with the oldest last use, which `load_arrays` notes, down to LARGEST_FOLDER bytes.

    added: bytes of the newest file. The folder is looked through at a process's first file and whenever its further
    ones may have made a difference, so that it may be larger by a SLACK-th for each process.
    """
    since = _written.get(folder, LARGEST_FOLDER) + added
    if since < LARGEST_FOLDER // SLACK:
        _written[folder] = since
        return
    _written[folder] = 0
    paths = (path for path in folder.rglob("*") if not path.is_dir())
    files = sorted(((path.stat(), path) for path in paths), key=lambda pair: -pair[0].st_mtime)
    total = 0
    for stat, path in files:
        total += stat.st_size
        if total > LARGEST_FOLDER:
            path.unlink(missing_ok=True)


def fingerprint(array: NDArray[np.float32]) -> str:
    """Returns a hash of an array, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
