"""Checkpoints of learners after a task: shared first tasks, and runs.

First tasks are shared by other cohorts; runs serve restarts and forks. Without a memory ε plays no part, nor does the
method, so a first task of plain SGD is kept once for all of them, in a folder of this machine. Runs are kept under the
learner's own key, there or in a place that machines share. What is kept of one are its parameters, the method's arrays,
the accuracies so far and the number of the task: memory and schedule follow from that and the seed.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from trainers.cohort import PROTOCOL_VERSION, STARTS, Architecture, Cohort, CohortResult, Learner, find_plugged
from trainers.engines.base import Learners
from trainers.forks import Fork, describe
from trainers.hyperparameters import OF_EVERY_METHOD
from trainers.networks.weights import check
from trainers.numeric_path import NumericPath
from trainers.persistence.array_store import Arrays, load_arrays, save_arrays
from trainers.persistence.places import Folder, Place, place
from trainers.persistence.runs import Runs
from trainers.streams.base import TaskStream
from trainers.streams.task_order import with_first_task_of

AT_MOST_EVERY = 20.0  # seconds between two checkpoints of a run: a short run needs none
STATE, RESULT = "state.", "result."  # what the names in a file begin with
TRAINING, NEWEST, EVERY = KEEP = ("training", "newest", "all")
INSIDE = "inside"  # kept only of learners that are tested inside tasks
MEASURED = ("accuracies", "initial", "within", "inside", "violations", "diverged_task", "diverged_step")


Origin: TypeAlias = tuple[int, float, tuple[float, ...]]
"""Seed, learning rate and other values per learner on which a first task depends."""


def origin_of(learner: Learner) -> Origin:
    """Returns the origin of a learner's first task."""
    rate, *others = (learner.hyperparameters.get(name) for name in learner.declared.in_first_task)
    return learner.seed, rate, tuple(others)


@dataclass(frozen=True)
class CheckpointOptions:
    """Places of checkpoints, and how many are stored. Raises ValueError, in one line."""

    folder: Path | None = None
    """First tasks, and runs where there is no `store`: a cache of limited size, of this machine."""
    store: str | Path | None = None
    """Runs: a folder or a URL of fsspec."""
    keep: str = TRAINING
    """One of KEEP: "training" keeps the newest task of a run until the training ends, "newest" keeps it until `delete`,
    "all" keeps every task until `delete`."""

    until: int | None = None
    """Number of tasks that are trained to their ends, after which a run is kept in any case; None for all."""

    def __post_init__(self) -> None:
        if self.keep not in KEEP:
            raise ValueError(f"keep must be one of {', '.join(KEEP)}, got {self.keep!r}")
        if self.keep != TRAINING and self.store is None:
            raise ValueError(f"keep {self.keep!r} needs a store: the folder is a cache, from which anything may go")


class Checkpoints:
    """First tasks and runs of the learners of a cohort, on one stream and numeric path."""

    def __init__(
        self,
        options: CheckpointOptions,
        cohort: Cohort,
        stream: TaskStream,
        architecture: Architecture,
        path: NumericPath,
        transfer: bool,
        measure: tuple[int, int] | None = None,
    ) -> None:
        self._saved, self._tasks = time.monotonic(), len(stream.tasks)
        self._until = self._tasks if options.until is None else options.until
        self._every = options.keep == EVERY
        common: dict[str, Any] = {
            "version": PROTOCOL_VERSION,
            "stream": stream.describe(),
            "hidden": architecture.hidden,
            "network": architecture.network,
            "pretrained": None if architecture.pretrained is None else check(architecture.pretrained),
            "path": str(path),
            "transfer": transfer,
        }
        if architecture.start != STARTS[0]:
            common["start"] = architecture.start
        if measure is not None:
            common["measure"] = list(measure)
        if architecture.own:
            common["network_source"] = dict(find_plugged(architecture.network).source.hashes)
        here = machine(path)
        self._folder = options.folder
        plain = cohort.declared.first_task_is_sgd
        identity = cohort.learners[0].identity
        shared = {
            hyperparameter.name: identity[hyperparameter.name]
            for hyperparameter in OF_EVERY_METHOD
            if not hyperparameter.per_learner and hyperparameter.name in identity
        }
        # Before the first task ends nothing depends on the later ones, unless these are tested, too.
        of_stream = {} if transfer else {"stream": with_first_task_of(common["stream"])}
        self._first = common | shared | of_stream | {"machine": here} if plain and self._until else None
        where = _place(options)
        later = common | {"method": cohort.method}
        self._runs = Runs(where, later, " ".join(here), self._every) if where else None
        self.states: dict[tuple[Learner, int], Arrays] = {}
        """What is kept in memory, too, by (learner, position of a task): of keys that are here before the training."""

    def first(self, origin: Origin) -> Arrays | None:
        """Returns parameters and measurements after a first task of plain SGD."""
        if self._folder is None or self._first is None:
            return None
        return load_arrays(self._folder, self._first | _name_part(origin))

    def save_first(self, origins: list[Origin], learners: Learners, result: CohortResult) -> None:
        """Keeps every origin's first task, where it is plain SGD; rows in the order of `origins`."""
        if self._folder is None or self._first is None:
            return
        for origin, arrays in zip(origins, _arrays(learners, result), strict=True):
            save_arrays(self._folder, self._first | _name_part(origin), arrays)

    def last(self, learner: Learner, before: int | None = None) -> tuple[int, Arrays] | None:
        """Returns (the last task kept, its checkpoint) of a learner whose run did not end; None without one.

        A fork has at least the checkpoint that it begins with. before: of the tasks before this one; None for all that
        are trained.
        """
        if self._runs is None:
            return None
        # What was kept of later tasks says nothing of this one's network.
        newest = self._runs.newest(describe(learner), self._until if before is None else before)
        if newest is not None or not isinstance(learner, Fork):
            return newest
        arrays = self._runs.at(describe(learner.origin), learner.after)
        return None if arrays is None else (learner.after, arrays)

    def save(self, trained: Sequence[Learner], task: int, learners: Learners, result: CohortResult) -> None:
        """Keeps every learner's run up to this task, unless that was done a moment ago and nothing goes on from it.

        Never after a task that is not trained to its end.
        """
        recent, ends = time.monotonic() - self._saved < AT_MOST_EVERY, task == self._until - 1 < self._tasks - 1
        stores = self._runs is not None and (self._every or ends or not recent)
        if task >= self._until or not (stores or self.states):
            return
        for learner, arrays in zip(trained, _arrays(learners, result), strict=True):
            if (learner, task) in self.states:
                self.states[learner, task] = {name: np.array(array) for name, array in arrays.items()}
            if stores and self._runs is not None:
                self._runs.save(describe(learner), task, arrays)
        if stores:
            self._saved = time.monotonic()

    def names(self, trained: Iterable[Learner]) -> set[str]:
        """Returns the names of the checkpoints of runs; each task has one of its own."""
        return set() if self._runs is None else self._runs.names([describe(learner) for learner in trained])

    def delete(self, trained: Iterable[Learner]) -> None:
        """Removes the checkpoints of runs; fork points only with "all", for which those are kept."""
        if self._runs is not None:
            self._runs.delete([describe(learner) for learner in trained])


def machine(path: NumericPath) -> list[str]:
    """Returns the facts that change the rounding of a path: processor, GPU and version of the library."""
    gpu = [torch.cuda.get_device_name()] if path.device == "cuda" and torch.cuda.is_available() else []
    return [torch.__version__, torch.backends.cpu.get_cpu_capability(), *gpu]


def _place(options: CheckpointOptions) -> Place | None:
    """Returns the storage of runs; None for none."""
    if options.store is not None:
        return place(options.store)
    return Folder(options.folder, limited=True) if options.folder else None


def _name_part(origin: Origin) -> dict[str, Any]:
    """Returns the part of a name that differs between learners of a cohort."""
    seed, rate, others = origin
    return {"seed": seed, "rate": rate} | ({"others": others} if others else {})


def restore(stored: list[Arrays], learners: Learners, result: CohortResult) -> None:
    """Writes the checkpoint of each learner into its row."""
    for row, arrays in enumerate(stored):
        learners.params[row] = torch.from_numpy(arrays["params"])
        for name, array in learners.state.items():
            array[row] = torch.from_numpy(arrays[STATE + name])
        for name in MEASURED:
            if name != INSIDE:
                getattr(result, name)[row] = arrays[RESULT + name]
        if RESULT + INSIDE in arrays:
            # A fork has tasks of other lengths than its origin, and so another number of points in all.
            points = arrays[RESULT + INSIDE][: result.inside.shape[1]]
            result.inside[row, : len(points)] = points


def _arrays(learners: Learners, result: CohortResult) -> Iterator[Arrays]:
    """Yields the stored arrays of each learner."""
    for row, params in enumerate(learners.params):
        state = {STATE + name: array[row].cpu().numpy() for name, array in learners.state.items()}
        names = [name for name in MEASURED if name != INSIDE or result.inside.size]
        measured: dict[str, Any] = {RESULT + name: getattr(result, name)[row] for name in names}
        yield {"params": params.cpu().numpy(), **state, **measured}
