"""/api/v1: each route parses, calls one function of a room below, and answers."""

import io
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from epsearch.failures.errors import NoStudy
from epsearch.plugins.registration import added
from epsearch.service import answers
from epsearch.service.access.shares import READERS, REPORTERS, WRITERS, Threads
from epsearch.service.access.tokens import EVERYBODY, Token
from epsearch.service.metrics import Metrics
from epsearch.service.reporting import Reporter
from epsearch.service.requests import priority
from epsearch.service.results_cache import ResultsCache
from epsearch.service.safety import only_known
from epsearch.service.settings import Settings
from epsearch.service.streams import Streams
from epsearch.service.studies import STATES, Studies
from epsearch.service.work.planning import Planner
from epsearch.service.work.readiness import Readiness
from epsearch.service.work.scheduler import Scheduler
from epsearch.status import StudyStatus
from epsearch.study.kinds import KINDS
from epsearch.study.parsers import one_of
from epsearch.terminal.consoles import as_text
from results.export import runs_table

NAME = Path(max_length=1000, description="Name of a study; a new one has at most 100 characters.")
Name = Annotated[str, NAME]
Given = Annotated[
    dict[str, Any],
    Body(
        description="`kind` (run, compare or memory), and options of a study by name, as a file for --config has them.",
        examples=[{"kind": "run", "dataset": "permuted_digits", "points": 5, "seeds": 3}],
    ),
]
Priority = Annotated[int, Query(description="Of two studies that wait, the one of the higher priority is first.")]
PER_PAGE = 50


class Service(NamedTuple):
    """All parts of a service, as routes and pages use them."""

    settings: Settings
    studies: Studies
    findings: ResultsCache
    reporter: Reporter
    streams: Streams
    scheduler: Scheduler
    metrics: Metrics
    planner: Planner
    readiness: Readiness

    def stop(self) -> None:
        """Ends streams and plans, for which the service would wait otherwise."""
        self.streams.stop()
        self.planner.stop()


def below_api(threads: int) -> Threads:
    """A router for routes below /api/v1."""
    return Threads(threads, prefix="/api/v1", responses=answers.REFUSED, dependencies=[Depends(only_known)])


def routes(service: Service) -> Iterator[APIRouter]:
    """Those that read and change studies."""
    for threads, *parts in (
        (READERS, _reading),
        (REPORTERS, _shown, _results, _reports),
        (WRITERS, _changing),
    ):
        router = below_api(threads)
        for add in parts:
            add(router, service)
        yield router


def who(request: Request) -> Token:
    """Whose request it is: `safety.Guard` has looked."""
    return getattr(request.state, "token", None) or EVERYBODY


def _reading(api: APIRouter, service: Service) -> None:
    studies = service.studies

    lists = answers.Lists()

    @api.get("/studies", response_model=answers.Studies)
    def list_studies(
        state: Annotated[str | None, Query(description="One word, such as running.")] = None,
        dataset: str | None = None,
        kind: str | None = None,
        search: Annotated[str | None, Query(description="A part of the name.")] = None,
        page: Annotated[int, Query(ge=1, le=10**6)] = 1,
        per_page: Annotated[int, Query(ge=1, le=1000)] = PER_PAGE,
    ) -> Response:
        """The studies of the ledger and of the queue, newest first."""
        for value, name, known in ((state, "state", STATES), (kind, "kind", KINDS)):
            if value:
                one_of(value, name, known)
        return lists.of(studies.recent(), (state, dataset, kind, search), page, per_page)

    @api.get("/studies/{name}/standing")
    def standing(name: Name) -> StudyStatus:
        """Status of a study without its results: for programs that poll."""
        return studies.status(name)

    @api.get("/studies/{name}/log")
    def log(
        name: Name,
        after: Annotated[int, Query(ge=0, le=2**62, description="Number of the last event that is known.")] = 0,
        most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> list[answers.Event]:
        """Events of a study, the oldest first: headings, notes, warnings, states."""
        studies.status(name)
        return [answers.event(one) for one in studies.store.events.read(name, after, most)]

    @api.get("/ledger")
    def ledger() -> answers.Ledger:
        """How many runs the ledger has, and which studies share them."""
        return service.reporter.ledger()

    @api.get("/audit")
    def audit(most: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[answers.Change]:
        """Who has asked for which change, the newest first."""
        return [answers.change(one) for one in studies.store.queue.audited(most)]


def _shown(api: APIRouter, service: Service) -> None:
    studies = service.studies

    @api.get("/studies/{name}")
    def show(name: Name) -> answers.Study:
        """One study: how it stands, what it has found, its options."""
        return answers.study(studies.status(name), studies.study(name), service.findings.get(name))


def _results(api: APIRouter, service: Service) -> None:
    reporter = service.reporter

    @api.get("/studies/{name}/runs", response_class=Response, responses=answers.TABLES)
    def runs(name: Name, format: Literal["json", "csv", "parquet"] = "json") -> Response:
        """Every member that is in the ledger, one row each, with its metrics."""
        found = reporter.found(name)
        with added({} if found.results is None else found.results.config):
            table = runs_table(found.records)
        headers = {"Content-Disposition": f'attachment; filename="{re.sub(r"[^a-zA-Z0-9.-]", "_", name)}.{format}"'}
        if format == "csv":
            text = table.to_csv(index=False, lineterminator="\n")
            return PlainTextResponse(text, media_type="text/csv", headers=headers)
        if format == "parquet":
            buffer = io.BytesIO()
            table.to_parquet(buffer, index=False)
            return Response(buffer.getvalue(), media_type="application/vnd.apache.parquet", headers=headers)
        return Response(table.to_json(orient="records", double_precision=15), media_type="application/json")

    @api.get("/studies/{name}/figures")
    def figures(name: Name) -> list[answers.Figure]:
        """The figures that there are now."""
        return [reporter.figure(one, *parts) for one, parts in reporter.found(name).figures.items()]

    @api.get("/studies/{name}/figures/{figure}")
    def figure(name: Name, figure: Annotated[str, Path(max_length=100)]) -> answers.Figure:
        """One figure: plotly's JSON, its caption, and the tables of its data."""
        known = reporter.found(name).figures
        if figure not in known:
            raise NoStudy(f"study {name!r} has no figure {figure!r}; there are: {', '.join(known) or 'none yet'}")
        return reporter.figure(figure, *known[figure])


def _reports(api: APIRouter, service: Service) -> None:
    studies, reporter = service.studies, service.reporter

    @api.get("/studies/{name}/report", response_class=HTMLResponse)
    def report(name: Name) -> Response:
        """The report: one page that needs nothing else."""
        page, headers = reporter.report(name)
        return HTMLResponse(page, headers=headers)

    @api.get("/studies/{name}/outcome", response_class=PlainTextResponse, responses=answers.IN_WORDS)
    def outcome(
        name: Name,
        width: Annotated[int, Query(ge=20, le=1000)] = 80,
        colours: bool = False,
        format: Literal["text", "json"] = "text",
        path: Annotated[str | None, Query(max_length=1000, description="Where the client keeps the report.")] = None,
        run: Annotated[bool, Query(description="Whether it has the work of its last run, not of writing it.")] = False,
    ) -> Response:
        """What a run of it prints at its end, as text for a terminal of that width, or as JSON."""
        shown, data = reporter.outcome(name, path, run)
        if format == "json":
            return _json(data)
        return PlainTextResponse(as_text(shown, width, colours))

    @api.get("/studies/{name}/shown", response_class=PlainTextResponse, responses=answers.IN_WORDS)
    def shown(
        name: Name,
        width: Annotated[int, Query(ge=20, le=1000)] = 80,
        colours: bool = False,
        format: Literal["text", "json"] = "text",
    ) -> Response:
        """What `epsearch show` prints."""
        text, data = reporter.shown(name)
        return _json(data) if format == "json" else PlainTextResponse(as_text(text, width, colours))

    @api.get("/compare", response_class=HTMLResponse)
    def compare(study: Annotated[list[str], Query(min_length=2, max_length=20)]) -> Response:
        """Several searches side by side, as a page."""
        for name in study:
            studies.status(name)
        page, headers = reporter.side_by_side(study)
        return HTMLResponse(page, headers=headers)


def _changing(api: APIRouter, service: Service) -> None:
    studies = service.studies

    @api.post("/plan")
    async def make_plan(request: Request, given: Given) -> dict[str, Any]:
        """What a study would take, as `epsearch plan` says; nothing is trained but for a probe of a few seconds."""
        return (await service.planner.plan(partial(studies.build, given), who(request).name))[1]

    @api.post("/studies", status_code=201, responses=answers.THERE)
    def submit(
        request: Request, response: Response, given: Given, priority_: Annotated[Priority, Query(alias="priority")] = 0
    ) -> StudyStatus:
        """Puts a study into the queue; the same one once more is answered as it is, with a note."""
        done = studies.submit(studies.build(given), who(request).name, priority(priority_))
        response.status_code = 200 if done.note else 201
        return done

    @api.post("/studies/{name}/cancel")
    def cancel(
        request: Request,
        name: Name,
        deadline: Annotated[float, Query(ge=0, le=3600, description="Seconds until it is killed.")] = 30,
    ) -> StudyStatus:
        """Lets a study stop; what is finished is kept."""
        return studies.cancel(name, who(request).name, deadline)

    @api.post("/studies/{name}/resume")
    def resume(
        request: Request, name: Name, priority_: Annotated[Priority, Query(alias="priority")] = 0
    ) -> StudyStatus:
        """Puts a study into the queue again that was cancelled, has failed or was left."""
        return studies.resume(name, who(request).name, priority(priority_))

    @api.post("/studies/{name}/extend")
    def extend(
        request: Request, name: Name, given: Given, priority_: Annotated[Priority, Query(alias="priority")] = 0
    ) -> StudyStatus:
        """Lets a search grow: more seeds, points, repeats, another interval or strategy."""
        return studies.extend(name, given, who(request).name, priority(priority_))

    @api.delete("/studies/{name}")
    def delete(
        request: Request, name: Name, confirm: Annotated[str, Query(description="The study's name once more.")]
    ) -> answers.Removed:
        """Deletes a study with the members that no other study uses; its files stay."""
        removal = studies.delete(name, confirm, who(request).name)
        return answers.Removed(name=name, members=len(removal.runs), shared=removal.shared)


def _json(data: Any) -> Response:
    return Response(json.dumps(data, ensure_ascii=False, default=str), media_type="application/json")
