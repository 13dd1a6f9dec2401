"""Answers of the API: its models, and their making."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import BaseModel, Field, TypeAdapter

from epsearch.service.requests import SERVER_SET
from epsearch.service.results_cache import StudyResults
from epsearch.status import UNKNOWN, StudyStatus
from epsearch.study import description
from epsearch.study.kinds import Search
from results.ledger.writers import events
from results.search import SearchResults
from results.verdict.answer import answer as in_words
from results.verdict.assessment import trust

TABLES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "schema": {"type": "array", "items": {"type": "object", "additionalProperties": True}}
            },
            "text/csv": {},
            "application/vnd.apache.parquet": {},
        }
    }
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
IN_WORDS: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}}}}


@dataclass(frozen=True)
class Studies:
    """A page of a list."""

    studies: list[StudyStatus]
    total: int
    """Of all pages."""
    page: int
    next: str | None = None
    """Place of the next page, for `after`; null on the last one. Pages by place do not shift as studies come."""


LIST = TypeAdapter(Studies)


class Verdict(BaseModel):
    """Verdict on the best value."""

    kind: str = Field(description="resolved, one-sided, edge, level, open, diverging or inert.")
    text: str
    advice: str
    low: float | None
    high: float | None


UNCHANGED: dict[int | str, dict[str, Any]] = {
    200: {"model": StudyStatus, "description": "Nothing was changed: it is finished, or in the queue already."}
}


@dataclass(frozen=True, kw_only=True)
class Study(StudyStatus):
    """A study with its results."""

    found: str
    """The best so far, in words."""
    answer: str | None
    """The answer of a search, in words."""
    verdict: Verdict | None
    members: int
    """In the ledger."""
    config: dict[str, Any]
    """Options, without paths of the service."""


class Event(BaseModel):
    """One event of a study."""

    id: int = Field(description="Number of the change of the ledger.")
    study: str
    kind: str = Field(description="begin, plan, progress, note, warning, records or state.")
    data: dict[str, Any]
    time: float = Field(description="Seconds since 1970.")


class Figure(BaseModel):
    """A figure with its data."""

    name: str
    caption: str
    drawing: dict[str, Any] = Field(description="plotly's JSON: data and layout.")
    tables: dict[str, list[dict[str, Any]]] = Field(description="Name of a table -> its rows.")


class Credential(BaseModel):
    """A token without its secret."""

    name: str
    role: str = Field(description="read, write or admin.")
    expires: str | None = Field(description="ISO-8601, UTC; null for never.")


class Person(BaseModel):
    """An owner of studies."""

    name: str
    tokens: list[Credential]
    queued: int = Field(description="Studies that wait or run.")
    running: int = Field(description="Studies that run.")
    max_queued: int | None = Field(description="Most studies that may wait or run; null for any number.")
    max_running: int = Field(description="Most studies that may run.")
    studies: int = Field(description="Studies in the ledger and the queue.")


class StudyLabels(BaseModel, extra="forbid"):
    """Labels of a study; one that is left out stays as it is."""

    tags: list[str] | None = Field(default=None, description="At most 10; letters, digits and . _ -.")
    notes: str | None = Field(default=None, description="Text, at most 5,000 characters.")


class Removed(BaseModel):
    """A study that was deleted."""

    name: str
    members: int
    shared: int = Field(description="Members that stay, as other studies use them.")


class Sharing(BaseModel):
    """Two studies and the number of members that they share."""

    studies: tuple[str, str]
    members: int


class Ledger(BaseModel):
    """Contents of a ledger."""

    runs: int
    studies: dict[str, int] = Field(description="Study -> number of its stored members.")
    shared: list[Sharing]
    unused: int = Field(description="Runs that no study uses.")


def study(status: StudyStatus, stored: description.Study, results: StudyResults | None) -> Study:
    """Returns the status of a study with its results, None before there are any.

    The results are of one moment, also the choice and its score, which the status may have newer.
    """
    answer = verdict = None
    own = {field.name: getattr(status, field.name) for field in fields(status) if field.init}
    if results is not None and results.results is not None and stored.kind == Search.kind:
        search = cast(SearchResults, results.results)
        answer, verdict = in_words(search), _verdict(search)
        own |= {"chosen": dict(zip(search.parameters, search.chosen, strict=True)), "score": search.chosen_score}
    return Study(
        **own,
        found=UNKNOWN if results is None else results.headline,
        answer=answer,
        verdict=verdict,
        members=0 if results is None else len(results.records),
        config={name: value for name, value in stored.to_dict().items() if name not in SERVER_SET},
    )


def event(stored: events.Event) -> Event:
    """Returns a stored event without its token."""
    return Event(**{name: value for name, value in stored._asdict().items() if name != "token"})


def iso_time(seconds: float) -> str:
    """Returns seconds since 1970 as ISO-8601, UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _verdict(results: SearchResults) -> Verdict:
    verdict = trust(results).verdict
    low, high = (None if end != end else end for end in (verdict.low, verdict.high))
    return Verdict(kind=verdict.kind, text=verdict.text, advice=verdict.advice, low=low, high=high)
