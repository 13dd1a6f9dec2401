"""The record of one member, with raw accuracies so that any metric can be computed later; certificates, studies."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # a list of studies is read without arrays, whose package takes a tenth of a second
    import numpy as np
    from numpy.typing import NDArray

PHASES = ("cv", "eval", "validation", "memory")
STATUSES = ("ok", "diverged")
WITHIN_POINTS = 11
"""Tests within a task: before its first mini-batch and after each of the first ten."""
NOT_THE_RESULT = ("seconds", "created", "cohort")
"""Fields in which two runs with the same result may differ."""
ARRAYS = ("accuracies", "initial", "within", "violations")
"""Fields that are arrays, each with a column of its own."""
JOINT = "joint"
"""The method of joint training, whose runs may lack whole rows of accuracies."""
ORDER = "order"
"""Part of a content: the number of a drawn order of tasks; none in the stream's own."""
BEYOND = "beyond"
"""Part of a stream's description: numbers of the first further task of the search, and behind its last one."""
INSIDE = "inside"
"""Field of tests inside tasks, which few records have: it is in the column of `within`, as the second part of it."""
ALONE, RERUN = "alone", "rerun"
KINDS = (ALONE, RERUN)
"""The kinds of certificates: made by the study itself, of members that it trained in cohorts; made by `epsearch verify`
of any stored run, the last time."""

SCALARS = (str, int, float, bool, type(None))
"""Types of one value of a hyperparameter, as JSON has them."""

DIFFERENCES = ("accuracy_difference", "parameter_difference")
"""The fields that are differences."""


class Unit(int):
    """A unit of statistics: a seed in an order of tasks. In order 0, the stream's own, it equals the seed.

    >>> Unit(0, 3) == 3, str(Unit(2, 3)), Unit(2, 3).order, Unit(2, 3).seed
    (True, '3 in order 2', 2, 3)
    """

    BASE = 2**64
    """More than any seed."""

    def __new__(cls, order: int, seed: int) -> Self:
        """Returns the unit of an order's number and a seed."""
        return super().__new__(cls, order * cls.BASE + seed)

    @property
    def order(self) -> int:
        """The number of the order of tasks, 0 for the stream's own."""
        return int(self) // self.BASE

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self) % self.BASE

    def __str__(self) -> str:
        return f"{self.seed} in order {self.order}" if self.order else str(self.seed)

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __reduce__(self) -> tuple[type, tuple[int, int]]:  # else a copy would be made of one number
        return type(self), (self.order, self.seed)


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The result of one member on one stream of T tasks.

    Accuracies are fractions in [0, 1], NaN where not measured. A diverged member keeps what was measured before. Arrays
    are read-only views. Raises ValueError for a field outside of these bounds. Compare two records with `same_result`.
    """

    key: str
    """`content_key` of `content`, computed by the caller."""
    phase: str
    """Which stream, one of PHASES: of cross-validation ("cv"), of the evaluation ("eval"), …"""
    method: str
    """Our name: "soft_agem", "agem", …"""
    epsilon: float
    """The ε of ε-SOFT-GEM; 0 for A-GEM and for methods without one."""
    seed: int
    """The seed of all random choices."""
    accuracies: "NDArray[np.float64]"
    """[T, T]: a[k, j] on task j after training task k, 0-based. Measured for j <= k; j = k + 1 is the next task before
    its first step."""
    initial: "NDArray[np.float64]"
    """[T]: accuracy of the untrained network on each task (b̄ of FWT)."""
    within: "NDArray[np.float64]"
    """[T, 11]: accuracy on the current task after b = 0..10 mini-batches (LCA_10); NaN where a task has fewer."""
    violations: "NDArray[np.float64]"
    """[T]: share of steps with g·g_ref < 0, where the gradient is projected; NaN for the first task and for methods
    without an episodic memory."""
    status: str
    """"ok" or "diverged"."""
    diverged_task: int | None
    """Task of the first value that is not finite, 0-based; None if there is none."""
    diverged_step: int | None
    """Its step within the task, 0-based; None if there is none."""
    steps: int
    """SGD steps of this member."""
    seconds: float
    """Wall seconds of the cohort divided by the number of its members."""
    content: Mapping[str, Any]
    """The JSON-able description whose hash is the key: dataset, sizes, network, hyperparameters, …"""
    created: str
    """ISO-8601 time, UTC."""
    fingerprint: str
    """Hash of the final parameters, bit for bit."""
    cohort: str
    """Short id that all members trained together share; behind a dot, the kind of machine that trained them; behind
    another, of a GPU, what its self-check says."""
    joint: float | None = None
    """Accuracy on the last task of joint training with the same seed, where a table has it beside this run; not stored.
    """
    inside: "NDArray[np.float64] | None" = None
    """[P, 2 + T], P tests inside tasks in order of time: the task that is trained, 0-based, steps taken in it, then the
    accuracy on part of the test set of each task, NaN on later ones. P = 0 where nothing was measured; None is that."""

    def __post_init__(self) -> None:
        for name, value, words in (("phase", self.phase, PHASES), ("status", self.status, STATUSES)):
            if value not in words:
                raise ValueError(f"no {name} {value!r}; known: {', '.join(words)}")
        if not math.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be finite, got {self.epsilon}")
        self._check_shapes()
        self._fill_inside()
        self._check_values()
        self._close_arrays()

    @property
    def tasks(self) -> int:
        """T, the number of tasks of the stream."""
        return int(self.accuracies.shape[0])

    @property
    def further(self) -> int:
        """How many tasks a search along tasks went on to with it, behind those of the whole stream."""
        first, last = self.content.get("stream", {}).get(BEYOND, (0, 0))
        return int(last - first)

    @property
    def unit(self) -> Unit:
        """The seed in its order of tasks, which statistics count as one."""
        return Unit(self.content.get(ORDER, 0), self.seed)

    @property
    def machine(self) -> str:
        """The kind of machine that trained it, 8 hexadecimal digits; "" of runs that were stored without one."""
        return self.cohort.partition(".")[2].partition(".")[0]

    @property
    def on_gpu(self) -> bool:
        """True if it was trained on a GPU."""
        return str(self.content.get("numeric_path", "")).startswith(("cuda", "mps"))

    @property
    def self_check(self) -> str:
        """What the self-check of the GPU that trained it says; "" of a CPU, and of runs from before there was one."""
        return self.cohort.partition(".")[2].partition(".")[2]

    def _check_shapes(self) -> None:
        shape = self.accuracies.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"accuracies must have shape [T, T] with T >= 1, got {list(shape)}")
        for name, rest in (("initial", []), ("within", [WITHIN_POINTS]), ("violations", [])):
            expected, got = [shape[0], *rest], list(getattr(self, name).shape)
            if got != expected:
                raise ValueError(f"{name} must have shape {expected}, got {got}")

    def _fill_inside(self) -> None:
        """Leaves out rows of NaN, which fill up the results of a cohort, and checks the others."""
        import numpy as np

        points = np.empty((0, 2 + self.tasks)) if self.inside is None or not self.inside.size else self.inside
        if points.ndim != 2 or points.shape[1] != 2 + self.tasks:
            raise ValueError(f"inside must have shape [P, {2 + self.tasks}], got {list(points.shape)}")
        points = points[~np.isnan(points[:, 0])]
        shares, tasks = points[:, 2:], points[:, 0]
        if ((shares < 0) | (shares > 1)).any() or not np.isin(tasks, np.arange(self.tasks)).all():
            raise ValueError("inside must hold tasks, steps and fractions in [0, 1] or NaN")
        object.__setattr__(self, "inside", points)  # not an assignment, which a frozen dataclass refuses

    def _close_arrays(self) -> None:
        """Makes the arrays read-only: metrics, objectives and figures of users are handed the record itself."""
        for name in (*ARRAYS, INSIDE):
            view = getattr(self, name).view()  # the maker of the array may still write to it
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def _check_values(self) -> None:
        import numpy as np

        for name in ARRAYS:
            values = getattr(self, name)
            outside = values[(values < 0) | (values > 1)]  # NaN is neither
            if outside.size:
                raise ValueError(f"{name} must hold fractions in [0, 1] or NaN, got {outside[0]}")
        tested = np.tri(self.tasks, dtype=bool)
        missing = np.isnan(self.accuracies) & tested
        if self.method == JOINT:  # it need not be trained after every task, and then has no such row
            missing[:-1] &= (tested & ~missing)[:-1].any(axis=1, keepdims=True)
        if self.status == "ok" and missing.any():
            raise ValueError("accuracies[k, j] must be measured for every j <= k when status is 'ok', got NaN")


@dataclass(frozen=True)
class StudyRow:
    """One study of the ledger."""

    name: str
    """The study's name."""
    config: Mapping[str, Any]
    """All its options; empty where the row is damaged."""
    created: str
    """Time at which it was stored first, ISO-8601, UTC."""
    checksum: str = ""
    """Checksum of the row, which changes with the study; "" where the row is damaged."""
    damage: str = ""
    """Why the row cannot be used; "" where it can."""


@dataclass(frozen=True)
class Summary:
    """What `epsearch list` shows of a study, stored so that the command need not read its records."""

    name: str
    """The study's name."""
    study: str
    """`StudyRow.checksum` of the study when this was computed; a summary with another one is out of date."""
    status: str
    """Finished, or the progress so far."""
    chosen: Mapping[str, Any] | None
    """The best point so far, as values by names of searched hyperparameters; None if there is none."""
    score: float | None
    """Mean A_T of the best point, fraction in [0, 1]; None if there is none."""
    inert: bool
    """Whether all values score the same bit for bit, so that none is the best."""

    def __post_init__(self) -> None:
        """Raises ValueError for a field of another type, as a row from elsewhere may have with a right checksum."""
        score = self.score
        right = {
            "status": isinstance(self.status, str),
            "chosen": self.chosen is None
            or (isinstance(self.chosen, Mapping) and all(isinstance(value, SCALARS) for value in self.chosen.values())),
            "score": score is None or type(score) in (int, float),
            "inert": isinstance(self.inert, bool),
        }
        for name, fits in right.items():
            if not fits:
                raise ValueError(f"{name} of a summary must not be {str(getattr(self, name))[:40]!r}")


def array_to_json(array: "NDArray[np.float64]") -> str:
    """Returns an array as JSON: nested lists, null for NaN.

    >>> import numpy as np
    >>> array_to_json(np.array([[0.1, np.nan]]))
    '[[0.1, null]]'
    """
    import numpy as np

    plain = np.asarray(array, dtype=np.float64).astype(object)  # which can hold None beside numbers
    plain[np.isnan(array)] = None
    return json.dumps(plain.tolist(), allow_nan=False)


def mapping_to_json(mapping: Mapping[str, Any]) -> str:
    """Returns a mapping as one JSON object with the keys in their order.

    Raises ValueError or TypeError for values that JSON does not have, such as NaN and ∞.
    """
    return json.dumps(dict(mapping), ensure_ascii=False, allow_nan=False)


def content_key(content: Mapping[str, Any]) -> str:
    """Returns the SHA-256, in hex, of a content as JSON, whatever the order of its keys.

    Under it the ledger stores the result that the content determines; of a row it is the checksum.
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def steps_taken(records: Iterable[RunRecord]) -> int:
    """Returns the SGD steps that members took, each step once.

    A member on further tasks goes on from the one on fewer, whose steps are among its own.
    """
    taken: dict[str, int] = {}
    for record in records:
        stream = {name: part for name, part in record.content.get("stream", {}).items() if name != BEYOND}
        first = content_key({**record.content, "stream": stream}) if record.further else record.key
        taken[first] = max(taken.get(first, 0), record.steps)
    return sum(taken.values())


def same_result(first: RunRecord, second: RunRecord) -> bool:
    """Returns whether two records have the same result bit for bit; NaN equals NaN.

    All fields are compared but `seconds`, `created` and `cohort`.
    """
    import numpy as np

    # Content as JSON, because a tuple comes back from the ledger as a list.
    row, other = ({**vars(r), "content": json.loads(json.dumps(r.content))} for r in (first, second))
    return all(
        np.array_equal(row[name], other[name], equal_nan=True)
        if name in (*ARRAYS, INSIDE)
        else row[name] == other[name]
        for name in row.keys() - {*NOT_THE_RESULT}
    )


def perturbed_key(key: str) -> str:
    """Returns the key of the certificate of a member that was trained once more from a perturbed start.

    >>> len(perturbed_key("00ff"))
    64
    """
    return hashlib.sha256(f"{key} moved".encode()).hexdigest()


@dataclass(frozen=True)
class Certificate:
    """The largest differences between one member trained once more, alone, and what is stored of it.

    0 means the same bit for bit. A difference that is NaN, because one of the two values is not a number, is stored as
    infinite. Raises ValueError for a negative difference and for a kind that there is not.

    >>> Certificate("00ff", 0.0, float("nan"), "2026-01-01T00:00:00+00:00").parameter_difference
    inf
    """

    key: str
    """Content key of the member, or `perturbed_key` of it: then the first difference is that of what is maximised."""
    accuracy_difference: float
    """Largest difference of any accuracy, fraction in [0, 1]; infinite where only one of the two was measured."""
    parameter_difference: float
    """Largest absolute difference of any final parameter; infinite where they differ, and nobody knows by how much."""
    created: str
    """ISO-8601 time, UTC."""
    kind: str = ALONE
    """One of KINDS, each of which has a table of its own."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of certificate {self.kind!r}; known: {', '.join(KINDS)}")
        for name in DIFFERENCES:
            value = float(getattr(self, name))
            if value < 0:
                raise ValueError(f"{name} must be >= 0, got {value}")
            # Not an assignment, which a frozen dataclass refuses.
            object.__setattr__(self, name, math.inf if math.isnan(value) else value)

    def within(self, tolerance: float) -> bool:
        """Returns whether no accuracy differs by more than `tolerance`; with 0 no parameter may differ either."""
        allowed = math.inf if tolerance > 0 else 0.0
        return self.accuracy_difference <= tolerance and self.parameter_difference <= allowed
