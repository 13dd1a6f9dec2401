"""Members that are trained once more, alone, and compared: the proof that cohorts change nothing, and reruns."""

import math
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.jobs import Certify, JobResult, Run
from epsearch.plugins.loading import NOISY, PLUGINS
from epsearch.study.description import Study
from epsearch.study.kinds import Search
from results import objectives
from results.ledger.record import ALONE, Certificate, RunRecord, moved_key
from trainers.numeric_path import NumericPath

CERTIFICATE = "certificate"
TOLERANCE = 0.02
"""The largest difference of an accuracy between a member alone and in its cohort that is no fault.

On a GPU a batched matrix product may add in another order for another number of members, and a step along a tiny
gradient makes a rounding error large. So it is on a CPU where members of a residual network are trained in one grouped
convolution, and between processors of two kinds.
"""


def tolerance(study: Study, images: Mapping[str, Any], alike: bool = True) -> float:
    """The largest difference of an accuracy, a fraction, a certificate may show; 0 where the arithmetic is the same.

    images: the stream's description, as of `Loop`; alike: whether both were trained on machines of one kind. Of a
    trainer that is not to repeat itself any difference is none of a fault: infinite.
    """
    if study.foreign:
        return math.inf if NOISY in images.get(PLUGINS, {}).get(study.value("method"), {}) else 0.0
    path = NumericPath.parse(study.numeric_path) if study.numeric_path else NumericPath()
    alone = path.device == "cpu" and (study.network == "mlp" or path.one_by_one)
    return 0.0 if alone and alike else TOLERANCE


def sample(study: str, records: Iterable[RunRecord], count: int) -> list[str]:
    """Keys of the members to certify: a random draw that is the same whenever it is made.

    study: the study's name, which seeds the draw; count: how many, or all where there are fewer.
    """
    # In an order of their own: that in which members came must not change the draw.
    keys = sorted({record.key for record in records})
    return random.Random(study).sample(keys, min(count, len(keys)))


def wanted(study: Search, records: Iterable[RunRecord]) -> dict[str, str]:
    """Key of each certificate that a search asks for -> that of its member: alone, and from a moved start."""
    known = list(records)
    alone = {key: key for key in sample(study.name, known, study.certify)}
    return alone | {moved_key(key): key for key in sample(study.name, known, study.moved_starts)}


def damaged(damage: Mapping[str, str]) -> dict[str, str]:
    """Returns why certificates cannot be used, under keys that begin as those of their members.

    >>> damaged({"00ff": "its checksum does not match"})
    {'00ff certificate': 'certificate: its checksum does not match'}
    """
    return {f"{key} {CERTIFICATE}": f"{CERTIFICATE}: {why}" for key, why in damage.items()}


def order(record: RunRecord, records: Mapping[str, RunRecord], runs: Mapping[str, Run]) -> Certify:
    """What a worker needs to compare the member with its like in the cohort it came from.

    record: of the member; records and runs: by key, of all members of the search.
    """
    mates = [run.learner for key, run in runs.items() if records[key].cohort == record.cohort]
    # At ε = 0 a run may bear another one's values of what A-GEM does not have.
    shared = runs[record.key].learner.shared
    return Certify(tuple(one for one in mates if one.shared == shared), record.fingerprint)


def compare(record: RunRecord, alone: JobResult, kind: str = ALONE) -> Certificate:
    """The certificate of a member that has been trained alone: the largest differences of accuracies and parameters.

    record: what is stored of it. Accuracies are compared before the first task, after every task and within its first
    mini-batches; all are fractions in [0, 1].
    """
    assert alone.value is not None
    measured = ("initial", "accuracies", "within")
    largest = max(difference(getattr(alone.value, name)[0], getattr(record, name)) for name in measured)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(record.key, largest, alone.parameter_difference, created, kind)


def compare_moved(record: RunRecord, moved: JobResult, objective: str) -> Certificate:
    """The certificate of a member that has been trained from a moved start: how far what is maximised has moved.

    record: what is stored of it; objective: as `results.objectives` has it. Infinite where one of the two diverged.
    """
    assert moved.value is not None
    there, value = objectives.of_record(objective, record), moved.value
    here = objectives.score(objective, value.accuracies[0]) if value.diverged_task[0] < 0 else math.nan
    both = math.isnan(there) and math.isnan(here)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(moved_key(record.key), 0.0 if both else abs(here - there), moved.parameter_difference, created)


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest of two accuracies; infinite where only one of the two was measured."""
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return float("inf")
    return float(np.nanmax(np.abs(one - other), initial=0.0))
