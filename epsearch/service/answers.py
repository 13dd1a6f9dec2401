"""What the API answers: its models, and how they are made of what the rooms below know."""

from datetime import UTC, datetime
from typing import Any, cast

from fastapi.responses import Response
from pydantic import BaseModel, Field

from epsearch.findings.listing import UNKNOWN, Listed, detail, fitting
from epsearch.service import results_cache as findings
from epsearch.service.requests import SERVER_SET
from epsearch.service.studies import Described, Place
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


class Line(BaseModel):
    """One study of a list."""

    name: str
    kind: str = Field(description="run, compare or memory; – where it cannot be read.")
    dataset: str
    state: str = Field(
        description="queued, running, cancelling, cancelled, failed, finished or interrupted; – if unknown."
    )
    detail: str = Field(description="How far it is, or why it failed, in words; empty where the state says it all.")
    status: str = Field(description="State and detail in one, as `epsearch list` has it.")
    chosen: dict[str, bool | float | int | str] | None = Field(description="The best point so far of a search.")
    score: float | None = Field(description="Mean of the objective that chose it; of A_T in [0, 1].")
    objective: str = Field(description="What the score is of.")
    inert: bool = Field(description="Whether all values score the same bit for bit.")
    created: str = Field(description="ISO-8601, UTC.")


class Studies(BaseModel):
    """A page of a list."""

    studies: list[Line]
    total: int = Field(description="Of all pages.")
    page: int


class Progress(BaseModel):
    """How far a training is."""

    stage: str
    known: int = Field(description="Members of the stage that have been trained.")
    wanted: int = Field(description="Members of the stage.")
    headline: str
    member_steps: int
    speed: float | None = Field(description="Member-steps per second.")
    eta: float | None = Field(description="Seconds to go.")
    eta_low: float | None = Field(None, description="The shortest that is likely.")
    eta_high: float | None = Field(None, description="The longest that is likely.")
    seconds: float = Field(description="Since this run of it began.")


class Verdict(BaseModel):
    """What can be said about the best value."""

    kind: str = Field(description="resolved, edge, flat, diverging or inert.")
    text: str
    advice: str
    low: float | None
    high: float | None


class Answer(Line):
    """How one study stands."""

    note: str = Field("", description="Why nothing had to be done of what was asked for; empty where it was.")
    reason: str = Field(description="Why it failed.")
    priority: int | None = Field(description="In the queue; null where it was not submitted.")
    place: int | None = Field(None, description="In the queue, from 1; null where it does not wait.")
    ahead: list[str] = Field([], description="Studies that are trained now, then those that are begun before it.")
    submitter: str | None = Field(description="Name of the token that submitted it.")
    progress: Progress | None


THERE: dict[int | str, dict[str, Any]] = {
    200: {"model": Answer, "description": "It is finished, or in the queue: nothing was changed."}
}


class Study(Answer):
    """One study with what it has found."""

    found: str = Field(description="The best so far, in words.")
    answer: str | None = Field(description="The answer of a search, in words.")
    verdict: Verdict | None
    members: int = Field(description="In the ledger.")
    config: dict[str, Any] = Field(description="Options, but for those that say where things are.")


class Standing(BaseModel):
    """How a study stands, in few words."""

    state: str
    reason: str = Field(description="Why it failed.")
    summary: str = Field(description="How far it is, in words.")
    waits: bool = Field(description="Whether the queue is to train it.")
    event: int = Field(description="Number of its newest event; 0 without one.")


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
        self._lines: list[Listed] = []
        self._made: dict[object, bytes] = {}

    def of(self, lines: list[Listed], wanted: tuple[str | None, ...], page: int, per_page: int) -> Response:
        """A page of the lines that fit; lines: the same list as long as it is the same."""
        if lines is not self._lines or len(self._made) > MOST_LISTS:
            self._lines, self._made = lines, {}
        made, key = self._made, (wanted, page, per_page)
        if key not in made:
            found = fitting(lines, *wanted)
            part = [line(one) for one in found[(page - 1) * per_page : page * per_page]]
            made[key] = Studies(studies=part, total=len(found), page=page).model_dump_json().encode()
        return Response(made[key], media_type="application/json")


def line(one: Listed) -> Line:
    """One line of a list."""
    values = one._asdict()
    values |= {"kind": values.pop("command"), "chosen": None if one.chosen is None else dict(one.chosen)}
    return Line(**values, detail=detail(one))


def answer(one: Described, note: str = "") -> Answer:
    """How a study stands; note: as of `Answer`."""
    submission = one.submission
    return Answer(
        **line(one.listed).model_dump(),
        note=note,
        reason="" if one.standing is None else one.standing.reason,
        priority=None if submission is None else submission.priority,
        submitter=None if submission is None else submission.submitter,
        progress=_progress(one),
    )


def study(
    one: Described, stored: description.Study, found: "findings.StudyResults | None", place: "Place | None" = None
) -> Study:
    """The same with what was found, None before there is anything; place: its own in the queue.

    What was found is of one moment, also the choice and its score, which a list may have newer.
    """
    said, verdict, own = None, None, answer(one).model_dump()
    if place is not None:
        own |= {"place": place.number, "ahead": [*place.running, *place.before]}
    if found is not None and found.results is not None and stored.kind == Search.kind:
        results = cast(SearchResults, found.results)
        said, verdict = in_words(results), _verdict(results)
        own |= {"chosen": dict(zip(results.parameters, results.chosen, strict=True)), "score": results.chosen_score}
    return Study(
        **own,
        found=UNKNOWN if found is None else found.headline,
        answer=said,
        verdict=verdict,
        members=0 if found is None else len(found.records),
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


def _progress(one: Described) -> Progress | None:
    try:
        return None if one.progress is None else Progress(**one.progress)
    except (TypeError, ValueError):  # another version has written it
        return None


def _verdict(results: SearchResults) -> Verdict:
    verdict = trust(results).verdict
    low, high = (None if end != end else end for end in (verdict.low, verdict.high))
    return Verdict(kind=verdict.kind, text=verdict.text, advice=verdict.advice, low=low, high=high)
