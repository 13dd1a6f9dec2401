"""Learners after a task, kept in a folder: first tasks for other cohorts to share, later ones for a run that is killed.

Without a memory ε plays no part, nor does the method, so a first task of plain SGD is kept once for all of them. Later
tasks are kept under the learner's own key, the newest only, until the run ends.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from trainers.cohort import PROTOCOL_VERSION, Architecture, Cohort, CohortResult, Learner
from trainers.engines.base import Learners
from trainers.kept.array_store import Arrays, Kept
from trainers.networks.weights import check
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

AT_MOST_EVERY = 20.0  # seconds between two checkpoints of a run: a short run needs none
STATE, RESULT = "state.", "result."  # what the names in a file begin with
MEASURED = ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step")


class Origin(NamedTuple):
    """What a first task depends on besides what a cohort shares; others: values that all have a part in it but lr."""

    seed: int
    rate: float
    others: tuple[float, ...] = ()

    @classmethod
    def of(cls, learner: Learner) -> "Origin":
        """Returns the origin of a learner's first task."""
        rate, *others = (learner.hyperparameters.get(name) for name in learner.declared.in_first_task)
        return cls(learner.seed, rate, tuple(others))


class Checkpoints:
    """What is kept of runs of learners that are alike, on one stream and numeric path. Without a folder, nothing."""

    def __init__(
        self,
        folder: Path | None,
        cohort: Cohort,
        stream: TaskStream,
        architecture: Architecture,
        path: NumericPath,
        transfer: bool,
    ) -> None:
        self._kept = Kept(folder) if folder else None
        self._saved = time.monotonic()
        gpu = torch.cuda.get_device_name() if path.device == "cuda" else None
        common = {
            "version": PROTOCOL_VERSION,
            "stream": stream.describe(),
            "batch_size": cohort.shared.batch_size,
            "hidden": architecture.hidden,
            "network": architecture.network,
            "pretrained": None if architecture.pretrained is None else check(architecture.pretrained),
            "path": str(path),
            "transfer": transfer,
            # The same path rounds differently on another processor or with another library.
            "machine": [torch.__version__, torch.backends.cpu.get_cpu_capability(), gpu],
        }
        self._first = common if cohort.declared.first_task_is_sgd else None
        self._later = common | {"method": cohort.method}

    def first(self, origin: Origin) -> Arrays | None:
        """Parameters and measurements after a first task of plain SGD."""
        if self._kept is None or self._first is None:
            return None
        return self._kept.load(self._first | _named(origin))

    def save_first(self, origins: list[Origin], learners: Learners, result: CohortResult) -> None:
        """Keeps every origin's first task, where it is plain SGD; rows in the order of `origins`."""
        if self._kept is None or self._first is None:
            return
        for origin, arrays in zip(origins, _arrays(learners, result), strict=True):
            self._kept.save(self._first | _named(origin), arrays)

    def last(self, learner: Learner) -> tuple[int, Arrays] | None:
        """(the last task that was kept, what was kept) of a learner whose run did not end; None where it is not."""
        arrays = self._kept.load(self._later | _own(learner)) if self._kept else None
        return None if arrays is None else (int(arrays.pop("task")), arrays)

    def save(self, trained: Sequence[Learner], task: int, learners: Learners, result: CohortResult) -> None:
        """Keeps every learner's run up to this task, unless that has been done a moment ago."""
        if self._kept is None or time.monotonic() - self._saved < AT_MOST_EVERY:
            return
        for one, arrays in zip(trained, _arrays(learners, result), strict=True):
            self._kept.save(self._later | _own(one), arrays | {"task": np.array(task)})
        self._saved = time.monotonic()

    def forget(self, trained: Iterable[Learner]) -> None:
        """Removes the checkpoints of runs that have ended."""
        if self._kept is None:
            return
        for one in trained:
            self._kept.forget(self._later | _own(one))


def _named(origin: Origin) -> dict[str, Any]:
    """Of plain SGD, which only the seed and the learning rate tell apart."""
    return {"seed": origin.seed, "rate": origin.rate}


def _own(learner: Learner) -> dict[str, Any]:
    return {"hyperparameters": vars(learner.hyperparameters), "seed": learner.seed}


def restore(kept: list[Arrays], learners: Learners, result: CohortResult) -> None:
    """Writes what was kept of each learner into its row."""
    for row, arrays in enumerate(kept):
        learners.params[row] = torch.from_numpy(arrays["params"])
        for name, array in learners.state.items():
            array[row] = torch.from_numpy(arrays[STATE + name])
        for name in MEASURED:
            getattr(result, name)[row] = arrays[RESULT + name]


def _arrays(learners: Learners, result: CohortResult) -> Iterator[Arrays]:
    """What is kept of each learner."""
    for row, params in enumerate(learners.params):
        state = {STATE + name: array[row].cpu().numpy() for name, array in learners.state.items()}
        measured: dict[str, Any] = {RESULT + name: getattr(result, name)[row] for name in MEASURED}
        yield {"params": params.cpu().numpy(), **state, **measured}
