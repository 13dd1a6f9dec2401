"""The metrics of the paper, computed from raw accuracies by pure functions.

`a[..., k, j]` is the accuracy on task j after training task k (0-based, fractions in [0, 1], NaN where not measured).
Every function takes any leading dimensions and raises ValueError where the last two are not equal.

Sources: Chaudhry et al. 2019, "Efficient Lifelong Learning with A-GEM" (A_k: Eq. 1, F_k: Eq. 2–3, LCA: Eq. 4–5);
Lopez-Paz & Ranzato 2017, "Gradient Episodic Memory" (BWT, FWT).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from results.labels import mean_std_text, number_text
from results.ledger.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "METRICS",
    "Metric",
    "average_accuracy",
    "average_accuracy_curve",
    "backward_transfer",
    "first_task_accuracy",
    "forgetting",
    "forgetting_curve",
    "forward_transfer",
    "intransigence",
    "last_task_accuracy",
    "learning_curve_area",
    "mean_and_std",
    "mean_std",
    "summarize",
    "task_count",
    "undefined_metrics",
]

Array = NDArray[np.float64]

PERCENT = "%"
"""Unit of metrics that are printed in percent."""

TWO_TASKS = "a second task"
UNTRAINED_TASKS = f"{TWO_TASKS}, and tests of untrained tasks, which class-incremental streams do not have"


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric."""

    measure: Callable[[RunRecord], NDArray[np.float64]]
    """Returns its value for a run that did not diverge, a fraction."""
    digits: int
    """Decimals that tables and sentences for people have."""
    unit: str = ""
    """PERCENT for a metric that is in percent in files, JSON and Python; "" for a fraction."""
    needs: str = ""
    """What a run must have for the metric to be defined, where not every run has it."""
    display_percent: bool = False
    """Whether people see percent although files, JSON and Python have a fraction."""
    lower_is_better: bool = False
    """Whether a lower value is the better one."""

    def of(self, record: RunRecord) -> float:
        """Returns the value in its `unit`; NaN for a run that diverged."""
        if record.status != "ok":
            return float("nan")
        return (100.0 if self.unit == PERCENT else 1.0) * float(self.measure(record))

    @property
    def display_factor(self) -> float:
        """Returns the factor from values of `of` to those that people see."""
        return 100.0 if self.display_percent else 1.0

    @property
    def display_unit(self) -> str:
        """Returns the unit that people see: PERCENT, or "" for a fraction."""
        return PERCENT if self.display_percent else self.unit

    def number_text(self, value: float) -> str:
        """Returns a value of `of` for people, in `display_unit`; a dash for NaN.

        >>> METRICS["F_T"].number_text(0.0324), METRICS["A_T"].number_text(91.5)
        ('3.2', '91.50')
        """
        return number_text(self.display_factor * value, self.digits)

    def mean_std_text(self, mean: float, std: float) -> str:
        """Returns mean ± standard deviation for people, in `display_unit`.

        >>> METRICS["F_T"].mean_std_text(0.0324, 0.0011)
        '3.2 ± 0.1'
        """
        return mean_std_text(self.display_factor * mean, self.display_factor * std, self.digits)


def average_accuracy_curve(a: Array) -> Array:
    """Returns A_k = (1/k) Σ_{j<=k} a[k, j] for every k. [..., T, T] -> [..., T], fractions.

    >>> average_accuracy_curve(np.array([[0.9, np.nan], [0.5, 0.7]])).tolist()
    [0.9, 0.6]
    """
    tasks = task_count(a)
    # A record also has the next task before its first step (for FWT), which A_k does not count.
    tested = np.where(np.tri(tasks, dtype=bool), a, 0.0)
    return np.asarray(tested.sum(axis=-1) / np.arange(1, tasks + 1))


def average_accuracy(a: Array) -> Array:
    """Returns A_T, the mean accuracy on all tasks after the last one. [..., T, T] -> [...], fraction.

    >>> float(average_accuracy(np.array([[0.9, np.nan], [0.5, 0.7]])))
    0.6
    """
    return average_accuracy_curve(a)[..., -1]


def forgetting_curve(a: Array) -> Array:
    """Returns F_k = (1/(k-1)) Σ_{j<k} (max_{1<=l<=k-1} a[l, j] - a[k, j]) for every k.

    [..., T, T] -> [..., T], fractions; NaN at k = 1. The maximum is over every measured row before k, not only over
    rows from j on, as in the paper's equation.

    >>> forgetting_curve(np.array([[0.9, 0.1, np.nan], [0.5, 0.7, 0.2], [0.6, 0.4, 0.8]])).round(3).tolist()
    [nan, 0.4, 0.3]
    """
    tasks = task_count(a)
    best = np.fmax.accumulate(a, axis=-2)[..., :-1, :]  # fmax, because rows before a task are mostly not measured
    drop = np.where(np.tri(tasks - 1, tasks, dtype=bool), best - a[..., 1:, :], 0.0)
    first = np.full((*a.shape[:-2], 1), np.nan)  # there is nothing to forget yet
    return np.concatenate([first, drop.sum(axis=-1) / np.arange(1, tasks)], axis=-1)


def forgetting(a: Array) -> Array:
    """Returns F_T, the forgetting after the last task. [..., T, T] -> [...], fraction; NaN where T = 1.

    It may be negative, but never below -BWT.

    >>> round(float(forgetting(np.array([[0.9, np.nan], [0.5, 0.7]]))), 3)
    0.4
    """
    return forgetting_curve(a)[..., -1]


def first_task_accuracy(a: Array) -> Array:
    """Returns a_1, the accuracy on the first task after the last one. [..., T, T] -> [...], fraction.

    >>> float(first_task_accuracy(np.array([[0.9, np.nan], [0.5, 0.7]])))
    0.5
    """
    task_count(a)
    return np.asarray(a[..., -1, 0])


def last_task_accuracy(a: Array) -> Array:
    """Returns a_t, the accuracy on the last task after training it. [..., T, T] -> [...], fraction.

    >>> float(last_task_accuracy(np.array([[0.9, np.nan], [0.5, 0.7]])))
    0.7
    """
    task_count(a)
    return np.asarray(a[..., -1, -1])


def intransigence(a: Array, joint: float | NDArray[np.float64]) -> Array:
    """Returns I_T = joint − a[T, T], by how much a network that learned the last task alone is worse at it.

    a [..., T, T], joint [...]: accuracy on the last task of a network that was trained on all tasks together (a*_T) ->
    [...], a fraction; lower is better. Source: Chaudhry et al. 2018, "Riemannian Walk for Incremental Learning", Eq. 3.

    >>> round(float(intransigence(np.array([[0.9, np.nan], [0.5, 0.7]]), 0.9)), 3)
    0.2
    """
    return np.asarray(joint - last_task_accuracy(a))


def backward_transfer(a: Array) -> Array:
    """Returns BWT = (1/(T-1)) Σ_{i<T} (a[T, i] - a[i, i]). [..., T, T] -> [...], fraction; NaN where T = 1.

    >>> round(float(backward_transfer(np.array([[0.9, np.nan], [0.5, 0.7]]))), 3)
    -0.4
    """
    if task_count(a) == 1:
        return np.full(a.shape[:-2], np.nan)
    learned = np.diagonal(a, axis1=-2, axis2=-1)
    return np.asarray((a[..., -1, :-1] - learned[..., :-1]).mean(axis=-1))


def forward_transfer(a: Array, initial: Array) -> Array:
    """Returns FWT = (1/(T-1)) Σ_{i>=2} (a[i-1, i] - b̄_i), where b̄ is the accuracy of the untrained network.

    a [..., T, T], initial b̄ [..., T] -> [...], fraction; NaN where T = 1.

    >>> round(float(forward_transfer(np.array([[0.9, 0.15], [0.5, 0.7]]), np.array([0.1, 0.1]))), 3)
    0.05
    """
    if initial.shape != a.shape[:-1]:
        raise ValueError(f"initial must have shape {list(a.shape[:-1])}, got {list(initial.shape)}")
    if task_count(a) == 1:
        return np.full(a.shape[:-2], np.nan)
    # a[i − 1, i]: on the next task, after the one before it and before its own first step.
    unseen = np.diagonal(a, offset=1, axis1=-2, axis2=-1)
    return np.asarray((unseen - initial[..., 1:]).mean(axis=-1))


def learning_curve_area(within: Array) -> Array:
    """Returns LCA_β = (1/(β+1)) Σ_{b=0..β} Z_b with Z_b = (1/T) Σ_k a[k, b, k].

    within [..., T, β + 1] -> [...], fraction; records have β = 10. NaN where a task had fewer than β mini-batches.

    >>> round(float(learning_curve_area(np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]]))), 3)
    0.3
    """
    if within.ndim < 2 or within.shape[-1] == 0:
        raise ValueError(f"within must have shape [..., T, B] with B >= 1, got {list(within.shape)}")
    return np.asarray(within.mean(axis=(-2, -1)))


def summarize(records: Iterable[RunRecord]) -> "pd.DataFrame":
    """Returns one row a record, in the units of the files: percent, but F_T and LCA_10 as fractions.

    Columns: method, epsilon, seed, order (where one is not the stream's own), phase, status, then `METRICS`. Every
    metric of a diverged member is NaN.
    """
    import pandas as pd

    runs = list(records)
    rows = [
        (r.method, r.epsilon, r.seed, r.phase, r.status, *(metric.of(r) for metric in METRICS.values())) for r in runs
    ]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "seed", "phase", "status", *METRICS])
    if any(r.unit.order for r in runs):
        table.insert(table.columns.get_loc("phase"), "order", [r.unit.order for r in runs])  # type: ignore[arg-type]
    return table


def mean_std(
    records: Iterable[RunRecord], metrics: Iterable[str] | None = None, population: bool = False
) -> dict[str, float]:
    """Returns n (records with a result), diverged, and <metric>_mean and <metric>_std of every metric.

    Units of `summarize`. The standard deviation is the sample's (ddof 1). population: the population's (ddof 0) in its
    place, which the paper prints, for tables with printed rows. Diverged records are counted but not averaged. The
    spread of fewer than two measured records is NaN, not 0.
    """
    records = tuple(records)
    n = sum(record.status == "ok" for record in records)
    row: dict[str, float] = {"n": n, "diverged": len(records) - n}
    for name in METRICS if metrics is None else metrics:
        values = [value for record in records if not math.isnan(value := METRICS[name].of(record))]
        mean = _mean(values)
        differences = [value - mean for value in values]
        # A product, as a power of what is too large would raise instead of being infinite.
        variance = _mean([difference * difference for difference in differences])
        if not population and len(values) > 1:
            variance *= len(values) / (len(values) - 1)
        spread = math.sqrt(variance) if len(values) > 1 else math.nan
        row |= {f"{name}_mean": mean, f"{name}_std": spread}
    return row


def mean_and_std(metric: str) -> dict[str, str]:
    """Returns the columns of a metric in `mean_std`, by what they are.

    >>> mean_and_std("A_T")
    {'mean': 'A_T_mean', 'std': 'A_T_std'}
    """
    return {part: f"{metric}_{part}" for part in ("mean", "std")}


def undefined_metrics(records: Iterable[RunRecord]) -> list[str]:
    """Returns a sentence for each metric that none of these runs has, though they did not diverge."""
    measured = [record for record in records if record.status == "ok"]
    # Of a trainer of others, which takes steps that nobody counts, whatever tests it has not reported are missing.
    foreign = bool(measured) and all(not record.steps for record in measured)
    return [
        f"{name} is not defined here: it needs {'tests that the trainer did not report' if foreign else metric.needs}."
        for name, metric in METRICS.items()
        if metric.needs and measured and all(math.isnan(metric.of(record)) for record in measured)
    ]


def _mean(values: Sequence[float]) -> float:
    """Returns the correctly rounded mean, the same on every processor; NaN of nothing."""
    if not values:
        return math.nan
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):  # it refuses sums that are not finite, which metrics of others may have
        return sum(values) / len(values)


def task_count(a: Array) -> int:
    """Returns T of [..., T, T]. Raises ValueError for other shapes."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] == 0:
        raise ValueError(f"accuracies must have shape [..., T, T] with T >= 1, got {list(a.shape)}")
    return int(a.shape[-1])


class Metrics(MutableMapping[str, Metric]):
    """Metrics by name: ours, and behind them those that a study adds."""

    def __init__(self, own: Mapping[str, Metric]) -> None:
        self._own = dict(own)
        self._added: ContextVar[Mapping[str, Metric]] = ContextVar("added")

    @property
    def own(self) -> Mapping[str, Metric]:
        """The metrics that are there without any study."""
        return self._own

    @contextmanager
    def with_others(self, others: Mapping[str, Metric]) -> Iterator[None]:
        """Within it, and for whom it calls, others are there, too, which have other names than ours."""
        token = self._added.set(others)
        try:
            yield
        finally:
            self._added.reset(token)

    def __getitem__(self, name: str) -> Metric:
        return self._own[name] if name in self._own else self._added.get({})[name]

    def __setitem__(self, name: str, metric: Metric) -> None:
        self._own[name] = metric

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._added.get({})))

    def __len__(self) -> int:
        return len(self._own) + len(self._added.get({}))


METRICS = Metrics(
    {
        "A_T": Metric(lambda run: average_accuracy(run.accuracies), 2, PERCENT),
        "F_T": Metric(
            lambda run: forgetting(run.accuracies), 1, needs=TWO_TASKS, display_percent=True, lower_is_better=True
        ),
        "a_1": Metric(lambda run: first_task_accuracy(run.accuracies), 2, PERCENT),
        "a_t": Metric(lambda run: last_task_accuracy(run.accuracies), 2, PERCENT),
        "LCA_10": Metric(lambda run: learning_curve_area(run.within), 3, needs="ten mini-batches in every task"),
        "BWT": Metric(lambda run: backward_transfer(run.accuracies), 2, PERCENT, needs=TWO_TASKS),
        "FWT": Metric(lambda run: forward_transfer(run.accuracies, run.initial), 2, PERCENT, needs=UNTRAINED_TASKS),
    }
)
"""The metrics of `summarize`, in the order of tables."""

ACCURACIES = ("A_T", "a_1", "a_t")
"""Those that are accuracies, so never negative; others in percent are differences of such."""

BESIDE_JOINT = {
    "I_T": Metric(
        lambda run: intransigence(run.accuracies, math.nan if run.joint is None else run.joint),
        1,
        needs="a run of joint training with the same seed",
        display_percent=True,
        lower_is_better=True,
    )
}
"""Metrics of tables that have a row of joint training."""
