"""The pages that are read: each route reads what the API reads, and renders a template."""

from collections.abc import Mapping
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import yaml
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import fitting
from epsearch.service import answers
from epsearch.service.given import OURS
from epsearch.service.routes import Name, Service, who
from epsearch.service.studies import STATES, Described
from epsearch.service.web import actions
from epsearch.service.web.figures import COLUMNS, MOST_MEMBERS, Showing
from epsearch.service.web.logs import Logs
from epsearch.service.web.rendering import KINDS as KIND_TITLES
from epsearch.service.web.rendering import rendered
from epsearch.study.kinds import KINDS, Search
from epsearch.study.parsers import one_of
from results.ledger.store import Store
from results.ledger.writers.states import (
    CANCELLED,
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


def routes(service: Service) -> APIRouter:
    """All pages."""
    pages = APIRouter(include_in_schema=False)
    for add in (_lists, _study, _ledger, actions.routes):
        add(pages, service)
    return pages


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
        submitted = studies.store.submissions()
        wanted = {"state": state, "dataset": dataset, "kind": kind, "search": search}
        query = {name: value for name, value in wanted.items() if value}
        return rendered(
            request,
            "index.html",
            lines=[(one, submitted.get(one.name), _progress(studies.store, one.name, one.state)) for one in part],
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
    def new(request: Request, kind: str = Search.kind) -> Response:
        kind = one_of(kind, "kind", KINDS)
        given = {name: value for name, value in request.query_params.items() if name != "kind"}
        return actions.new_page(request, kind, given)


def _study(pages: APIRouter, service: Service) -> None:
    studies, showing, logs = service.studies, Showing(), Logs(service.studies.store)

    @pages.get("/studies/{name}")
    def study(request: Request, name: Name) -> Response:
        described, why = studies.described(name), ""
        found = config = None
        try:
            stored = studies.study(name)
            config = {option: one for option, one in stored.shown().items() if option not in OURS}
            found = service.findings.get(name)
        except UsageError as error:  # a row that is damaged, or of another version
            why = str(error)
        shown = None if found is None else showing.of(name, described.listed.command, found)
        return rendered(
            request,
            "study.html",
            name=name,
            listed=described.listed,
            standing=described.standing,
            submission=described.submission,
            progress=None if described.progress is None else _known(described.progress),
            found=found,
            shown=shown,
            heading=_heading(logs, name),
            why=why,
            config=None if config is None else _yaml(config),
            kind=KIND_TITLES.get(described.listed.command, "study"),
            log=[(line, answers.when(line.time)) for line in logs.of(name)],
            columns=[(one, METRICS[one].unit) for one in COLUMNS],
            most=MOST_MEMBERS,
            may=_may(request, described),
        )

    @pages.get("/studies/{name}/report")
    def report(name: Name) -> Response:
        page, headers = service.reporter.report(name)
        return HTMLResponse(page, headers=headers)

    @pages.get("/compare")
    def compare(request: Request, study: Annotated[list[str] | None, Query(max_length=20)] = None) -> Response:
        names = list(dict.fromkeys(study or []))
        searches = [one.name for one in reversed(studies.all()) if one.command == Search.kind]
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
        found = service.studies.store.audited(MOST_CHANGES)
        return rendered(request, "changes.html", changes=[(one, answers.when(one.time)) for one in found])


def _side_by_side(service: Service, names: list[str]) -> Any:
    """The comparison of searches. Raises UsageError."""
    from results.pages.side_by_side import strategies_shown

    if len(names) < 2:
        raise UsageError(f"two or more searches are compared, got {names[0]!r} alone; choose another one, too")
    results = []
    for name in names:
        kind = service.studies.described(name).listed.command
        if kind != Search.kind:
            raise UsageError(f"only searches can be set side by side; {name!r} is a study of `epsearch {kind}`")
        found = service.reporter.found(name)
        if found.results is None:
            raise UsageError(found.why)
        results.append(cast(SearchResults, found.results))
    try:
        return strategies_shown(results)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _may(request: Request, described: Described) -> dict[str, bool]:
    """What can be done now, by whoever asks."""
    writes, state = who(request).writes, described.listed.state
    return {
        "cancel": writes and state in (QUEUED, RUNNING),
        "resume": writes and state in (CANCELLED, FAILED, INTERRUPTED),
        "change": writes,
    }


def _progress(store: Store, name: str, state: str) -> Mapping[str, Any] | None:
    """The last progress of a study that is being trained."""
    told = store.newest_event(name, "progress") if state == RUNNING else None
    return None if told is None else _known(told.data)


def _known(progress: Mapping[str, Any]) -> Mapping[str, Any]:
    """With everything that a page shows, whichever version has told it."""
    usual = {"stage": "", "known": 0, "wanted": 0, "speed": None, "seconds": None, "headline": ""}
    return usual | {"eta": None, "eta_low": None, "eta_high": None} | dict(progress)


def _heading(logs: Logs, name: str) -> str:
    return next((line.text for line in logs.of(name) if line.kind == "begin"), "")


def _yaml(config: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, default_flow_style=None))
