"""Pages that change nothing: each route reads the same values as the API, and renders a template."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import yaml
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from epsearch.events import Progress
from epsearch.failures.errors import UsageError, brief
from epsearch.findings.listing import Filters, with_progress
from epsearch.findings.order import FIELDS, NEWEST, sort_studies
from epsearch.plugins.registration import set_objective
from epsearch.service import answers
from epsearch.service.access.limits import READERS, REPORTERS, WRITERS, ThreadedRouter
from epsearch.service.requests import SERVER_SET, TITLES
from epsearch.service.routes import PER_PAGE, Name, Service, Wanted, token_of
from epsearch.service.studies import STATES
from epsearch.service.web import actions, forms, help
from epsearch.service.web.advice import on_page
from epsearch.service.web.content import COLUMNS, MOST_MEMBERS, content
from epsearch.service.web.log_cache import Line, LogCache
from epsearch.service.web.rendering import add_back_link, render
from epsearch.service.work.processes import output
from epsearch.status import StudyStatus
from epsearch.study.kinds import KINDS, Search
from epsearch.study.parsers import one_of
from results.labels import MISSING
from results.ledger.store import Store
from results.ledger.writers.queue import Change
from results.ledger.writers.states import (
    CANCELLED,
    CANCELLING,
    FAILED,
    FINISHED,
    INTERRUPTED,
    QUEUED,
    RUNNING,
)
from results.metrics import METRICS
from results.search import SearchResults
from search_spaces.published.definition import definitions

ENDED = (CANCELLED, FAILED, FINISHED, INTERRUPTED)
MOST_CHANGES = 200
MOST_OUTPUT = 8192  # bytes of the output of a failed study on its page
BUTTONS = ("kind", "switch", "do")
"""Fields of a form besides options."""
ALREADY = {
    FINISHED: "This study is finished already; nothing to train.",
    QUEUED: "This study waits already; nothing was changed.",
    RUNNING: "This study is being trained already; nothing was changed.",
}
"""State of a study that is submitted once more -> the note on its page."""


def routes(service: Service) -> Iterator[APIRouter]:
    """Yields the routers of all pages."""
    for threads, *parts in (
        (READERS, _lists, _ledger, help.routes),
        (REPORTERS, _study),
        (WRITERS, actions.routes),
    ):
        router = ThreadedRouter(threads, include_in_schema=False)
        for add in parts:
            add(router, service)
        yield router


def _lists(pages: APIRouter, service: Service) -> None:
    studies = service.studies

    @pages.get("/")
    def index(
        request: Request,
        wanted: Wanted,
        sort: str = NEWEST,
        page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    ) -> Response:
        every = studies.all()
        rows = sort_studies(wanted.matching(every), sort)
        part = rows[(page - 1) * PER_PAGE : page * PER_PAGE]
        query = {
            name: value
            for name, value in (wanted._asdict() | {"sort": sort}).items()
            if value not in (None, "", NEWEST)
        }
        return render(
            request,
            "index.html",
            lines=[(status, _progress(studies.store, status)) for status in part],
            total=len(rows),
            every=len(every),
            wanted=wanted,
            sort=sort,
            sorts={field: urlencode(query | {"sort": _next_order(field, sort)}) for field in FIELDS},
            states=STATES,
            labelled=sorted({tag for status in every for tag in status.tags}),
            submitters=sorted({status.submitter for status in every if status.submitter}),
            datasets=sorted({*definitions(), *(status.dataset for status in every)}),
            page=page,
            newer=urlencode({**query, "page": page - 1}) if page > 1 else None,
            older=urlencode({**query, "page": page + 1}) if page * PER_PAGE < len(rows) else None,
            first=(page - 1) * PER_PAGE + 1,
            last=(page - 1) * PER_PAGE + len(part),
        )

    @pages.get("/new")
    def new(request: Request, kind: str = Search.kind, switch: str = "") -> Response:
        values = {name: value for name, value in request.query_params.items() if value and name not in BUTTONS}
        if switch:  # another kind, with the same values; the address need not have empty ones
            return RedirectResponse(f"/new?{urlencode({'kind': switch, **values})}", status_code=303)
        return actions.new_page(request, one_of(kind, "kind", KINDS), values)


def _study(pages: APIRouter, service: Service) -> None:
    studies, logs = service.studies, LogCache(service.studies.store)

    @pages.get("/studies/{name}")
    def study(request: Request, name: Name, already: str = "") -> Response:
        status, error = studies.status(name), ""
        results = config = again = None
        try:
            stored = studies.study(name)
            config = {option: value for option, value in stored.to_dict().items() if option not in SERVER_SET}
            again = urlencode(forms.again(stored)) if status.state in ENDED else None
            results = service.results.get(name)
        except UsageError as refusal:  # a row that is damaged, or of another version
            error = str(refusal)
        parts, log = None if results is None else content(status.kind, results), logs.get(name)
        return render(
            request,
            "study.html",
            name=name,
            status=status,
            progress=_now(status),
            note=ALREADY.get(status.state, "") if already else "",
            again=again if token_of(request).writes else None,
            trained=bool(parts and parts.members),
            as_of=answers.iso_time(results.time) if results and status.state in (RUNNING, CANCELLING) else "",
            overview="" if parts is None else on_page(parts.overview, name, service.settings.root),
            results=results,
            content=parts,
            lead=_lead(status, _heading(log)),
            error=error,
            output=output(name, service.settings, MOST_OUTPUT) if status.state == FAILED else "",
            config=None if config is None else _yaml(config),
            kind=TITLES.get(status.kind, "study"),
            log=[(event, text, answers.iso_time(event.time)) for event, text in log],
            columns=[(name, METRICS[name].display_unit) for name in COLUMNS],
            most=MOST_MEMBERS,
            may=_may(status.state),
            extension=parts.extension if parts is not None and status.state == FINISHED else {},
            refused=actions.reason_of_refusal(service, name, request),
        )

    @pages.get("/studies/{name}/report")
    def report(name: Name) -> Response:
        page, headers = service.reporter.report(name)
        return HTMLResponse(add_back_link(page, name, service.settings.root), headers=headers)

    @pages.get("/compare")
    def compare(request: Request, study: Annotated[list[str] | None, Query(max_length=20)] = None) -> Response:
        names = list(dict.fromkeys(study or []))
        searches = [status.name for status in reversed(studies.all()) if status.kind == Search.kind]
        values: dict[str, Any] = {"names": names, "searches": searches, "comparison": None, "error": ""}
        code = 200
        if names:
            try:
                values["comparison"] = _side_by_side(service, names)
            except UsageError as error:
                values["error"], code = str(error), 422
        return render(request, "compare.html", code, **values)


def _ledger(pages: APIRouter, service: Service) -> None:
    @pages.get("/ledger")
    def ledger(request: Request) -> Response:
        return render(request, "ledger.html", ledger=service.reporter.ledger())

    @pages.get("/people")
    def people(request: Request) -> Response:
        return render(request, "people.html", people=service.people.visible_to(token_of(request)))

    @pages.get("/people/{owner}")
    def person(request: Request, owner: str) -> Response:
        people = [person for person in service.people.visible_to(token_of(request)) if person.name == owner]
        if not people:
            raise HTTPException(404, f"no owner {brief(owner)}, or none that this token may see")
        rows = sort_studies(Filters(submitter=owner).matching(service.studies.all()))
        return render(request, "person.html", person=people[0], lines=rows[:PER_PAGE], total=len(rows))

    @pages.get("/changes")
    def changes(request: Request) -> Response:
        newest = service.studies.store.queue.changes(MOST_CHANGES)
        return render(
            request,
            "changes.html",
            changes=[(change, answers.iso_time(change.time), change_text(change)) for change in newest],
        )


def _next_order(field: str, sort: str) -> str:
    """Returns the order by a field that a click on its header asks for: the other one where it is sorted by it."""
    first, other = (f"-{field}", field) if field in ("created", "score") else (field, f"-{field}")
    return other if sort == first else first


def _side_by_side(service: Service, names: list[str]) -> Any:
    """Returns heading, lead and body of the comparison of searches. Raises UsageError."""
    from results.pages.side_by_side import strategies_parts

    if len(names) < 2:
        raise UsageError(f"choose two or more searches, got only {names[0]!r}")
    results = []
    for name in names:
        kind = service.studies.status(name).kind
        if kind != Search.kind:
            raise UsageError(f"only searches can be set side by side; {name!r} is a study of `epsearch {kind}`")
        study = service.reporter.results(name)
        if study.results is None:
            raise UsageError(study.reason)
        results.append(cast(SearchResults, study.results))
    try:
        with set_objective(results[0].config):
            return strategies_parts(results)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _may(state: str) -> dict[str, bool]:
    """Returns verb -> whether the state of a study allows it."""
    return {"cancel": state in actions.CANCELLABLE, "resume": state in (CANCELLED, FAILED, INTERRUPTED)}


def _lead(status: StudyStatus, heading: str) -> list[str]:
    """Returns the lines below the name: heading or progress, submitter, priority."""
    parts = [heading or ("" if status.state == FAILED else status.detail)]  # the reason of a failure follows
    if status.submitter:
        parts.append(f"submitted by {status.submitter}")
    if status.priority:
        parts.append(f"priority {status.priority}")
    return [part for part in parts if part]


def _progress(store: Store, status: StudyStatus) -> Progress | None:
    """Returns the last progress of a running study of a list."""
    last = store.events.newest(status.name, Progress.kind) if status.state == RUNNING else None
    return None if last is None else _now(with_progress(status, last))


def _now(status: StudyStatus) -> Progress | None:
    """Returns the progress of a study as of now: time has gone on since it was reported."""
    if status.progress is None or status.progress_time is None:
        return None
    since, last = max(0.0, time.time() - status.progress_time), status.progress
    left = {name: getattr(last, name) for name in ("eta", "eta_low", "eta_high")}
    now = {name: max(0.0, seconds - since) for name, seconds in left.items() if seconds is not None}
    return replace(last, seconds=last.seconds + since, **now)


def change_text(change: Change) -> str:
    """Returns the details of a requested change in words: options that it changed, priority, deleted members."""
    try:
        detail = json.loads(change.detail)
        changed = detail.get("changed", {}).items()
        parts = [f"{name} {_value(before)} → {_value(after)}" for name, (before, after) in changed]
        parts += [f"priority {detail['priority']}"] if detail.get("priority") else []
        parts += [f"{detail['members']} members deleted"] if "members" in detail else []
    except (ValueError, TypeError, AttributeError):  # a row has no checksum
        return ""
    return "; ".join(parts)


def _value(value: object) -> str:
    return MISSING if value is None else brief(value).strip("'")


def _heading(log: list[Line]) -> str:
    return next((text for event, text in log if event.kind == "begin"), "")


def _yaml(config: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, default_flow_style=None))
