"""The order of a list of studies, and the place at which its next page begins: pages do not shift as studies come."""

import base64
import json
from collections.abc import Iterable

from epsearch.failures.errors import UsageError, brief
from epsearch.status import UNKNOWN, StudyStatus
from trainers.spelling import unknown

FIELDS = ("created", "name", "state", "kind", "dataset", "score", "submitter", "priority")
"""Fields by which studies are sorted; "-" before one is for descending values."""
NEWEST = "-created"
"""The newest first."""
_NONE = (None, "", UNKNOWN)


def sort_studies(statuses: Iterable[StudyStatus], sort: str = NEWEST) -> list[StudyStatus]:
    """Returns studies sorted by a field, then by name; those without a value come last. Raises UsageError."""
    field = _field(sort)
    present, missing = list[StudyStatus](), list[StudyStatus]()
    for status in statuses:
        (missing if getattr(status, field) in _NONE else present).append(status)
    present.sort(key=lambda row: (getattr(row, field), row.name), reverse=sort.startswith("-"))
    return present + sorted(missing, key=lambda row: row.name)


def place(status: StudyStatus, sort: str) -> str:
    """Returns the place behind a study of a sorted list, as text for `behind`."""
    row = json.dumps([sort, getattr(status, _field(sort)), status.name])
    return base64.urlsafe_b64encode(row.encode()).decode().rstrip("=")


def behind(statuses: Iterable[StudyStatus], after: str, sort: str) -> list[StudyStatus]:
    """Returns the studies behind a place, sorted, whether or not its own study still exists.

    Raises UsageError for a place that `place` has not made for this order.
    """
    try:
        of, value, name = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        mark = StudyStatus(**{"name": name, _field(sort): value})
        rows = sort_studies([*statuses, mark], sort)
    except (ValueError, TypeError, RecursionError):
        of = None
    if of != sort:
        raise UsageError(f"after must be the `next` of another page of the same order, got {brief(after)}")
    return rows[next(number for number, row in enumerate(rows) if row is mark) + 1 :]


def _field(sort: str) -> str:
    field = sort.removeprefix("-")
    if field not in FIELDS:
        raise UsageError(unknown("sort", field, FIELDS))
    return field
