"""What the API answers: its models, and how they are made of what the rooms below know."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, cast

from fastapi.responses import Response
from pydantic import BaseModel, Field, TypeAdapter

from epsearch.findings.listing import fitting
from epsearch.service import results_cache as findings
from epsearch.service.requests import SERVER_SET
from epsearch.status import UNKNOWN, StudyStatus
from epsearch.study import description
from epsearch.study.kinds import Search
from results.ledger.writers import events, queue
from results.search import SearchResults
from results.verdict.answer import answer as in_words
from results.verdict.assessment import trust

REFUSALS = {
    400: "The request cannot be read.",
    401: "A token is needed.",
    403: "The token, or the page that sent this, may not.",
    404: "There is no such study.",
    409: "The study is in a state in which this cannot be done.",
    413: "The body is too large.",
    421: "The service has another name.",
    422: "Bad input: one line with the condition, the value, what is allowed.",
    429: "This token has as many plans or streams as it may have; Retry-After says when to try again.",
    503: "The ledger, or a process, cannot be had now.",
}
# Not as models: of a route that answers with a page, FastAPI would say that its refusals are pages, too.
IN_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
REFUSED: dict[int | str, dict[str, Any]] = {
    code: {"description": why, "content": IN_JSON} for code, why in REFUSALS.items()
}
TABLES: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in ("application/json", "text/csv", "application/vnd.apache.parquet")}}
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
IN_WORDS: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}}}}


MOST_LISTS = 100  # pages of lists that are kept as they are sent


class Refusal(BaseModel):
    """Why something was not done."""

    detail: str | list[Any] = Field(description="One line; a list where the form of the request is wrong.")


@dataclass(frozen=True)
class Studies:
    """A page of a list."""

    studies: list[StudyStatus]
    total: int
    """Of all pages."""
    page: int


LISTED = TypeAdapter(Studies)


class Verdict(BaseModel):
    """What can be said about the best value."""

    kind: str = Field(description="resolved, edge, flat, diverging or inert.")
    text: str
    advice: str
    low: float | None
    high: float | None


THERE: dict[int | str, dict[str, Any]] = {
    200: {"model": StudyStatus, "description": "It is finished, or in the queue: nothing was changed."}
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
    """Options, but for those that say where things are."""


class Event(BaseModel):
    """One event of a study."""

    id: int = Field(description="Number of the change of the ledger.")
    study: str
    kind: str = Field(description="begin, plan, progress, note, warning, records or state.")
    data: dict[str, Any]
    time: float = Field(description="Seconds since 1970.")


class Change(BaseModel):
    """One change that somebody has asked for."""

    id: int
    time: float = Field(description="Seconds since 1970.")
    who: str = Field(description="Name of the token.")
    action: str
    study: str
    detail: str


class Figure(BaseModel):
    """A figure with its data."""

    name: str
    caption: str
    drawing: dict[str, Any] = Field(description="plotly's JSON: data and layout.")
    tables: dict[str, list[dict[str, Any]]] = Field(description="Name of a table -> its rows.")


class Removed(BaseModel):
    """What was deleted."""

    name: str
    members: int
    shared: int = Field(description="Members that stay, as other studies use them.")


class Sharing(BaseModel):
    """Two studies and what they share."""

    studies: tuple[str, str]
    members: int


class Ledger(BaseModel):
    """What a ledger has."""

    runs: int
    studies: dict[str, int] = Field(description="Study -> its members that are there.")
    shared: list[Sharing]
    unused: int = Field(description="Runs that no study uses.")


class Lists:
    """Pages of a list as they are sent: many who poll ask for the same one."""

    def __init__(self) -> None:
        self._lines: list[StudyStatus] = []
        self._made: dict[object, bytes] = {}

    def of(self, lines: list[StudyStatus], wanted: tuple[str | None, ...], page: int, per_page: int) -> Response:
        """A page of the lines that fit; lines: the same list as long as it is the same."""
        if lines is not self._lines or len(self._made) > MOST_LISTS:
            self._lines, self._made = lines, {}
        made, key = self._made, (wanted, page, per_page)
        if key not in made:
            found = fitting(lines, *wanted)
            part = found[(page - 1) * per_page : page * per_page]
            made[key] = LISTED.dump_json(Studies(part, len(found), page))
        return Response(made[key], media_type="application/json")


def study(status: StudyStatus, stored: description.Study, results: "findings.StudyResults | None") -> Study:
    """Returns the status of a study with its results, None before there are any.

    The results are of one moment, also the choice and its score, which the status may have newer.
    """
    answer, verdict, own = None, None, {one.name: getattr(status, one.name) for one in fields(status) if one.init}
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
        config={name: value for name, value in stored.shown().items() if name not in SERVER_SET},
    )


def event(one: events.Event) -> Event:
    """An event as JSON has it."""
    return Event(**{name: value for name, value in one._asdict().items() if name != "token"})


def change(one: queue.Audited) -> Change:
    """A change that was asked for, as JSON has it."""
    return Change(**one._asdict())


def when(seconds: float) -> str:
    """ISO-8601, UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _verdict(results: SearchResults) -> Verdict:
    verdict = trust(results).verdict
    low, high = (None if end != end else end for end in (verdict.low, verdict.high))
    return Verdict(kind=verdict.kind, text=verdict.text, advice=verdict.advice, low=low, high=high)
