"""Records as flat tables for other tools: CSV and Parquet."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from results.files import write_atomically
from results.ledger.errors import flatten
from results.ledger.record import RunRecord
from results.metrics import METRICS, summarize

FIELDS = ("diverged_task", "diverged_step", "steps", "seconds", "created", "fingerprint", "cohort")
DTYPES = {
    frozenset({bool}): "boolean",
    frozenset({int}): "Int64",
    frozenset({float}): "Float64",
    frozenset({int, float}): "Float64",
}
"""Types of the values of a column -> its type in pandas, which has a place for missing values; text for all others."""


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Writes a table as UTF-8 CSV without an index, atomically, and returns its path; floats keep all their digits."""
    return write_atomically(path, csv_text(frame).encode())


def csv_text(frame: pd.DataFrame) -> str:
    """Returns a table as CSV without an index; floats keep all their digits."""
    return str(frame.to_csv(index=False, lineterminator="\n"))


def export_runs(records: Iterable[RunRecord], folder: Path) -> tuple[Path, ...]:
    """Writes runs.csv, runs.parquet, accuracies.csv and accuracies.parquet into `folder`, each atomically.

    Returns their paths. See `runs_table` and `accuracies_table` for the columns. Raises OSError where writing fails.
    """
    runs = list(records)
    written = []
    for name, table in (("runs", runs_table(runs)), ("accuracies", accuracies_table(runs))):
        written.append(write_csv(folder / f"{name}.csv", table))
        # Through memory, because pandas itself does not write atomically.
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        written.append(write_atomically(folder / f"{name}.parquet", buffer.getvalue()))
    return tuple(written)


def runs_table(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Returns one row a record, with its metrics and everything that identifies it.

    Columns: key, those of `summarize` (percent and fractions as in the paper), tasks, diverged_task (0-based),
    diverged_step, violation_share (mean over the tasks that have one), steps, seconds, created, fingerprint, cohort,
    then one column content.<name> for each leaf of the content, such as a hyperparameter.
    """
    runs = list(records)
    table = summarize(runs)
    table.insert(0, "key", [r.key for r in runs])
    table.insert(table.columns.get_loc(next(iter(METRICS))), "tasks", [r.tasks for r in runs])  # type: ignore[arg-type]
    table["violation_share"] = [_mean_measured(r) for r in runs]
    for name in FIELDS:
        table[name] = [getattr(r, name) for r in runs]
    # Nullable integers: pandas would turn whole numbers with gaps into floats.
    for name in ("diverged_task", "diverged_step"):
        table[name] = table[name].astype("Int64")
    contents = [_leaves(r) for r in runs]
    names = dict.fromkeys(name for content in contents for name in content)
    columns = {f"content.{name}": _column([content.get(name) for content in contents]) for name in names}
    # All at once: pandas warns of a table that grows by hundreds of columns one after another.
    return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)


def accuracies_table(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Returns a long table, one row a measured accuracy: key, phase, method, epsilon, seed, k, j, accuracy.

    Behind the seed stands the number of the order of tasks, where one is not the stream's own.

    k and j are 1-based: the accuracy (fraction in [0, 1]) on task j after training task k. j = k + 1 is the next task
    before its first step, k = 0 the untrained network, as FWT needs them.
    """
    rows = [
        (r.key, r.phase, r.method, r.epsilon, r.seed, r.unit.order, int(k), int(j) + 1, float(measured[k, j]))
        for r in records
        for measured in [np.vstack([r.initial, r.accuracies])]
        for k, j in np.argwhere(~np.isnan(measured))
    ]
    table = pd.DataFrame(rows, columns=["key", "phase", "method", "epsilon", "seed", "order", "k", "j", "accuracy"])
    return table if table["order"].any() else table.drop(columns="order")


def _mean_measured(record: RunRecord) -> float:
    """Returns the mean share of projected steps over the tasks that have one; NaN without any."""
    measured = record.violations[~np.isnan(record.violations)]
    # Asked first: the mean of nothing is NaN, too, but with a warning.
    return float(measured.mean()) if measured.size else float("nan")


def _leaves(record: RunRecord) -> dict[str, Any]:
    """Returns dotted name -> leaf of the content: scalars as they are, lists as JSON text."""
    leaves = ((name, text, json.loads(text)) for name, text in flatten(record.content))
    return {name: text if isinstance(value, (list, dict)) else value for name, text, value in leaves}


def _column(values: list[Any]) -> pd.Series:
    """Returns a column of one type: Parquet cannot mix numbers and words, so such a column becomes text."""
    dtype = DTYPES.get(frozenset(type(v) for v in values if v is not None))
    if dtype is None:
        return pd.Series([None if v is None else str(v) for v in values], dtype="string")
    return pd.Series(values, dtype=dtype)
