"""A job is one cohort to train: what goes to a worker, and what comes back, as text that survives any transport."""

import json
import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from epsearch.study import Study
from trainers.cohort import Cohort, CohortResult
from trainers.streams import open_stream


@dataclass(frozen=True)
class Job:
    """One cohort of a study's stage."""

    number: int
    phase: str
    cohort: Cohort
    study: Study
    stage: str


@dataclass(frozen=True)
class JobResult:
    """What came of a job: a value and the wall seconds it took, or an error in one line."""

    number: int
    value: CohortResult | None
    seconds: float = 0.0
    error: str = ""


def execute(job: Job, progress: Any = None) -> JobResult:
    """Trains the job's cohort in this process, on one thread: the thread count may change a sum's rounding."""
    import torch

    from trainers.population import train_cohort

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    study = job.study
    stream = open_stream(study.dataset, study.data_dir, study.stream_tasks(job.phase), study.examples_per_task)
    started = time.perf_counter()
    value = train_cohort(job.cohort, stream, study.train_config(), study.device, progress)
    return JobResult(job.number, value, time.perf_counter() - started)


def encode(value: CohortResult) -> str:
    """The result as JSON; Python's shortest-repr floats come back bit for bit, NaN included."""
    return json.dumps({field.name: np.asarray(getattr(value, field.name)).tolist() for field in fields(value)})


def decode(text: str) -> CohortResult:
    """The inverse of `encode`."""
    raw = json.loads(text)
    steps = raw.pop("steps")
    return CohortResult(**{name: np.array(values) for name, values in raw.items()}, steps=steps)
