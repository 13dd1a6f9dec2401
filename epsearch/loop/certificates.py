"""Certificates: members trained again, alone, and compared with their stored runs."""

import math
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from epsearch.loop.jobs import Certify, JobResult, Run
from epsearch.plugins.loading import NOISY, PLUGINS
from epsearch.study.description import Study
from epsearch.study.kinds import Search
from results import objectives
from results.ledger.record import ALONE, Certificate, RunRecord, perturbed_key
from results.statistics.paired import largest_difference
from trainers.numeric_path import NumericPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

CERTIFICATE = "certificate"
TOLERANCE = 0.02
"""Largest difference of an accuracy between a member alone and in its cohort that is only rounding.

On a GPU a batched matrix product may add in another order for another number of members, and a step along a tiny
gradient makes a rounding error large. The same happens on a CPU where members of a residual network are trained in one
grouped convolution, and between processors of two kinds.
"""


def tolerance(study: Study, images: Mapping[str, Any], alike: bool = True) -> float:
    """Returns the largest difference of an accuracy, a fraction, that a certificate may have.

    It is 0 where the arithmetic is the same, and infinite for a trainer that declares not to repeat itself. images: the
    stream's description, see `Loop`; alike: whether both runs were trained on the same kind of machine.
    """
    if study.foreign:
        return math.inf if NOISY in images.get(PLUGINS, {}).get(study.value("method"), {}) else 0.0
    path = NumericPath.parse(study.numeric_path) if study.numeric_path else NumericPath()
    alone = path.device == "cpu" and (study.network == "mlp" or path.one_by_one)
    return 0.0 if alone and alike else TOLERANCE


def sample(study: str, records: Iterable[RunRecord], count: int) -> list[str]:
    """Returns the keys of members to certify, drawn at random with a fixed seed.

    study: the study's name, which seeds the draw; count: how many, or all where there are fewer.
    """
    # Sorted: the order in which members finished must not change the draw.
    keys = sorted({record.key for record in records})
    return random.Random(study).sample(keys, min(count, len(keys)))


def members_of_certificates(study: Search, records: Iterable[RunRecord]) -> dict[str, str]:
    """Returns a map from the key of each required certificate, alone or moved, to the key of its member."""
    members = list(records)
    alone = {key: key for key in sample(study.name, members, study.certify)}
    return alone | {perturbed_key(key): key for key in sample(study.name, members, study.moved_starts)}


def describe_damage(damage: Mapping[str, str]) -> dict[str, str]:
    """Returns why certificates cannot be used, with keys that begin with the member's key.

    >>> describe_damage({"00ff": "its checksum does not match"})
    {'00ff certificate': 'certificate: its checksum does not match'}
    """
    return {f"{key} {CERTIFICATE}": f"{CERTIFICATE}: {why}" for key, why in damage.items()}


def comparison(record: RunRecord, records: Mapping[str, RunRecord], runs: Mapping[str, Run]) -> Certify:
    """Returns what a worker needs to compare a member alone with itself in its cohort.

    record: of the member; records and runs: by key, of all members of the search.
    """
    cohort = [run.learner for key, run in runs.items() if records[key].cohort == record.cohort]
    # At ε = 0 a run may have another run's values of hyperparameters that A-GEM lacks.
    shared = runs[record.key].learner.shared
    return Certify(tuple(learner for learner in cohort if learner.shared == shared), record.fingerprint)


def compare(record: RunRecord, alone: JobResult, kind: str = ALONE) -> Certificate:
    """Returns the certificate of a member that was trained alone: the largest differences to its record.

    record: its stored run. Accuracies are compared before the first task, after every task, within its first
    mini-batches and at all points inside tasks; all are fractions in [0, 1].
    """
    assert alone.value is not None
    value, measured = alone.value, ("initial", "accuracies", "within")
    largest = max(largest_difference(getattr(value, name)[0], getattr(record, name)) for name in measured)
    largest = max(largest, _inside_difference(value.inside[0], record))
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(record.key, largest, alone.parameter_difference, created, kind)


def _inside_difference(alone: "NDArray[np.float64]", record: RunRecord) -> float:
    """Returns the largest difference at points inside tasks; infinite where a run has points that the other lacks.

    alone: [P, 2 + T] as `RunRecord.inside`, with rows of NaN behind a divergence.
    """
    stored = record.inside
    if stored is None or not (stored.size and alone.size):
        return 0.0 if (stored is None or not stored.size) and not alone.size else math.inf
    points = alone[~np.isnan(alone[:, 0])]
    return largest_difference(points, stored) if points.shape == stored.shape else math.inf


def compare_perturbed(record: RunRecord, moved: JobResult, objective: str) -> Certificate:
    """Returns the certificate of a member that was trained from a perturbed start: the change of the objective.

    record: its stored run; objective: a name of `results.objectives`. Infinite where only one run diverged.
    """
    assert moved.value is not None
    before, value = objectives.of_record(objective, record), moved.value
    after = (
        objectives.score(objective, value.accuracies[0], value.inside[0]) if value.diverged_task[0] < 0 else math.nan
    )
    both = math.isnan(before) and math.isnan(after)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(
        perturbed_key(record.key), 0.0 if both else abs(after - before), moved.parameter_difference, created
    )
