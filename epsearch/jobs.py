"""A job is one cohort to train: what goes to a worker, and what comes back, as text that survives any transport."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from trainers.cohort import Cohort, CohortResult, TrainConfig
from trainers.streams import open_stream


@dataclass(frozen=True)
class Job:
    """One cohort and everything a worker needs to train it; `stage` says in words what it belongs to."""

    number: int
    stage: str
    phase: str
    cohort: Cohort
    config: TrainConfig
    dataset: str
    data_dir: Path
    tasks: range
    examples_per_task: int | None
    device: str


@dataclass(frozen=True)
class JobResult:
    """What came of a job: a value and the wall seconds it took, or an error in one line."""

    number: int
    value: CohortResult | None
    seconds: float = 0.0
    error: str = ""


def execute(job: Job, progress: Callable[[int], None] | None = None) -> JobResult:
    """Trains the job's cohort in this process, on one thread: the thread count may change a sum's rounding."""
    import torch

    from trainers.population import train_cohort

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    stream = open_stream(job.dataset, job.data_dir, job.tasks, job.examples_per_task)
    started = time.perf_counter()
    value = train_cohort(job.cohort, stream, job.config, job.device, progress)
    return JobResult(job.number, value, time.perf_counter() - started)


def encode(value: CohortResult) -> str:
    """The result as JSON; Python's shortest-repr floats come back bit for bit, NaN included."""
    return json.dumps({field.name: np.asarray(getattr(value, field.name)).tolist() for field in fields(value)})


def decode(text: str) -> CohortResult:
    """The inverse of `encode`."""
    raw = json.loads(text)
    steps = raw.pop("steps")
    return CohortResult(**{name: np.array(values) for name, values in raw.items()}, steps=steps)
