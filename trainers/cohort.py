"""What goes into a training run and what comes out of it: plain values, no torch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

PROTOCOL_VERSION = 3  # part of every content key; goes up whenever a change of the trainers changes any figure
TRIGGERS = ("zero", "epsilon")
SCALES = ("unit", "raw")
PENALTY_FORMS = ("code", "paper")
IMAGE_NETWORKS = ("reduced_resnet18", "resnet18")
NETWORKS = ("mlp", *IMAGE_NETWORKS)
# Smaller images leave one value of a channel in the last stage, which has no variance in a batch of one.
SMALLEST_IMAGE = {"reduced_resnet18": 16, "resnet18": 64}
CHOICES = {
    "trigger": TRIGGERS,
    "scale": SCALES,
    "satisfied": SCALES,
    "a_agem_scale": SCALES,
    "penalty_form": PENALTY_FORMS,
    "network": NETWORKS,
}
LARGEST_SEED = 2**63 - 1  # of the ledger's integers
LEARNING_CURVE_BATCHES = 10  # β of LCA_β: the current task is tested after b = 0…10 mini-batches


@dataclass(frozen=True)
class Member:
    """One learner: a seed, which fixes everything random in its run, and the hyperparameters that are its own.

    epsilon: ε of ε-SOFT-GEM. learning_rate: None takes the cohort's. strength: λ of a penalty, None without one.
    """

    epsilon: float
    seed: int
    learning_rate: float | None = None
    strength: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0:
            raise ValueError(f"epsilon must be in [0, 1], got {self.epsilon}")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ValueError(f"seed must lie in 0…{LARGEST_SEED}, got {self.seed}")
        if self.learning_rate is not None:
            _check_rate(self.learning_rate)
        if self.strength is not None and not 0 <= self.strength < float("inf"):
            raise ValueError(f"strength must be >= 0, got {self.strength}")


@dataclass(frozen=True)
class Cohort:
    """Members that are trained together, by one method."""

    method: str
    members: tuple[Member, ...]


@dataclass(frozen=True)
class TrainConfig:
    """The hyperparameters that all members of a cohort share.

    memory: examples kept per class and task. memory_batch: size of the batch drawn from the memory at every
    step; None takes all of it. trigger, scale and satisfied name readings of the paper's Algorithm 1:
    the projection happens when the cosine is below zero (or below ε), it works on unit vectors (or on the raw
    gradients), and a satisfied constraint leaves the raw gradient (or its unit vector). a_agem_scale: whether A-A-GEM
    averages unit vectors, as printed, or raw gradients. fisher_every: steps between updates of the Fisher estimate of
    EWC and RWALK. penalty_form: MAS and RWALK as in A-GEM's released code, or as in their own papers. margin: GEM's
    memory strength. network: what is trained; hidden are the widths of an mlp. pretrained: the weights that a resnet18
    starts from, "imagenet" or a file's path; None for random ones.
    """

    learning_rate: float = 0.1
    batch_size: int = 10
    memory: int = 25
    memory_batch: int | None = 256
    hidden: tuple[int, ...] = (256, 256)
    trigger: str = "zero"
    scale: str = "unit"
    satisfied: str = "raw"
    a_agem_scale: str = "unit"
    fisher_every: int = 10
    penalty_form: str = "code"
    margin: float = 0.5
    network: str = "mlp"
    pretrained: str | None = None

    def __post_init__(self) -> None:
        _check_rate(self.learning_rate)
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, got {self.batch_size}")
        if self.memory < 0:
            raise ValueError(f"memory must be >= 0, got {self.memory}")
        if self.memory_batch is not None and self.memory_batch < 1:
            raise ValueError(f"memory_batch must be >= 1 or 'all', got {self.memory_batch}")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden must be one or more widths >= 1, got {self.hidden}")
        if self.fisher_every < 1:
            raise ValueError(f"fisher_every must be >= 1, got {self.fisher_every}")
        if not 0 <= self.margin < float("inf"):
            raise ValueError(f"margin must be >= 0, got {self.margin}")
        if self.pretrained is not None and self.network != "resnet18":
            raise ValueError(f"pretrained weights are for network resnet18, got network {self.network!r}")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class CohortResult:
    """Raw measurements of M members over T tasks, rows in the order of `cohort.members`.

    accuracies    [M, T, T]  on task j after task k, in [0, 1]; measured for j <= k, and, where transfer is measured,
                             for j = k + 1, the zero-shot accuracy before the next task's first step; NaN elsewhere
    initial       [M, T]     of the untrained network; NaN where transfer is not measured
    within        [M, T, 11] on the current task after b = 0…10 mini-batches; NaN past the task's last batch, and
                             where transfer is not measured
    violations    [M, T]     share of steps at which the gradient was projected; NaN without a reference gradient
    diverged_task, diverged_step [M]  where the loss or a parameter first was not finite; -1 where it never was
    steps         [M]        SGD steps of the whole run
    fingerprints  [M]        hash of the final parameters
    params        M arrays   the final parameters, with the engine's padding; None in a result from elsewhere
    saved         member-steps that were not taken, as members share their first task
    note          lines for the user where not everything went as asked, else empty
    """

    ARRAYS: ClassVar = (
        "accuracies",
        "initial",
        "within",
        "violations",
        "diverged_task",
        "diverged_step",
        "steps",
        "fingerprints",
        "params",
    )

    accuracies: NDArray[np.float64]
    initial: NDArray[np.float64]
    within: NDArray[np.float64]
    violations: NDArray[np.float64]
    diverged_task: NDArray[np.int64]
    diverged_step: NDArray[np.int64]
    steps: NDArray[np.int64]
    fingerprints: NDArray[np.str_]
    params: NDArray[np.object_]
    saved: int = 0
    note: str = ""

    @classmethod
    def empty(cls, members: int, tasks: int) -> "CohortResult":
        """Nothing measured yet."""
        return cls(
            accuracies=np.full((members, tasks, tasks), np.nan),
            initial=np.full((members, tasks), np.nan),
            within=np.full((members, tasks, LEARNING_CURVE_BATCHES + 1), np.nan),
            violations=np.full((members, tasks), np.nan),
            diverged_task=np.full(members, -1),
            diverged_step=np.full(members, -1),
            steps=np.zeros(members, dtype=np.int64),
            fingerprints=np.full(members, "", dtype="U16"),
            params=np.full(members, None, dtype=object),
        )


def _check_rate(rate: float) -> None:
    if not 0 < rate < float("inf"):
        raise ValueError(f"learning_rate must be > 0, got {rate}")
