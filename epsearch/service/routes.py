"""Routes of /api/v1: each parses a request, calls one function, and encodes the answer."""

import io
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from epsearch.failures.errors import NoStudy
from epsearch.findings.listing import Filters
from epsearch.findings.order import FIELDS, NEWEST
from epsearch.plugins.registration import add_plugins
from epsearch.service import answers
from epsearch.service.access.limits import READERS, REPORTERS, WRITERS, ThreadedRouter
from epsearch.service.access.tokens import ANONYMOUS, Token
from epsearch.service.metrics import Metrics
from epsearch.service.people import People
from epsearch.service.problems import REFUSED
from epsearch.service.reporting import Reporter
from epsearch.service.requests import parse_labels, parse_priority
from epsearch.service.results_cache import ResultsCache
from epsearch.service.safety import check_query
from epsearch.service.settings import Settings
from epsearch.service.streams import Streams
from epsearch.service.studies import STATES, Studies
from epsearch.service.work.planning import Planner
from epsearch.service.work.processes import output
from epsearch.service.work.scheduler import Scheduler
from epsearch.status import CANCEL_SECONDS, StudyStatus
from epsearch.study.kinds import KINDS
from epsearch.study.parsers import one_of
from epsearch.terminal.consoles import as_text
from results.export import runs_table
from results.ledger.writers.queue import Change

NAME = Path(max_length=1000, description="Name of a study; a new one has at most 100 characters.")
Name = Annotated[str, NAME]
Options = Annotated[
    dict[str, Any],
    Body(
        title="Given",  # its name in clients
        description=f"`kind` ({', '.join(KINDS)}), and options of a study by name, as in a file for --config.",
        examples=[{"kind": "run", "dataset": "permuted_digits", "points": 5, "seeds": 3}],
    ),
]
Notify = Annotated[
    str | None, Query(max_length=2000, description="https URL that gets a message at the end; of an allowed host.")
]
Priority = Annotated[int, Query(description="Of two waiting studies, the one of the higher priority is first.")]
PER_PAGE = 50


def filters(
    state: Annotated[str | None, Query(description="One word, such as running.")] = None,
    dataset: str | None = None,
    kind: str | None = None,
    search: Annotated[str | None, Query(description="A part of the name.")] = None,
    submitter: Annotated[str | None, Query(description="The owner.")] = None,
    tag: str | None = None,
) -> Filters:
    """Returns the filters of a request, as a dependency. Raises UsageError for an unknown state or kind."""
    for value, name, allowed in ((state, "state", STATES), (kind, "kind", KINDS)):
        if value:
            one_of(value, name, allowed)
    return Filters(state, dataset, kind, search, submitter, tag)


Wanted = Annotated[Filters, Depends(filters)]


class Service(NamedTuple):
    """The parts of a service, for routes and pages."""

    settings: Settings
    studies: Studies
    results: ResultsCache
    reporter: Reporter
    people: People
    streams: Streams
    scheduler: Scheduler
    metrics: Metrics
    planner: Planner
    ready: Callable[[], Awaitable[None]]

    def stop(self) -> None:
        """Ends streams and plans, which would delay the end of the service."""
        self.streams.stop()
        self.planner.stop()


def api_router(threads: int, tag: str) -> ThreadedRouter:
    """Returns a router for routes below /api/v1; tag: one of `schema.TAGS`."""
    return ThreadedRouter(threads, prefix="/api/v1", tags=[tag], responses=REFUSED, dependencies=[Depends(check_query)])


def routes(service: Service) -> Iterator[APIRouter]:
    """Yields the routers that read and change studies."""
    for threads, tag, *parts in (
        (READERS, "studies", _statuses, _output),
        (READERS, "service", _service),
        (REPORTERS, "studies", _study),
        (REPORTERS, "results", _results, _reports),
        (WRITERS, "studies", _changes),
    ):
        router = api_router(threads, tag)
        for add in parts:
            add(router, service)
        yield router


def token_of(request: Request) -> Token:
    """Returns the token of a request, which `safety.Guard` has stored in it."""
    return getattr(request.state, "token", None) or ANONYMOUS


def _statuses(api: APIRouter, service: Service) -> None:
    studies = service.studies

    @api.get("/studies", response_model=answers.Studies)
    def list_studies(
        wanted: Wanted,
        sort: Annotated[str, Query(description=f"{', '.join(FIELDS)}; - before it: descending.")] = NEWEST,
        page: Annotated[int, Query(ge=1, le=10**6)] = 1,
        after: Annotated[str | None, Query(max_length=2000, description="The `next` of the page before.")] = None,
        per_page: Annotated[int, Query(ge=1, le=1000)] = PER_PAGE,
    ) -> Response:
        """The studies of the ledger and of the queue."""
        return _json(studies.page(wanted, page, per_page, sort, after))

    @api.get("/studies/{name}/standing")
    def get_status(name: Name) -> StudyStatus:
        """Status of a study without its results: for programs that poll."""
        return studies.status(name)

    @api.get("/studies/{name}/log")
    def get_log(
        name: Name,
        after: Annotated[int, Query(ge=0, le=2**62, description="Number of the last event that is known.")] = 0,
        most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> list[answers.Event]:
        """Events of a study, the oldest first: headings, notes, warnings, states."""
        studies.status(name)
        return [answers.event(event) for event in studies.store.events.read(name, after, most)]


def _output(api: APIRouter, service: Service) -> None:
    @api.get("/studies/{name}/output", response_class=PlainTextResponse)
    def get_output(name: Name, most: Annotated[int, Query(ge=1, le=2**20)] = 2**16) -> Response:
        """The last output of a study's processes, in bytes at most; after a crash with its traceback."""
        service.studies.status(name)
        return PlainTextResponse(output(name, service.settings, most))


def _service(api: APIRouter, service: Service) -> None:
    @api.get("/people")
    def list_people(request: Request) -> list[answers.Person]:
        """The owner of the token and their studies; to an admin, all owners."""
        return service.people.visible_to(token_of(request))

    @api.get("/ledger")
    def get_ledger() -> answers.Ledger:
        """Number of runs in the ledger, and the studies that share them."""
        return service.reporter.ledger()

    @api.get("/audit")
    def list_changes(most: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[Change]:
        """Requested changes, the newest first."""
        return service.studies.store.queue.changes(most)


def _study(api: APIRouter, service: Service) -> None:
    studies = service.studies

    @api.get("/studies/{name}")
    def get_study(name: Name) -> answers.Study:
        """Status, results and options of one study."""
        return answers.study(studies.status(name), studies.study(name), service.results.get(name))


def _results(api: APIRouter, service: Service) -> None:
    reporter = service.reporter

    @api.get("/studies/{name}/runs", response_class=Response, responses=answers.TABLES)
    def get_runs(name: Name, format: Literal["json", "csv", "parquet"] = "json") -> Response:
        """Every stored member, one row each, with its metrics."""
        results = reporter.results(name)
        with add_plugins({} if results.results is None else results.results.config):
            table = runs_table(results.records)
        headers = {"Content-Disposition": f'attachment; filename="{re.sub(r"[^a-zA-Z0-9.-]", "_", name)}.{format}"'}
        if format == "csv":
            text = table.to_csv(index=False, lineterminator="\n")
            return PlainTextResponse(text, media_type="text/csv", headers=headers)
        if format == "parquet":
            buffer = io.BytesIO()
            table.to_parquet(buffer, index=False)
            return Response(buffer.getvalue(), media_type="application/vnd.apache.parquet", headers=headers)
        return _json(table.to_json(orient="records", double_precision=15))

    @api.get("/studies/{name}/figures")
    def list_figures(name: Name) -> list[answers.Figure]:
        """All figures of a study, as of now."""
        return [reporter.figure(figure, *parts) for figure, parts in reporter.results(name).figures.items()]

    @api.get("/studies/{name}/figures/{figure}")
    def get_figure(name: Name, figure: Annotated[str, Path(max_length=100)]) -> answers.Figure:
        """One figure: plotly's JSON, its caption, and the tables of its data."""
        drawable = reporter.results(name).figures
        if figure not in drawable:
            raise NoStudy(f"study {name!r} has no figure {figure!r}; it has: {', '.join(drawable) or 'none yet'}")
        return reporter.figure(figure, *drawable[figure])


def _reports(api: APIRouter, service: Service) -> None:
    studies, reporter = service.studies, service.reporter

    @api.get("/studies/{name}/report", response_class=HTMLResponse)
    def get_report(name: Name) -> Response:
        """The report, as one self-contained page."""
        page, headers = reporter.report(name)
        return HTMLResponse(page, headers=headers)

    @api.get("/studies/{name}/outcome", response_class=PlainTextResponse, responses=answers.IN_WORDS)
    def get_outcome(
        name: Name,
        width: Annotated[int, Query(ge=20, le=1000)] = 80,
        colours: bool = False,
        format: Literal["text", "json"] = "text",
        path: Annotated[str | None, Query(max_length=1000, description="Path of the report at the client.")] = None,
        run: Annotated[bool, Query(description="True to include the work of its last run.")] = False,
    ) -> Response:
        """Output of `epsearch run` for a study, as text for a terminal of that width, or as JSON."""
        text, data = reporter.outcome(name, path, run)
        return _json(data) if format == "json" else PlainTextResponse(as_text(text, width, colours))

    @api.get("/studies/{name}/shown", response_class=PlainTextResponse, responses=answers.IN_WORDS)
    def get_description(
        name: Name,
        width: Annotated[int, Query(ge=20, le=1000)] = 80,
        colours: bool = False,
        format: Literal["text", "json"] = "text",
        why: Annotated[bool, Query(description="True for the reasons of its answer.")] = False,
    ) -> Response:
        """Output of `epsearch show` for a study."""
        text, data = reporter.reasons(name) if why else reporter.description(name)
        return _json(data) if format == "json" else PlainTextResponse(as_text(text, width, colours))

    @api.get("/compare", response_class=HTMLResponse)
    def compare_studies(study: Annotated[list[str], Query(min_length=2, max_length=20)]) -> Response:
        """Several searches side by side, as a page."""
        for name in study:
            studies.status(name)
        page, headers = reporter.side_by_side(study)
        return HTMLResponse(page, headers=headers)


def _changes(api: APIRouter, service: Service) -> None:
    studies = service.studies

    @api.post("/plan")
    async def plan_study(request: Request, options: Options) -> dict[str, Any]:
        """Members, memory and time of a study, as `epsearch plan` gives them; a probe trains for a few seconds."""
        return (await service.planner.plan(partial(studies.build, options), token_of(request).name))[1]

    @api.post("/studies", status_code=201, responses=answers.UNCHANGED)
    def submit_study(
        request: Request, response: Response, options: Options, priority: Priority = 0, notify: Notify = None
    ) -> StudyStatus:
        """Queues a study; a repeated request changes nothing, and the answer has a note."""
        study, target = studies.build(options), studies.check_notify(notify)
        status = studies.submit(study, token_of(request), parse_priority(priority), notify=target)
        response.status_code = 200 if status.note else 201
        response.headers["Location"] = f"/api/v1/studies/{quote(status.name, safe='')}"
        return status

    @api.post("/studies/{name}/cancel")
    def cancel_study(
        request: Request,
        name: Name,
        deadline: Annotated[
            float, Query(ge=0, le=3600, description="Seconds until its process is killed.")
        ] = CANCEL_SECONDS,
    ) -> StudyStatus:
        """Stops a study; finished members stay stored."""
        return studies.cancel(name, token_of(request), deadline)

    @api.post("/studies/{name}/resume")
    def resume_study(request: Request, name: Name, priority: Priority = 0) -> StudyStatus:
        """Queues a cancelled, failed or interrupted study again."""
        return studies.resume(name, token_of(request), parse_priority(priority))

    @api.post("/studies/{name}/extend")
    def extend_study(
        request: Request, name: Name, options: Options, priority: Priority = 0, notify: Notify = None
    ) -> StudyStatus:
        """Extends a search: more seeds, points, repeats, another interval or strategy."""
        target = studies.check_notify(notify)
        return studies.extend(name, options, token_of(request), parse_priority(priority), target)

    @api.put("/studies/{name}/labels")
    def label_study(request: Request, name: Name, labels: answers.StudyLabels) -> StudyStatus:
        """Gives a study its tags and notes, in place of earlier ones; what is left out stays."""
        before = studies.status(name)
        tags = list(before.tags) if labels.tags is None else labels.tags
        notes = before.notes if labels.notes is None else labels.notes
        return studies.label(name, parse_labels(tags, notes), token_of(request))

    @api.delete("/studies/{name}")
    def delete_study(
        request: Request, name: Name, confirm: Annotated[str, Query(description="The study's name once more.")]
    ) -> answers.Removed:
        """Deletes a study with the members that no other study uses; its files stay."""
        removal = studies.delete(name, confirm, token_of(request))
        return answers.Removed(name=name, members=len(removal.runs), shared=removal.shared)


def _json(data: Any) -> Response:
    """Returns an answer of JSON; data: a value, or encoded JSON."""
    encoded = data if isinstance(data, str | bytes) else json.dumps(data, ensure_ascii=False, default=str)
    return Response(encoded, media_type="application/json")
