"""What is stored of one member: the raw accuracies, never only their mean; and of a study, in short."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

PHASES = ("cv", "eval")
STATUSES = ("ok", "diverged")
WITHIN_POINTS = 11
NOT_THE_RESULT = ("seconds", "created", "cohort")
ARRAYS = ("accuracies", "initial", "within", "violations")


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One trained (ε, seed) learner on one stream of T tasks.

    Accuracies are fractions in [0, 1]; what was not measured is NaN. A diverged member keeps what it measured
    before. Raises ValueError where a field is outside these bounds. Compare two records with `same_result`.
    """

    key: str
    """`content_key` of `content`, computed by the caller."""
    phase: str
    """Which stream: "cv" (cross-validation) or "eval" (evaluation)."""
    method: str
    """"soft_agem", "agem", …"""
    epsilon: float
    seed: int
    accuracies: NDArray[np.float64]
    """[T, T]: a[k, j] on task j after learning task k, 0-based; j <= k measured, j == k+1 is the b = 0 point
    of the next task.
    """
    initial: NDArray[np.float64]
    """[T]: accuracy of the untrained network on each task (b̄ of FWT)."""
    within: NDArray[np.float64]
    """[T, 11]: accuracy on the current task after b = 0..10 mini-batches (LCA_10); NaN where a task has
    fewer.
    """
    violations: NDArray[np.float64]
    """[T]: share of steps with g·g_ref < 0; NaN for the first task and for methods without memory."""
    status: str
    """"ok" or "diverged"."""
    diverged_task: int | None
    """0-based task of the first non-finite value, or None."""
    diverged_step: int | None
    steps: int
    """SGD steps this member took."""
    seconds: float
    """Wall seconds of the cohort divided by its members."""
    content: Mapping[str, Any]
    """The JSON-able description whose hash is the key: dataset, sizes, network, hyperparameters, …"""
    created: str
    """ISO-8601 time, UTC."""
    fingerprint: str
    """Hash of the final parameters, bit for bit."""
    cohort: str
    """Short id that all members trained together share."""

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"no phase {self.phase!r}; known: {', '.join(PHASES)}")
        if self.status not in STATUSES:
            raise ValueError(f"no status {self.status!r}; known: {', '.join(STATUSES)}")
        if not np.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be finite, got {self.epsilon}")
        self._check_shapes()
        self._check_values()

    @property
    def tasks(self) -> int:
        """T, the number of tasks of the stream."""
        return int(self.accuracies.shape[0])

    def _check_shapes(self) -> None:
        shape = self.accuracies.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"accuracies must have shape [T, T] with T >= 1, got {list(shape)}")
        tasks = shape[0]
        wanted = {"initial": (tasks,), "within": (tasks, WITHIN_POINTS), "violations": (tasks,)}
        for name, expected in wanted.items():
            got = getattr(self, name).shape
            if got != expected:
                raise ValueError(f"{name} must have shape {list(expected)}, got {list(got)}")

    def _check_values(self) -> None:
        for name in ARRAYS:
            values = getattr(self, name)
            outside = values[~np.isnan(values) & ~((values >= 0) & (values <= 1))]
            if outside.size:
                raise ValueError(f"{name} must hold fractions in [0, 1] or NaN, got {outside[0]}")
        if self.status == "ok" and np.isnan(self.accuracies[np.tri(self.tasks, dtype=bool)]).any():
            raise ValueError("accuracies[k, j] must be measured for every j <= k when status is 'ok', got NaN")


@dataclass(frozen=True)
class Summary:
    """What `epsearch list` shows of a study's members, so that it need not look at them."""

    name: str
    """Of the study."""
    study: str
    """`StudyRow.checksum` of the study as it was when this was found."""
    status: str
    """Finished, or how far it is."""
    chosen: Mapping[str, Any] | None
    """Name of each searched hyperparameter -> the best value so far; None without one."""
    score: float | None
    """Mean A_T of that, fraction in [0, 1]."""
    inert: bool
    """Whether all values score the same bit for bit, so that none is the best."""


def content_key(content: Mapping[str, Any]) -> str:
    """The hex SHA-256 under which the ledger knows what this content determines."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def same_result(first: RunRecord, second: RunRecord) -> bool:
    """True where two records hold exactly the same result: everything but `seconds`, `created` and `cohort`; NaN
    equals NaN.
    """
    for field in fields(RunRecord):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.name in ARRAYS:
            equal = np.array_equal(one, other, equal_nan=True)
        elif field.name == "content":
            # Through JSON, because a tuple that went through the ledger comes back as a list.
            equal = json.loads(json.dumps(one)) == json.loads(json.dumps(other))
        else:
            equal = field.name in NOT_THE_RESULT or one == other
        if not equal:
            return False
    return True
