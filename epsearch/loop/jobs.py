"""A job is one cohort to train: what goes to a worker, and what comes back, as text that survives any transport."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epsearch.cache import cache_folder
from epsearch.gpu_check import FOREIGN, proving
from epsearch.machine import rounding, usable_cores
from epsearch.plugins.loading import Plugin, at_fault, files_of, load_expected, versions_of
from trainers.cohort import Architecture, Cohort, CohortResult, Learner
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath
from trainers.streams import Images, StreamRequest
from trainers.streams.base import TaskStream
from trainers.streams.images.image_set import ImageSet

if TYPE_CHECKING:  # with them comes torch
    from trainers.foreign.process import Limits
    from trainers.population import Training

SAID = "said"  # begins fingerprints of what was not measured here; others are hexadecimal
NETWORK = ("params", "statistics")
"""Fields of a result that stay where it was trained."""


class Run(NamedTuple):
    """A learner on D^CV ("cv") or D^EV ("eval"): what a study wants, and what a record is of."""

    phase: str
    """`cv` or `eval`."""
    learner: Learner


@dataclass(frozen=True)
class Job:
    """One cohort and everything a worker needs to train it."""

    number: int
    """Which job of its loop it is."""
    stage: str
    """What it belongs to, in words."""
    phase: str
    """`cv` or `eval`: on which stream it is trained."""
    cohort: Cohort
    architecture: Architecture
    stream: StreamRequest
    path: str
    """Name of the numeric path."""
    transfer: bool
    """Whether FWT and LCA are measured."""
    weights: tuple[float, ...]
    """What a step of one learner takes in each task, with its share of the tests, in FLOP; none of a trainer."""
    at_once: int
    """Jobs trained at a time."""
    checkpoints: str | None = None
    """Where runs are kept on their way: a folder or a URL that this process can reach, too; None for the cache."""
    plugins: tuple[Plugin, ...] = ()
    """Code of others that it needs."""
    limits: "Limits | None" = None
    """What the process of its one learner may take, where that has a trainer of its own; None for one of ours."""
    certify: "Certify | None" = None
    """With what its one learner is compared, where it is trained once more, alone."""

    @property
    def runs(self) -> list[Run]:
        """One run a learner, in the cohort's order."""
        return [Run(self.phase, one) for one in self.cohort.learners]


Progress = Callable[[int, float], None]
"""Called with member-steps, or tasks of a trainer, and their work: FLOP with those of tests, or tasks."""


class Place(NamedTuple):
    """What a worker has where it trains."""

    images: Images | ImageSet | None = None
    """Of the stream, where they came with the job: this machine need not have them."""
    share: float = 1.0
    """Of the GPU's memory."""


HERE = Place()


@dataclass(frozen=True)
class Certify:
    """Makes a job a certificate: its one learner has been trained before."""

    mates: tuple[Learner, ...]
    """Those among which it was trained, itself included; none where only the stored result is to be compared with."""
    fingerprint: str
    """Of that result; "" where there is none."""
    moved: bool = False
    """Whether its start is moved by as little as rounding, see `trainers/engines/perturbed_start.py`."""


@dataclass(frozen=True)
class JobResult:
    """Result of a job: a value, or an error."""

    number: int
    """Of the job."""
    value: CohortResult | None
    """None where there is an error."""
    seconds: float = 0.0
    """Wall time that the value took."""
    error: str = ""
    """In one line."""
    traceback: str = ""
    """Of the worker, where an error is a fault of ours; else empty."""
    foreign: bool = False
    """Whether the error is of a user's own code."""
    parameter_difference: float = 0.0
    """Of a certificate: the largest difference between alone and among the mates; infinite where it has no mates."""
    stops: bool = False
    """Whether the error is the machine's, and every other job would have it, too."""
    self_check: str = ""
    """What the self-check of the GPU that has trained it says, see `gpu_check`; "" of a CPU."""
    machine: str = ""
    """The kind of machine that has trained it, see `machine.rounding`; "" where it is not known."""


def execute(job: Job, progress: Progress | None = None, place: Place = HERE) -> JobResult:
    """Trains the job's cohort in this process, on one thread: the thread count may change a sum's rounding.

    Notes of the training become part of the result's note: the standard error of a worker is not displayed.

    progress: called with the work since its last call; an error that it raises ends the training.
    place: where that is. Raises what goes wrong, as it is: the runners make lines of that.
    """
    lines: list[str] = []
    plugins = [load_expected(one, job.stream.beside) for one in job.plugins if job.limits is None]
    with redirect_notes(lines.append), at_fault(plugins):
        result = _trained(job, progress, place) if job.limits is None else _by_trainer(job, progress, place)
    assert result.value is not None
    note = "\n".join(line for line in (result.value.note, *lines) if line)
    machine = rounding(NumericPath.parse(job.path).device)
    return replace(result, value=replace(result.value, note=note), machine=machine)


def _trained(job: Job, progress: Progress | None, place: Place) -> JobResult:
    """The job's cohort; or, of a certificate, its one learner alone, with the difference to that among its mates."""
    # Late, as are the others: who only describes, encodes and hands out jobs needs none of it.
    from trainers.engines.precision import one_thread

    training = training_of(job, job.stream.open(place.images))
    one, parts = job.cohort.learners[0], {plugin.reference: plugin.parts for plugin in job.plugins}
    with one_thread(), proving(one, training.stream, job.architecture, training.chosen, parts) as outcome:
        return replace(_timed(job, training, progress, place), self_check=outcome)


def _timed(job: Job, training: "Training", progress: Progress | None, place: Place) -> JobResult:
    """What `_trained` gives, where the arithmetic is known to be right."""
    from trainers.engines.perturbed_start import make_moved
    from trainers.population import train_cohort, train_rest

    def by_task(steps: Mapping[int, int]) -> None:
        assert progress is not None
        progress(sum(steps.values()), sum(count * job.weights[task] for task, count in steps.items()))

    report, started = None if progress is None else by_task, time.perf_counter()
    if job.certify is None:
        fitting = replace(training, bytes_free=bytes_free(training.chosen, job.at_once, place.share))
        return JobResult(job.number, train_cohort(job.cohort, fitting, report), time.perf_counter() - started)
    # A certificate is trained without the folder: nothing of it may come from what others have kept there.
    if job.certify.moved:
        value = train_rest(job.cohort, training, training.checkpoints(job.cohort), {}, report, make_moved)
    else:
        value = train_cohort(job.cohort, training, report)
    difference = 0.0
    # No ledger keeps parameters, so where they differ the cohort is trained again to see by how much.
    if value.fingerprints[0] != job.certify.fingerprint and not job.certify.mates:
        difference = math.inf
    elif value.fingerprints[0] != job.certify.fingerprint:
        together = train_cohort(Cohort(job.certify.mates), training, report)
        row = job.certify.mates.index(job.cohort.learners[0])
        difference = float(np.abs(value.params[0] - together.params[row]).max())
    return JobResult(job.number, value, time.perf_counter() - started, parameter_difference=difference)


def _by_trainer(job: Job, progress: Progress | None, place: Place) -> JobResult:
    """Trains the learner of a job by a plug-in trainer, in a process of its own."""
    from trainers.foreign.measuring import SELF_REPORTED
    from trainers.foreign.running import Request, train
    from trainers.foreign.running import Run as Given

    assert job.limits is not None
    (learner,), (plugin,) = job.cohort.learners, (one for one in job.plugins if one.kind == "trainer")
    path, limits = NumericPath.parse(job.path), job.limits
    if limits.bytes is None:
        limits = replace(limits, bytes=bytes_free(path, job.at_once, place.share))
    beside, files, versions = job.stream.beside, files_of(plugin.parts), versions_of(plugin.parts)
    networks = {one.reference: files_of(one.parts) for one in job.plugins if one.kind == "network"}
    request = Request(plugin.reference, beside, files, versions, path.device, limits=limits, networks=networks)
    given = Given(vars(learner.hyperparameters), learner.seed, job.stream.open(place.images), job.transfer)
    started = time.perf_counter()
    # As of ours, a certificate takes nothing of what others have kept.
    report = None if progress is None else lambda tasks: progress(tasks, float(tasks))
    value = train(request, given, report, None if job.certify else cache_folder() / "trainers")
    if SELF_REPORTED in value.note:
        value = replace(value, fingerprints=np.array([said(one) for one in value.fingerprints]), note="")
    repeats = job.certify is None or job.certify.fingerprint == value.fingerprints[0]
    seconds = time.perf_counter() - started
    differ, outcome = 0.0 if repeats else math.inf, FOREIGN if path.device == "cuda" else ""
    return JobResult(job.number, value, seconds, parameter_difference=differ, self_check=outcome)


def said(fingerprint: str) -> str:
    """The fingerprint of a result that is the trainer's own word, as long as others."""
    return SAID + fingerprint[len(SAID) :]


def is_self_reported(fingerprint: str) -> bool:
    """Whether a result is the trainer's own word.

    >>> is_self_reported(said("0123456789abcdef")), is_self_reported("0123456789abcdef")
    (True, False)
    """
    return fingerprint.startswith(SAID)


def training_of(job: Job, stream: TaskStream) -> "Training":
    """What the job's cohort is trained on, and how; a certificate with nothing from what others have kept."""
    from trainers.checkpoints import NEWEST, TRAINING
    from trainers.population import Training

    plain = Training(stream, job.architecture, NumericPath.parse(job.path), job.transfer)
    if job.certify is not None:
        return plain
    # What is in a place for all machines is removed by the driver, once it has stored the results.
    keep = TRAINING if job.checkpoints is None else NEWEST
    return replace(plain, folder=cache_folder() / "learners", store=job.checkpoints, keep=keep)


def forget(job: Job, stream: TaskStream) -> None:
    """Removes the checkpoints of a job whose results are stored, from the folder of all machines."""
    if job.checkpoints is not None and job.certify is None:
        training_of(job, stream).checkpoints(job.cohort).forget(job.cohort.learners)


def bytes_free(path: NumericPath, at_once: int, share: float = 1.0) -> int | None:
    """A job's share of the memory that is free on this machine, in bytes; None where the system does not tell.

    at_once: jobs at a time, which share the machine's memory; share: the job's, of a GPU's.
    """
    from trainers.footprint import free_bytes

    free = free_bytes(path)
    return None if free is None else int(free * (share if path.device == "cuda" else 1 / min(at_once, usable_cores())))


def encode(value: CohortResult) -> str:
    """The result as JSON, without the network; Python's shortest-repr floats come back bit for bit, NaN included."""
    names = (one.name for one in fields(value) if one.name not in NETWORK)
    return json.dumps({name: np.asarray(getattr(value, name)).tolist() for name in names})


def decode(text: str) -> CohortResult:
    """The inverse of `encode`; the parts of the network, which did not travel, are None for each learner."""
    raw = json.loads(text)
    values: dict[str, Any] = {name: np.array(part) if isinstance(part, list) else part for name, part in raw.items()}
    values |= {name: np.full(len(raw["initial"]), None, dtype=object) for name in NETWORK}
    return CohortResult(**values)
