"""Points: values of the searched hyperparameters, and their texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from results.labels import epsilon_text, label, method_label
from results.ledger.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = float | int | str
"""One value of a hyperparameter."""
Point: TypeAlias = tuple[Value, ...]
"""A point: one value for each searched hyperparameter, in the order of their names."""

EPSILON = "epsilon"
SOFT_AGEM, AGEM = "soft_agem", "agem"
IN_THE_CONFIGURATION = {"lr": "learning_rate"}
"""Name of a searched hyperparameter -> its name in a record's configuration, where they differ."""


LEFT_OUT: dict[str, Value] = {
    **{"epochs": 1, "optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0, "lr_factor": 1.0},
    **{"sensitivity": 1e-10, "damping": 0.1},
}
"""Name of a searched hyperparameter -> its value in records whose configuration leaves it out, as older ones do."""

COLUMNS = frozenset(
    (
        *("key", "phase", "method", "seed", "status", "tasks", "diverged", "diverged_task", "diverged_step", "steps"),
        *(
            "seconds",
            "cohort",
            "created",
            "fingerprint",
            "n",
            "row",
            "source",
            "repeat",
            "batch",
            "low",
            "high",
            "rank",
        ),
        *("score", "position", "best", "mean", "value", "setting", "members"),
        *("order", "missing", "below", "seen", "measured"),
    )
)
"""Names of columns, which hyperparameters of others cannot have."""


def value(record: RunRecord, name: str) -> Value | None:
    """Returns the record's value of a hyperparameter; None where its method does not use it.

    Then any value gives the same result: A-GEM, which is ε-SOFT-GEM at ε = 0, has no trigger.
    """
    if name == EPSILON:
        return record.epsilon
    # λ of our methods is part of a method, the others are options of a training: records keep them in different places.
    config: Mapping[str, Value | None] = record.content.get("config", {})
    if name in config:
        return config[name]
    if name == "strength":
        return record.content.get(name)
    return config.get(IN_THE_CONFIGURATION.get(name, name), LEFT_OUT.get(name))


def point_of(record: RunRecord, names: Sequence[str]) -> tuple[Value | None, ...]:
    """Returns the record's values of the named hyperparameters; None as in `value`."""
    return tuple(value(record, name) for name in names)


def matches(values: Sequence[Value | None], point: Sequence[Value]) -> bool:
    """Returns whether a record with these values belongs to a point; None fits every value.

    >>> matches((0.0, None), (0.0, "raw")), matches((0.1, "mean"), (0.1, "raw"))
    (True, False)
    """
    return all(coordinate is None or coordinate == other for coordinate, other in zip(values, point, strict=True))


def group(
    records: Iterable[RunRecord], names: Sequence[str], points: Iterable[Point]
) -> dict[Point, tuple[RunRecord, ...]]:
    """Returns point -> its records, in their order.

    A record whose method does not use one of the hyperparameters belongs to every point that agrees in the others.
    """
    valued = [(point_of(record, names), record) for record in records]
    loose = [(values, record) for values, record in valued if None in values]
    # A dictionary for the usual case: comparing every record with every point would be quadratic.
    exact: defaultdict[tuple[Value | None, ...], list[RunRecord]] = defaultdict(list)
    for values, record in valued:
        exact[values].append(record)
    return {p: (*exact.get(p, ()), *(r for values, r in loose if matches(values, p))) for p in points}


def by_point(
    groups: Mapping[Point, Sequence[RunRecord]] | Mapping[tuple[str, str], Sequence[RunRecord]],
    names: Sequence[str],
    population: bool = False,
) -> pd.DataFrame:
    """Returns one row per point, in order, with the mean and spread of every metric.

    Columns: one for each of `names`, n (seeds averaged), diverged, then <metric>_mean and <metric>_std (see
    `mean_std`, also for `population`). A point without members has n = 0.
    """
    import pandas as pd

    from results.metrics import METRICS, mean_and_std, mean_std  # late, too: a list of studies prints points alone

    columns = ["n", "diverged", *(column for metric in METRICS for column in mean_and_std(metric).values())]
    values = pd.DataFrame({name: [point[i] for point in groups] for i, name in enumerate(names)})
    table = pd.DataFrame([mean_std(members, population=population) for members in groups.values()], columns=columns)
    return pd.concat([values, table], axis=1)


def parameter_label(name: str) -> str:
    """Returns the name of a hyperparameter as people write it."""
    return label("hyperparameter", name)


def value_text(value: Value | None) -> str:
    """Returns a value as people write it: six significant digits; a dash where it is not used.

    >>> value_text(0.1 + 0.2), value_text(25), value_text("raw"), value_text(None)
    ('0.3', '25', 'raw', '–')
    """
    if value is None:
        return "–"
    return epsilon_text(value) if isinstance(value, float) else str(value)


def point_text(names: Sequence[str], point: Sequence[Value | None]) -> str:
    """Returns a point in words.

    >>> point_text(("delta", "gamma"), (0.1 + 0.2, 0.1))
    'delta = 0.3, gamma = 0.1'
    """
    return ", ".join(f"{parameter_label(n)} = {value_text(v)}" for n, v in zip(names, point, strict=True))


def is_agem(method: str, names: Sequence[str], point: Sequence[Value | None]) -> bool:
    """Returns whether a point is A-GEM: ε = 0 of ε-SOFT-GEM. The ε of any other method has another meaning.

    >>> is_agem("soft_agem", ("lr", "epsilon"), (0.1, 0.0)), is_agem("mine", ("epsilon",), (0.0,))
    (True, False)
    """
    return method == SOFT_AGEM and dict(zip(names, point, strict=True)).get(EPSILON) == 0


def point_label(method: str, names: Sequence[str], point: Sequence[Value]) -> str:
    """Returns the name of a method at one point; "A-GEM" where it is that.

    >>> point_label("soft_agem", ("epsilon",), (0.0,)), point_label("soft_agem", ("delta", "epsilon"), (0.1, 0.0))
    ('A-GEM (ε = 0)', 'A-GEM (ε = 0), delta = 0.1')
    >>> point_label("nobodys", ("delta",), (10.0,))
    'nobodys, delta = 10'
    """
    if not is_agem(method, names, point):
        return f"{method_label(method)}, {point_text(names, point)}"
    # ε = 0 is what makes it A-GEM, so the name has it already.
    settings = {name: value for name, value in zip(names, point, strict=True) if name != EPSILON}
    others = point_text(tuple(settings), tuple(settings.values()))
    return f"A-GEM (ε = 0), {others}" if others else "A-GEM (ε = 0)"


def is_number(value: Value) -> bool:
    """Returns whether a value has a place on an axis: a number, but not a truth value.

    >>> is_number(3), is_number("raw"), is_number(True)
    (True, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)
