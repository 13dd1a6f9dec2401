"""The proof that cohorts change nothing: a few members of the search are trained once more, alone, and compared."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from epsearch.jobs import Certify, JobResult, Trainee
from results.certificate import Certificate
from results.record import RunRecord
from trainers.cohort import Member


def sample(study: str, records: Iterable[RunRecord], count: int) -> list[str]:
    """Keys of the members to certify: a random draw that is the same whenever it is made."""
    keys = sorted({record.key for record in records})
    return random.Random(study).sample(keys, min(count, len(keys)))


def order(record: RunRecord, records: Mapping[str, RunRecord], trainees: Mapping[str, Trainee]) -> Certify:
    """What a worker needs to compare the member with its like in the cohort it came from."""
    rate = trainees[record.key].config.learning_rate
    mates = [trainees[key] for key in trainees if records[key].cohort == record.cohort]
    return Certify(tuple(_mate(one, rate) for one in mates), record.fingerprint)


def _mate(trainee: Trainee, rate: float) -> Member:
    """With a learning rate of its own where the cohort's is another."""
    own = trainee.config.learning_rate
    return trainee.member if own == rate else replace(trainee.member, learning_rate=own)


def compare(record: RunRecord, alone: JobResult) -> Certificate:
    """The certificate of a member that has been trained alone."""
    assert alone.value is not None
    pairs = ((alone.value.accuracies[0], record.accuracies), (alone.value.within[0], record.within))
    largest = max(_difference(one, other) for one, other in pairs)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(record.key, largest, alone.parameter_difference, now)


def _difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest; infinite where only one of the two was measured."""
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return float("inf")
    return float(np.nanmax(np.abs(one - other), initial=0.0))
