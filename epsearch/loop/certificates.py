"""The proof that cohorts change nothing: a few members of the search are trained once more, alone, and compared."""

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.jobs import Certify, JobResult, Run
from results.ledger.certificate import Certificate
from results.ledger.record import RunRecord
from results.ledger.store import Found

CERTIFICATE = "certificate"


def sample(study: str, records: Iterable[RunRecord], count: int) -> list[str]:
    """Keys of the members to certify: a random draw that is the same whenever it is made.

    study: the study's name, which seeds the draw; count: how many, or all where there are fewer.
    """
    # In an order of their own: that in which members came must not change the draw.
    keys = sorted({record.key for record in records})
    return random.Random(study).sample(keys, min(count, len(keys)))


def damaged(found: Found[Certificate]) -> dict[str, str]:
    """Why certificates cannot be used, under keys that begin as those of their members and are none.

    >>> found = Found()
    >>> found.damaged["00ff"] = "its checksum does not match"
    >>> damaged(found)
    {'00ff certificate': 'certificate: its checksum does not match'}
    """
    return {f"{key} {CERTIFICATE}": f"{CERTIFICATE}: {why}" for key, why in found.damaged.items()}


def order(record: RunRecord, records: Mapping[str, RunRecord], runs: Mapping[str, Run]) -> Certify:
    """What a worker needs to compare the member with its like in the cohort it came from.

    record: of the member; records and runs: by key, of all members of the search.
    """
    mates = [run.learner for key, run in runs.items() if records[key].cohort == record.cohort]
    # At ε = 0 a run may bear another one's values of what A-GEM does not have.
    shared = runs[record.key].learner.shared
    return Certify(tuple(one for one in mates if one.shared == shared), record.fingerprint)


def compare(record: RunRecord, alone: JobResult) -> Certificate:
    """The certificate of a member that has been trained alone: the largest differences of accuracies and parameters.

    Accuracies are compared after every task and within its first mini-batches; all are fractions in [0, 1].
    """
    assert alone.value is not None
    pairs = ((alone.value.accuracies[0], record.accuracies), (alone.value.within[0], record.within))
    largest = max(_difference(one, other) for one, other in pairs)
    return Certificate(
        record.key, largest, alone.parameter_difference, created=datetime.now(UTC).isoformat(timespec="seconds")
    )


def _difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest; infinite where only one of the two was measured."""
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return float("inf")
    return float(np.nanmax(np.abs(one - other), initial=0.0))
