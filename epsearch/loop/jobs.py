"""Jobs: a cohort to train, its training by a worker, and its result."""

import hashlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epsearch.cache import cache_folder, learner_cache
from epsearch.gpu_check import FOREIGN, checked_gpu
from epsearch.machine import rounding_hash, usable_cores
from epsearch.operating_system import is_own, user_name
from epsearch.plugins.loading import Plugin, at_fault, files_of, load_expected, versions_of
from trainers.cohort import Architecture, Cohort, CohortResult, Learner
from trainers.hyperparameters import OF_EVERY_METHOD
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath
from trainers.streams import Images, StreamRequest
from trainers.streams.base import TaskStream
from trainers.streams.images.image_set import ImageSet

if TYPE_CHECKING:  # with them comes torch
    from trainers.foreign.process import Limits
    from trainers.population import Training

SELF_REPORTED_MARK = "said"  # begins fingerprints of self-reported results; others are hexadecimal
UNSAFE = re.compile(r"[^A-Za-z0-9_.=+-]+")  # in names of files
LONGEST_NAME = 120  # letters of a member's values in the name of a file
USUAL = {
    hyperparameter.name: hyperparameter.default for hyperparameter in OF_EVERY_METHOD if hyperparameter.later
}  # values that no name has
NETWORK = ("params", "statistics")
"""Fields of a result that stay on the worker."""


Prefix = tuple[int, int | None]
"""Number of the first tasks of a stream, and steps of the last of them, None for all of these."""


class Run(NamedTuple):
    """A learner and the stream it is trained on. Its result is stored as a record."""

    phase: str
    """One of PHASES: `cv` (D^CV), `eval` (D^EV), …"""
    learner: Learner
    order: int = 0
    """The number of the order of its tasks; 0 for the stream's own, or for that of the study."""
    more: int = 0
    """Further tasks that it is trained on after those of D^CV."""
    prefix: Prefix | None = None
    """The part of the stream, from its start on, on which it is trained; None for the whole."""


@dataclass(frozen=True)
class Job:
    """A cohort, with everything that a worker needs to train it."""

    number: int
    """Number within its loop."""
    stage: str
    """Stage of the study, in words."""
    phase: str
    """Stream, one of PHASES: `cv`, `eval`, …"""
    cohort: Cohort
    architecture: Architecture
    stream: StreamRequest
    path: str
    """Name of the numeric path."""
    transfer: bool
    """Whether FWT and LCA are measured."""
    weights: tuple[float, ...]
    """FLOP of a step of one learner in each task, with its share of the tests; empty for plug-in trainers."""
    at_once: int
    """Jobs trained at a time."""
    measure: tuple[int, int] | None = None
    """Tests inside tasks, as for `Training`."""
    order: int = 0
    """Number of the order of the tasks."""
    until: int | None = None
    """How many tasks are trained, as for `Training`: the search may go on to the others. None for all."""
    more: int = 0
    """Further tasks among these, see `Run`."""
    prefix: Prefix | None = None
    """As in `Run`; `until` is its number of tasks."""
    checkpoints: str | None = None
    """Folder or URL of checkpoints, which the driver can reach, too; None for the cache."""
    plugins: tuple[Plugin, ...] = ()
    """Plug-ins to load."""
    limits: "Limits | None" = None
    """Limits of the process of a plug-in trainer; None for other methods."""
    logs: Path | None = None
    """Folder for the output of plug-in trainers, absolute; None for other methods."""
    certify: "Certify | None" = None
    """For a certificate: comparison of its one learner, trained again, alone."""

    @property
    def runs(self) -> list[Run]:
        """A run per learner, in the cohort's order."""
        return [Run(self.phase, learner, self.order, self.more, self.prefix) for learner in self.cohort.learners]


Progress = Callable[[int, float], None]
"""Called with member-steps and their FLOP, including tests.

For plug-in trainers both arguments are the number of tasks, 0 while a task is trained.
"""


@dataclass(frozen=True)
class Certify:
    """Marks a job whose one learner is trained again and compared with its stored result."""

    cohort: tuple[Learner, ...]
    """The learners of the stored result's cohort, including this one; empty to compare with the stored result alone."""
    fingerprint: str
    """Fingerprint of the stored result; "" if there is none."""
    perturbed: bool = False
    """True if the learner's start is perturbed by rounding noise, see `trainers/engines/perturbed_start.py`."""


@dataclass(frozen=True)
class JobResult:
    """Result of a job: a value, or an error."""

    number: int
    """Number of the job."""
    value: CohortResult | None
    """None for an error."""
    seconds: float = 0.0
    """Wall time of the training."""
    error: str = ""
    """In one line."""
    traceback: str = ""
    """Of the worker, for a bug in epsearch; else empty."""
    foreign: bool = False
    """Whether it ends the study as the user's error: code of a plug-in that failed, or has changed."""
    parameter_difference: float = 0.0
    """For a certificate: largest parameter difference between training alone and in the cohort; infinite if unknown."""
    stops: bool = False
    """Whether the machine failed, so that every other job would fail alike."""
    self_check: str = ""
    """Outcome of the GPU's self-check, see `gpu_check`; "" for a CPU."""
    machine: str = ""
    """Kind of machine, see `machine.rounding_hash`; "" if unknown."""
    imported: float = 0.0
    """Seconds in which a plug-in trainer was imported for this and later jobs; no part of `seconds`."""


def execute(
    job: Job, progress: Progress | None = None, images: Images | ImageSet | None = None, share: float = 1.0
) -> JobResult:
    """Trains the job's cohort in this process, on one thread.

    The number of threads can change how sums are rounded.

    Notes of the training become part of the result's note, as a worker's standard error is not displayed.

    progress: called with the work since its last call; an error that it raises ends the training. images: of the
    stream, where they came with the job; share: of the GPU's memory. Raises errors unchanged: the runners turn them
    into lines.
    """
    lines: list[str] = []
    plugins = [load_expected(plugin, job.stream.beside) for plugin in job.plugins if job.limits is None]
    with redirect_notes(lines.append), at_fault(plugins):
        train = _by_epsearch if job.limits is None else _by_trainer
        result = train(job, progress, job.stream.open(images), share)
    assert result.value is not None
    note = "\n".join(line for line in (result.value.note, *lines) if line)
    machine = result.machine or rounding_hash(NumericPath.parse(job.path).device)
    return replace(result, value=replace(_cut(result.value, job.until), note=note), machine=machine)


def _cut(value: CohortResult, tasks: int | None) -> CohortResult:
    """Returns the result of the first tasks, as that of a stream which ends there; None for all."""
    return replace(
        value,
        accuracies=value.accuracies[:, :tasks, :tasks],
        initial=value.initial[:, :tasks],
        within=value.within[:, :tasks],
        violations=value.violations[:, :tasks],
        inside=value.inside[:, :, : None if tasks is None else 2 + tasks],
    )


def _by_epsearch(job: Job, progress: Progress | None, stream: TaskStream, share: float) -> JobResult:
    """Trains the job's cohort after a self-check of the GPU."""
    # Late, as are the others: the driver needs none of it.
    from trainers.engines.precision import one_thread

    training = training_of(job, stream)
    first, parts = job.cohort.learners[0], {plugin.reference: plugin.parts for plugin in job.plugins}
    with one_thread(), checked_gpu(first, stream, job.architecture, training.chosen, parts) as outcome:
        return replace(_train(job, training, progress, share), self_check=outcome)


def _train(job: Job, training: "Training", progress: Progress | None, share: float) -> JobResult:
    """Trains the cohort; or, for a certificate, its learner alone, with the difference to its cohort."""
    from trainers.engines.perturbed_start import make_moved
    from trainers.paths import train_path
    from trainers.population import train_rest

    def by_task(steps: Mapping[int, int]) -> None:
        assert progress is not None
        progress(sum(steps.values()), sum(count * job.weights[task] for task, count in steps.items()))

    report, started = None if progress is None else by_task, time.perf_counter()
    if job.certify is None:
        fitting = replace(training, bytes_free=bytes_free(training.chosen, job.at_once, share))
        # What a fork goes on from may lie on another machine, or be gone: then it is trained first.
        return JobResult(job.number, train_path(job.cohort, fitting, report), time.perf_counter() - started)
    # A certificate uses no checkpoints, which may be damaged.
    if job.certify.perturbed:
        value = train_rest(job.cohort, training, training.checkpoints(job.cohort), {}, report, make_moved)
    else:
        value = train_path(job.cohort, training, report)
    difference = 0.0
    # The ledger has no parameters: to measure their difference, the cohort is trained again.
    if value.fingerprints[0] != job.certify.fingerprint and not job.certify.cohort:
        difference = math.inf
    elif value.fingerprints[0] != job.certify.fingerprint:
        together = train_path(Cohort(job.certify.cohort), training, report)
        row = job.certify.cohort.index(job.cohort.learners[0])
        difference = float(np.abs(value.params[0] - together.params[row]).max())
    return JobResult(job.number, value, time.perf_counter() - started, parameter_difference=difference)


def _by_trainer(job: Job, progress: Progress | None, stream: TaskStream, share: float) -> JobResult:
    """Trains the learner of a job by a plug-in trainer, in a process of its own."""
    from trainers.foreign import running
    from trainers.foreign.measuring import SELF_REPORTED
    from trainers.foreign.process import Observations

    assert job.limits is not None
    (learner,), (plugin,) = job.cohort.learners, (plugin for plugin in job.plugins if plugin.kind == "trainer")
    path, limits = NumericPath.parse(job.path), job.limits
    if limits.bytes is None:
        limits = replace(limits, bytes=bytes_free(path, job.at_once, share))
    beside, files, versions = job.stream.beside, files_of(plugin.parts), versions_of(plugin.parts)
    networks = {network.reference: files_of(network.parts) for network in job.plugins if network.kind == "network"}
    request = running.Request(plugin.reference, beside, files, versions, path.device, limits=limits, networks=networks)
    # A certificate shows what a fresh import comes to, also where all others are copies of one.
    request = replace(request, copied=job.certify is None)
    run = running.Run(vars(learner.hyperparameters), learner.seed, stream, job.transfer)
    started = time.perf_counter()
    report = None if progress is None else lambda tasks: progress(tasks, float(tasks))
    folder, log = None if job.certify else cache_folder() / "trainers", log_of(job)
    observations = Observations(closely=False)
    value = running.train(request, run, report, folder, observations, log)
    if SELF_REPORTED in value.note:
        value = replace(
            value,
            fingerprints=np.array([mark_self_reported(fingerprint) for fingerprint in value.fingerprints]),
            note="",
        )
    repeats = job.certify is None or job.certify.fingerprint == value.fingerprints[0]
    seconds = time.perf_counter() - started - observations.imported
    differ, outcome = 0.0 if repeats else math.inf, "" if path.device == "cpu" else FOREIGN
    return JobResult(
        job.number,
        value,
        seconds,
        parameter_difference=differ,
        self_check=outcome,
        machine=rounding_hash(path.device, observations.capability),
        imported=observations.import_seconds,
    )


def log_of(job: Job) -> Path | None:
    """Returns the log of a plug-in trainer's output on this machine, in a folder that exists; None if there is none.

    The folder of the study, where this machine reaches it; else a folder of temporary files.
    """
    if job.logs is None:
        return None
    folder = job.logs
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        # A machine of a cluster that does not share it; the name can be foreseen, so the folder must be ours alone.
        base = Path(tempfile.gettempdir()) / f"epsearch-logs-{user_name()}"
        folder = base / folder.parent.name
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            if not is_own(base):
                return None
            folder.mkdir(exist_ok=True)
        except OSError:
            return None
    return folder / f"{member_name(job.runs[0])}.log"


def member_name(run: Run) -> str:
    """Returns a name of a member that is safe as that of a file: method, values, seed, stream.

    >>> member_name(Run("cv", Learner.of("agem", 3, lr=0.1, batch_size=10, memory=5, memory_batch=8)))
    'agem_lr=0.1_batch_size=10_memory=5_memory_batch=8_seed=3_cv'
    """
    # Not the learner's identity: a worker of a cluster does not know the declaration of a trainer that came to it.
    learner = run.learner
    values = vars(learner.hyperparameters).items()
    text = "_".join(f"{name}={value}" for name, value in values if (name, value) not in USUAL.items())
    safe = UNSAFE.sub("-", text)[:LONGEST_NAME]
    # Values that are cut or replaced could have the same name.
    more = "" if safe == text else f"_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    method = UNSAFE.sub("-", learner.method)[-LONGEST_NAME // 2 :]
    order = f"_order={run.order}" if run.order else ""
    order += f"_more={run.more}" if run.more else ""
    order += f"_first={run.prefix[0]}_{run.prefix[1] or 'all'}" if run.prefix else ""
    return f"{method}_{safe}{more}_seed={learner.seed}{order}_{run.phase}"


def mark_self_reported(fingerprint: str) -> str:
    """Returns the fingerprint of a self-reported result, as long as others."""
    return SELF_REPORTED_MARK + fingerprint[len(SELF_REPORTED_MARK) :]


def is_self_reported(fingerprint: str) -> bool:
    """Returns whether a fingerprint is of a self-reported result.

    >>> is_self_reported(mark_self_reported("0123456789abcdef")), is_self_reported("0123456789abcdef")
    (True, False)
    """
    return fingerprint.startswith(SELF_REPORTED_MARK)


def training_of(job: Job, stream: TaskStream) -> "Training":
    """Returns the training settings of the job. Certificates use no checkpoints."""
    from trainers.checkpoints import NEWEST, TRAINING
    from trainers.population import Training

    path, last = NumericPath.parse(job.path), job.prefix[1] if job.prefix else None
    plain = Training(stream, job.architecture, path, job.transfer, job.measure, job.until, last_steps=last)
    if job.certify is not None:
        return plain
    # The driver removes checkpoints for all machines, once it has stored the results.
    keep = TRAINING if job.checkpoints is None else NEWEST
    return replace(plain, folder=learner_cache(), store=job.checkpoints, keep=keep)


def delete_checkpoints(job: Job, stream: TaskStream) -> None:
    """Removes the checkpoints of a job whose results are stored, from the folder of all machines.

    And of one that the search might have gone on with from this machine's cache.
    """
    if (job.checkpoints is not None or job.until is not None) and job.certify is None:
        training_of(job, stream).checkpoints(job.cohort).delete(job.cohort.learners)


def checkpoint_names(job: Job, stream: TaskStream) -> set[str]:
    """Returns the names of the checkpoints of a job's members, where this machine can reach them."""
    return training_of(job, stream).checkpoints(job.cohort).names(job.cohort.learners) if job.certify is None else set()


def bytes_free(path: NumericPath, at_once: int, share: float = 1.0) -> int | None:
    """Returns a job's share of the free memory of this machine, in bytes; None if unknown.

    at_once: jobs at a time, which share the memory; share: of a GPU's memory.
    """
    from trainers.free_memory import free_bytes

    free = free_bytes(path)
    return None if free is None else int(free * (1 / min(at_once, usable_cores()) if path.device == "cpu" else share))


def encode(value: CohortResult) -> str:
    """Returns the result as JSON, without the network; floats, including NaN, are restored bit for bit."""
    names = (field.name for field in fields(value) if field.name not in NETWORK)
    return json.dumps({name: np.asarray(getattr(value, name)).tolist() for name in names})


def decode(text: str) -> CohortResult:
    """Returns the result from `encode`; parts of the network are None for each learner."""
    raw = json.loads(text)
    values: dict[str, Any] = {name: np.array(part) if isinstance(part, list) else part for name, part in raw.items()}
    values |= {name: np.full(len(raw["initial"]), None, dtype=object) for name in NETWORK}
    # Lists without a point do not say how long a point is.
    learners, tasks = values["initial"].shape
    values["inside"] = values["inside"].reshape(learners, -1, 2 + tasks)
    return CohortResult(**values)
