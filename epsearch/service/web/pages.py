"""The pages that are read: each route reads what the API reads, and renders a template."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import yaml
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from epsearch.events import Progress
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import fitting, reported
from epsearch.plugins.registration import maximising
from epsearch.service import answers
from epsearch.service.access.shares import READERS, REPORTERS, WRITERS, Threads
from epsearch.service.requests import SERVER_SET
from epsearch.service.routes import Name, Service, who
from epsearch.service.studies import STATES
from epsearch.service.web import actions, forms, help
from epsearch.service.web.figures import COLUMNS, MOST_MEMBERS, Showing
from epsearch.service.web.logs import Logs
from epsearch.service.web.rendering import KINDS as KIND_TITLES
from epsearch.service.web.rendering import leading_back, rendered
from epsearch.status import StudyStatus
from epsearch.study.kinds import KINDS, Search
from epsearch.study.parsers import one_of
from results.ledger.store import Store
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

PER_PAGE = 50
ENDED = (CANCELLED, FAILED, FINISHED, INTERRUPTED)
MOST_CHANGES = 200
OF_FORMS = ("kind", "switch", "do")
"""What a form sends besides options."""
ALREADY = {
    FINISHED: "This study is finished already; nothing to train.",
    QUEUED: "This study waits already; nothing was changed.",
    RUNNING: "This study is being trained already; nothing was changed.",
}
"""State of a study that is submitted once more -> what its page says then."""


def routes(service: Service) -> Iterator[APIRouter]:
    """All pages."""
    for threads, *parts in (
        (READERS, _lists, _ledger, help.routes),
        (REPORTERS, _study),
        (WRITERS, actions.routes),
    ):
        router = Threads(threads, include_in_schema=False)
        for add in parts:
            add(router, service)
        yield router


def _lists(pages: APIRouter, service: Service) -> None:
    studies = service.studies

    @pages.get("/")
    def index(
        request: Request,
        state: str = "",
        dataset: str = "",
        kind: str = "",
        search: str = "",
        page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    ) -> Response:
        every = studies.all()
        found = fitting(every, state, dataset, kind, search.strip())
        part = found[(page - 1) * PER_PAGE : page * PER_PAGE]
        wanted = {"state": state, "dataset": dataset, "kind": kind, "search": search}
        query = {name: value for name, value in wanted.items() if value}
        return rendered(
            request,
            "index.html",
            lines=[(one, _progress(studies.store, one)) for one in part],
            total=len(found),
            every=len(every),
            wanted=wanted,
            states=STATES,
            datasets=sorted({*definitions(), *(one.dataset for one in every)}),
            page=page,
            before=urlencode({**query, "page": page - 1}) if page > 1 else None,
            behind=urlencode({**query, "page": page + 1}) if page * PER_PAGE < len(found) else None,
            first=(page - 1) * PER_PAGE + 1,
            last=(page - 1) * PER_PAGE + len(part),
        )

    @pages.get("/new")
    def new(request: Request, kind: str = Search.kind, switch: str = "") -> Response:
        given = {name: value for name, value in request.query_params.items() if value and name not in OF_FORMS}
        if switch:  # another kind, with what was typed; what is empty need not stand in the address
            return RedirectResponse(f"/new?{urlencode({'kind': switch, **given})}", status_code=303)
        return actions.new_page(request, one_of(kind, "kind", KINDS), given)


def _study(pages: APIRouter, service: Service) -> None:
    studies, showing, logs = service.studies, Showing(), Logs(service.studies.store)

    @pages.get("/studies/{name}")
    def study(request: Request, name: Name, already: str = "") -> Response:
        status, why = studies.status(name), ""
        found = config = again = None
        try:
            stored = studies.study(name)
            config = {option: one for option, one in stored.shown().items() if option not in SERVER_SET}
            again = urlencode(forms.again(stored)) if status.state in ENDED else None
            found = service.findings.get(name)
        except UsageError as error:  # a row that is damaged, or of another version
            why = str(error)
        shown = None if found is None else showing.of(name, status.kind, found)
        return rendered(
            request,
            "study.html",
            name=name,
            status=status,
            progress=_now(status),
            note=ALREADY.get(status.state, "") if already else "",
            again=again if who(request).writes else None,
            trained=bool(shown and shown.members),
            as_of=answers.when(found.made) if found is not None and status.state in (RUNNING, CANCELLING) else "",
            found=found,
            shown=shown,
            lead=_lead(status, _heading(logs, name)),
            why=why,
            config=None if config is None else _yaml(config),
            kind=KIND_TITLES.get(status.kind, "study"),
            log=[(line, answers.when(line.time)) for line in logs.of(name)],
            columns=[(one, METRICS[one].unit) for one in COLUMNS],
            most=MOST_MEMBERS,
            may=_may(status.state),
        )

    @pages.get("/studies/{name}/report")
    def report(name: Name) -> Response:
        page, headers = service.reporter.report(name)
        return HTMLResponse(leading_back(page, name), headers=headers)

    @pages.get("/compare")
    def compare(request: Request, study: Annotated[list[str] | None, Query(max_length=20)] = None) -> Response:
        names = list(dict.fromkeys(study or []))
        searches = [one.name for one in reversed(studies.all()) if one.kind == Search.kind]
        own: dict[str, Any] = {"names": names, "searches": searches, "compared": None, "error": ""}
        code = 200
        if names:
            try:
                own["compared"] = _side_by_side(service, names)
            except UsageError as error:
                own["error"], code = str(error), 422
        return rendered(request, "compare.html", code, **own)


def _ledger(pages: APIRouter, service: Service) -> None:
    @pages.get("/ledger")
    def ledger(request: Request) -> Response:
        return rendered(request, "ledger.html", ledger=service.reporter.ledger())

    @pages.get("/changes")
    def changes(request: Request) -> Response:
        found = service.studies.store.queue.audited(MOST_CHANGES)
        return rendered(request, "changes.html", changes=[(one, answers.when(one.time)) for one in found])


def _side_by_side(service: Service, names: list[str]) -> Any:
    """The comparison of searches. Raises UsageError."""
    from results.pages.side_by_side import strategies_parts

    if len(names) < 2:
        raise UsageError(f"two or more searches are compared, got {names[0]!r} alone; choose another one, too")
    results = []
    for name in names:
        kind = service.studies.status(name).kind
        if kind != Search.kind:
            raise UsageError(f"only searches can be set side by side; {name!r} is a study of `epsearch {kind}`")
        found = service.reporter.found(name)
        if found.results is None:
            raise UsageError(found.why)
        results.append(cast(SearchResults, found.results))
    try:
        with maximising(results[0].config):
            return strategies_parts(results)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _may(state: str) -> dict[str, bool]:
    """What can be done now, by somebody who may change something."""
    return {"cancel": state in (QUEUED, RUNNING), "resume": state in (CANCELLED, FAILED, INTERRUPTED)}


def _lead(status: StudyStatus, heading: str) -> list[str]:
    """Returns the lines below the name: what is trained, how far it is, who submitted it."""
    how_far = "" if heading or status.state == FAILED else status.detail  # why it failed stands below
    parts = [heading, how_far]
    if status.submitter:
        parts.append(f"submitted by {status.submitter}")
    if status.priority:
        parts.append(f"priority {status.priority}")
    return [part for part in parts if part]


def _progress(store: Store, status: StudyStatus) -> Progress | None:
    """Returns the last progress of a study of a list that is being trained."""
    last = store.events.newest(status.name, Progress.kind) if status.state == RUNNING else None
    return None if last is None else _now(reported(status, last))


def _now(status: StudyStatus) -> Progress | None:
    """Returns the progress of a study as of now: time has gone on since it was reported."""
    if status.progress is None or status.progress_time is None:
        return None
    since, last = max(0.0, time.time() - status.progress_time), status.progress
    left = {name: getattr(last, name) for name in ("eta", "eta_low", "eta_high")}
    now = {name: max(0.0, seconds - since) for name, seconds in left.items() if seconds is not None}
    return replace(last, seconds=last.seconds + since, **now)


def _heading(logs: Logs, name: str) -> str:
    return next((line.text for line in logs.of(name) if line.kind == "begin"), "")


def _yaml(config: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, default_flow_style=None))
