"""Saved state of a run after its last reported task.

Of trainers with `save` and `load`; removed when the run ends.
"""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trainers.notes import notify
from trainers.persistence.array_store import Arrays
from trainers.persistence.places import Folder
from trainers.persistence.runs import Runs

MOST = 2**31  # bytes of a state: it is held in memory while it is written and read
STATE = "state"


class SavedState:
    """The state of a run, by all that it depends on. folder: a cache, None to store nothing.

    A file has a checksum and replaces the one before at once: it holds the rows and the state after the same task.
    """

    def __init__(self, folder: Path | None, run: Mapping[str, Any], device: str) -> None:
        self._run = dict(run)
        machine = f"{platform.system()} {platform.machine()} {device}"
        self._runs = None if folder is None else Runs(Folder(folder, limited=True), {"own": "trainer"}, machine, False)

    @property
    def keeps(self) -> bool:
        """True if there is a place."""
        return self._runs is not None

    def newest(self, state: Path) -> tuple[int, Arrays] | None:
        """Returns (the last task kept undamaged, its arrays besides the state); writes the state into the file.

        None where nothing is kept.
        """
        newest = None if self._runs is None else self._runs.newest(self._run)
        if newest is None:
            return None
        task, arrays = newest
        state.write_bytes(arrays.pop(STATE).tobytes())
        return task, arrays

    def save(self, task: int, state: Path, arrays: Arrays) -> None:
        """Keeps the state that the trainer has saved into the file, if it has, and its reports by then."""
        if self._runs is None or not state.is_file() or state.is_symlink():
            return
        if (size := state.stat().st_size) > MOST:
            notify(f"the state of a trainer after task {task} is not kept: it has {size:,} bytes, more than {MOST:,}")
            return
        self._runs.save(self._run, task, arrays | {STATE: np.fromfile(state, np.uint8)})

    def delete(self) -> None:
        """Deletes the saved states of the run, which has ended."""
        if self._runs is not None:
            self._runs.delete([self._run])
