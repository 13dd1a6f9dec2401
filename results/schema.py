"""The tables of the ledger, and records as their rows.

Arrays are JSON text: nested lists, null for NaN. Python prints a float64 with the shortest digits that read
back to the same number, so the round trip is exact and any other tool can read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Row, String, Table, Text

from results.record import ARRAYS, RunRecord

VERSION = 2

metadata = MetaData()

# The prefix keeps clear of other programs in a shared database: "studies" and "runs" are names that tuners
# and trackers use.
versions = Table(
    "epsearch_schema",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

runs = Table(
    "epsearch_runs",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("phase", String(16), nullable=False),
    Column("method", String(64), nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("diverged_task", Integer),
    Column("diverged_step", BigInteger),
    Column("steps", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    *(Column(name, Text, nullable=False) for name in ARRAYS),
    Column("content", Text, nullable=False),
    Column("created", String(64), nullable=False),
    # A default of the database: a program of version 1 that still has the ledger open keeps adding rows.
    Column("fingerprint", String(64), nullable=False, server_default=""),
    Column("cohort", String(64), nullable=False, server_default=""),
)

studies = Table(
    "epsearch_studies",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("config", Text, nullable=False),
    Column("created", String(64), nullable=False),
)

certificates = Table(
    "epsearch_certificates",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("accuracy_difference", Double, nullable=False),
    Column("parameter_difference", Double, nullable=False),
    Column("created", String(64), nullable=False),
)

TEXTS = ("key", "phase", "method", "status", "created", "fingerprint", "cohort")

ADDED_COLUMNS = {2: (runs.c.fingerprint, runs.c.cohort)}
"""Version -> the columns it added to tables that were there before. New tables need no entry."""


def to_row(record: RunRecord) -> dict[str, Any]:
    """The record as a row of `runs`; numpy scalars become plain numbers, because drivers store those as
    bytes.
    """
    row: dict[str, Any] = {name: array_to_json(getattr(record, name)) for name in ARRAYS}
    row |= {name: str(getattr(record, name)) for name in TEXTS}
    row |= {name: _integer(getattr(record, name)) for name in ("seed", "steps", "diverged_task", "diverged_step")}
    row |= {"epsilon": float(record.epsilon), "seconds": float(record.seconds)}
    return row | {"content": mapping_to_json(record.content)}


def from_row(row: Row[Any]) -> RunRecord:
    """The record of one row of `runs`."""
    values = dict(row._mapping)
    for name in ARRAYS:
        values[name] = json_to_array(values[name])
    return RunRecord(**{**values, "content": json.loads(values["content"])})


def array_to_json(array: NDArray[np.float64]) -> str:
    """Nested lists, null for NaN.

    >>> array_to_json(np.array([[0.1, np.nan]]))
    '[[0.1, null]]'
    """
    plain = np.asarray(array, dtype=np.float64).astype(object)
    plain[np.isnan(array)] = None
    return json.dumps(plain.tolist(), allow_nan=False)


def json_to_array(text: str) -> NDArray[np.float64]:
    """The inverse of `array_to_json`, exact."""
    return np.array(json.loads(text), dtype=np.float64)


def mapping_to_json(mapping: Mapping[str, Any]) -> str:
    """One JSON object, keys in their order. ValueError or TypeError where a value is no JSON (NaN and ∞ are
    none).
    """
    return json.dumps(dict(mapping), ensure_ascii=False, allow_nan=False)


def _integer(value: int | None) -> int | None:
    return None if value is None else int(value)
