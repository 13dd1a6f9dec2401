"""Records as rows of the ledger's tables, which are here, too.

Arrays are JSON text: nested lists, null for NaN. Python prints a float64 with the fewest digits that are read back as
the same number, so the round trip is exact and any other tool can read it. Every row has a checksum: a row whose
checksum is wrong, or whose values are impossible, is damaged.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Row, Table

from results.ledger.record import (
    ALONE,
    ARRAYS,
    INSIDE,
    Certificate,
    RunRecord,
    StudyRow,
    Summary,
    array_to_json,
    content_key,
    mapping_to_json,
)
from results.ledger.record import perturbed_key as perturbed_key
from results.ledger.tables import CERTIFICATES as CERTIFICATES
from results.ledger.tables import DEVELOPMENT as DEVELOPMENT
from results.ledger.tables import TABLES_OF as TABLES_OF
from results.ledger.tables import VERSION as VERSION
from results.ledger.tables import audit as audit
from results.ledger.tables import certificates as certificates
from results.ledger.tables import claims as claims
from results.ledger.tables import events as events
from results.ledger.tables import leases as leases
from results.ledger.tables import metadata as metadata
from results.ledger.tables import queue as queue
from results.ledger.tables import reruns as reruns
from results.ledger.tables import runs as runs
from results.ledger.tables import studies as studies
from results.ledger.tables import summaries as summaries
from results.ledger.tables import turns as turns
from results.ledger.tables import versions as versions

UNREADABLE = (LookupError, ValueError, TypeError, ArithmeticError, RecursionError)
"""The exceptions that Python raises for JSON and values that are damaged."""


WITHIN = "within"
"""Column of the learning curves, and of tests inside tasks."""
LATEST = 32_503_680_000
"""The year 3000, in seconds since 1970: what is later is damaged, and no `datetime` may be made of it."""

StoredRow: TypeAlias = Row[Any] | Mapping[str, Any]
"""A row with its checksum: of a database, or from elsewhere."""


class Damaged(ValueError):
    """A row that is not as it was written; the message says why."""


@contextmanager
def _damage() -> Iterator[None]:
    """Turns what Python raises for damaged values into `Damaged`, on one line."""
    try:
        yield
    except UNREADABLE as error:
        raise Damaged(" ".join(str(error).split())) from error


def with_checksum(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row with its checksum; −0 becomes 0, as SQLite returns it."""
    values = {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
    return {**values, "checksum": content_key(values)}


def _values(row: StoredRow) -> dict[str, Any]:
    return dict(row) if isinstance(row, Mapping) else row._asdict()


def without_checksum(table: Table, row: StoredRow) -> dict[str, Any]:
    """Returns the row's values without the checksum. Raises Damaged where they do not match it, or their columns."""
    values = check_types(table, row)
    if values.pop("checksum") != content_key(values):
        raise Damaged("its checksum does not match")
    return values


def check_types(table: Table, row: StoredRow) -> dict[str, Any]:
    """Returns the row's values. Raises Damaged where they are of other types than their columns."""
    values = _values(row)
    for name, value in values.items():
        column = table.c[name]
        # SQLite stores any value in any column. Python reads a whole number of a column of numbers as an int.
        kinds = (int, float) if column.type.python_type is float else (column.type.python_type,)
        if not (isinstance(value, kinds) or (value is None and column.nullable)):
            raise Damaged(f"{name} must be {_kind(kinds[-1])}, got {_kind(type(value))}")
    return values


def is_moment(value: object) -> bool:
    """Returns whether a value of the database is a time of this millennium, in seconds since 1970."""
    return isinstance(value, int | float) and 0 <= value <= LATEST


def _kind(kind: type) -> str:
    return {str: "text", int: "a whole number", float: "a number", type(None): "nothing"}.get(kind, kind.__name__)


@_damage()
def from_row(row: StoredRow) -> RunRecord:
    """Returns the record of one row of `runs`. Raises Damaged."""
    import numpy as np

    values = without_checksum(runs, row)
    values["content"] = json_object("content", values["content"])
    if not isinstance(values["content"].get("config", {}), dict):
        raise Damaged("config of its content is no JSON object")
    arrays = {name: json.loads(values[name]) for name in ARRAYS}
    # Records with tests inside tasks have both in one column, so that all others keep their rows and checksums.
    if isinstance(arrays[WITHIN], dict):
        arrays |= {WITHIN: arrays[WITHIN][WITHIN], INSIDE: arrays[WITHIN][INSIDE]}
    return RunRecord(**values | {name: np.array(value, dtype=np.float64) for name, value in arrays.items()})


@_damage()
def to_certificate(row: StoredRow, kind: str = ALONE) -> Certificate:
    """Returns the certificate of one row of the kind's table. Raises Damaged."""
    return Certificate(**without_checksum(CERTIFICATES[kind], row), kind=kind)


def certificate_to_row(certificate: Certificate) -> dict[str, Any]:
    """Returns a certificate as a row of its kind's table with its checksum."""
    return with_checksum({name: value for name, value in asdict(certificate).items() if name != "kind"})


def study_to_row(name: str, config: Mapping[str, Any], created: str) -> dict[str, Any]:
    """Returns a study as a row of `studies` with its checksum. ValueError or TypeError for what JSON lacks."""
    return with_checksum({"name": name, "config": mapping_to_json(config), "created": created})


def to_study(row: StoredRow) -> StudyRow:
    """Returns the study of one row of `studies`; for a damaged row one that says so, without a configuration."""
    values = _values(row)
    try:
        return StudyRow(values["name"], _config(row), values["created"], values["checksum"])
    except Damaged as error:
        return StudyRow(str(values["name"]), {}, str(values["created"]), damage=str(error))


def summary_to_row(summary: Summary) -> dict[str, Any]:
    """Returns a summary as a row of `summaries` with its checksum. ValueError or TypeError for what JSON lacks."""
    values = asdict(summary)
    key = {name: values.pop(name) for name in ("name", "study")}
    return with_checksum(key | {"summary": mapping_to_json(values)})


def _config(row: StoredRow) -> dict[str, Any]:
    return json_object("config", without_checksum(studies, row)["config"])


@_damage()
def to_summary(row: StoredRow) -> Summary:
    """Returns the summary of one row of `summaries`. Raises Damaged, also for the fields of another version."""
    values = without_checksum(summaries, row)
    summary = Summary(values["name"], values["study"], **json_object("summary", values["summary"]))
    if summary.score is not None and not math.isfinite(summary.score):
        raise Damaged(f"score of a summary must be finite, got {summary.score}")
    return summary


READERS: Mapping[Table, Callable[[StoredRow], Any]] = {
    studies: _config,
    summaries: to_summary,
    runs: from_row,
    **{table: partial(to_certificate, kind=kind) for kind, table in CERTIFICATES.items()},
}
"""Table -> what makes a value of a row; these are the tables that ledgers give to each other."""


def json_object(name: str, text: str) -> dict[str, Any]:
    """Returns the object in a column of JSON. Raises Damaged where there is none."""
    try:
        value = json.loads(text)
    except UNREADABLE as error:
        raise Damaged(f"{name} is no JSON") from error
    if not isinstance(value, dict):
        raise Damaged(f"{name} is no JSON object")
    return value


def _whole(value: int | None) -> int | None:
    return None if value is None else int(value)


# NumPy scalars become plain numbers: drivers would store them as bytes.
PLAIN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("key", "phase", "method", "status", "created", "fingerprint", "cohort"), str),
    **dict.fromkeys(("seed", "steps", "diverged_task", "diverged_step"), _whole),
    **dict.fromkeys(("epsilon", "seconds"), float),
    **dict.fromkeys(ARRAYS, array_to_json),
    "content": mapping_to_json,
}
"""Field of a record -> what makes a plain value of it for its column."""


def to_row(record: RunRecord) -> dict[str, Any]:
    """Returns a record as a row of `runs` with its checksum. ValueError or TypeError for what JSON lacks."""
    row = {name: plain(getattr(record, name)) for name, plain in PLAIN.items()}
    if record.inside is not None and record.inside.size:
        row[WITHIN] = f'{{"{WITHIN}": {row[WITHIN]}, "{INSIDE}": {array_to_json(record.inside)}}}'
    return with_checksum(row)


def new_row(record: RunRecord) -> dict[str, Any]:
    """As `to_row`, of a record that no ledger has yet: ValueError for one of a GPU without what its self-check says."""
    if record.on_gpu and not record.self_check:
        raise ValueError(f"a run on a GPU is stored with what its self-check says, got none of {record.key}")
    return to_row(record)
