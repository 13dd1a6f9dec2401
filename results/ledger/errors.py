"""Errors of the ledger; each has a message of one line."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

RECOVER = "save what can be read of it with `sqlite3 FILE .recover`"
"""What to do with a damaged SQLite file, for messages."""
MOST_FIELDS = 2
"""Fields of two configurations that a message names."""


class StoreError(Exception):
    """Error of the ledger; the message is one line with condition, value and what is allowed."""


class StoreUnavailable(StoreError):
    """Temporary error of the database: its disk is full, or its file is locked."""


class StoreGone(StoreUnavailable):
    """The database does not answer but may answer later: it is being restarted, or the network is down."""


class StoreLocked(StoreGone):
    """The SQLite file is locked by another program, for as long as that is in the middle of a transaction."""


class StudyConflict(StoreError):
    """A study with this name exists and has another configuration."""


def conflict(name: str, stored: Mapping[str, Any], new: Mapping[str, Any]) -> StudyConflict:
    """Returns the error that names MOST_FIELDS differing fields with both values, and counts the others.

    >>> str(conflict("demo", {"repeats": 5}, {"repeats": 3})).split("; ")[0]
    "study 'demo' exists with another configuration: repeats is 5 there, 3 here"
    >>> str(conflict("demo", {"a": 1, "b": 2, "c": 3}, {})).split("; ")[0].partition("here and ")[2]
    'b is 2 there, absent here and 1 more'
    """
    old, now = dict(flatten(stored)), dict(flatten(new))
    changed = [field for field in old | now if old.get(field) != now.get(field)]
    # As JSON a text has quotes, so a value "absent" is not mistaken for a field that is absent.
    fields = " and ".join(
        f"{field} is {old.get(field, 'absent')} there, {now.get(field, 'absent')} here"
        for field in changed[:MOST_FIELDS]
    )
    if more := len(changed[MOST_FIELDS:]):
        fields += f" and {more} more"
    return StudyConflict(
        f"study {name!r} exists with another configuration: {fields}; choose another --name or repeat its options"
    )


def flatten(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields (dotted name, JSON text) of every leaf of a nested mapping.

    >>> list(flatten({"a": {"b": [1, 2]}, "c": "x"}))
    [('a.b', '[1, 2]'), ('c', '"x"')]
    """
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False)
