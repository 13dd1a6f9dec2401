"""Networks after their first task, kept for other cohorts: without a memory ε plays no part, nor does the method.

One file for each seed and content key, so that rounds, studies and their workers share it. A file is written to the
side and renamed; what cannot be read is trained again. Losing the folder loses time only.
"""

import hashlib
import io
import json
import os
import tempfile
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.cohort import CohortResult, TrainConfig
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

VERSION = 1  # goes up whenever a change of the trainers changes any figure of a first task
LARGEST_FOLDER = 2**30  # bytes; the files that were not used for longest go first
MEASURED = ("accuracies", "initial", "within", "diverged_task", "diverged_step")


class Prefixes:
    """The kept first tasks of one stream, configuration and numeric path."""

    def __init__(
        self, folder: Path, stream: TaskStream, config: TrainConfig, path: NumericPath, transfer: bool
    ) -> None:
        self._folder, self._tasks = folder, len(stream.tasks)
        self._content = {
            "version": VERSION,
            "stream": stream.describe(),
            "learning_rate": config.learning_rate,
            "batch_size": config.batch_size,
            "hidden": config.hidden,
            "path": str(path),
            "transfer": transfer,
            # The same path rounds differently on another processor or with another library.
            "machine": [torch.__version__, torch.backends.cpu.get_cpu_capability(), _gpu(path)],
        }

    def load(self, seed: int) -> tuple[NDArray[np.float32], dict[str, NDArray[np.float64]]] | None:
        """(parameters [D], what was measured, by the names of CohortResult's fields without M); None if not kept."""
        path = self._path(seed)
        try:
            with np.load(io.BytesIO(path.read_bytes())) as found:
                values = {name: found[name] for name in ("params", *MEASURED)}
            os.utime(path)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None
        return values.pop("params"), values

    def save(self, seed: int, params: NDArray[np.float32], result: CohortResult, row: int) -> None:
        """Keeps row `row` of a result after its first task. A full or forbidden disk is no reason to stop."""
        buffer = io.BytesIO()
        np.savez(buffer, params=params, **{name: getattr(result, name)[row] for name in MEASURED})
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, beside = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                file.write(buffer.getvalue())
            os.replace(beside, self._path(seed))
            self._prune()
        except OSError:
            return

    def _path(self, seed: int) -> Path:
        text = json.dumps({**self._content, "seed": seed}, sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def _prune(self) -> None:
        files = sorted(((path.stat(), path) for path in self._folder.iterdir()), key=lambda pair: -pair[0].st_mtime)
        total = 0
        for stat, path in files:
            total += stat.st_size
            if total > LARGEST_FOLDER:
                path.unlink(missing_ok=True)


def fingerprint(params: NDArray[np.float32]) -> str:
    """A hash of a network's parameters, bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(params).tobytes()).hexdigest()[:16]


def _gpu(path: NumericPath) -> str | None:
    return torch.cuda.get_device_name() if path.device == "cuda" else None
