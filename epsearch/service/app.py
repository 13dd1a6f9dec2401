"""A service as one application, and serving it until it is told to stop."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import uvicorn
from anyio import CapacityLimiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from epsearch.failures.crash_report import write
from epsearch.failures.errors import NoStudy, Unavailable, UsageError, brief
from epsearch.failures.lines import one_line
from epsearch.failures.stopping import end
from epsearch.ledger.location import hide_storage
from epsearch.service import monitoring
from epsearch.service.access.heads import Heads
from epsearch.service.access.shares import TooMany, in_thread
from epsearch.service.metrics import Metrics
from epsearch.service.reporting import Reporter
from epsearch.service.results_cache import ResultsCache
from epsearch.service.routes import Service, routes
from epsearch.service.safety import API_PAGE, Forbidden, Guard
from epsearch.service.settings import IDLE_SECONDS, MOST_CONNECTIONS, Settings, check
from epsearch.service.streams import Streams
from epsearch.service.studies import Busy, Studies
from epsearch.service.web import pages, rendering
from epsearch.service.work.planning import Planner
from epsearch.service.work.processes import environment
from epsearch.service.work.readiness import Readiness
from epsearch.service.work.scheduler import Scheduler
from epsearch.session.session import make_folder, open_store
from results.ledger.errors import StoreError
from results.ledger.retry import Patience
from results.ledger.store import Store
from results.ledger.url import without_passwords

LAST_SECONDS = 2  # that answers on their way have when the service ends
RETRY_SECONDS = 5  # after which a client may try again what the service cannot do now
LEDGER_SECONDS = 5.0  # that a change waits for another one; the client is then told to try again


def application(settings: Settings, store: Store, works: bool = True) -> FastAPI:
    """The whole service over an open ledger; works: whether it trains what is in the queue."""
    studies, scheduler, streams = Studies(settings, store), Scheduler(settings, store), Streams(store)
    findings, metrics = ResultsCache(settings, store), Metrics(studies, streams, scheduler)
    planner, readiness = Planner(environment(settings)), Readiness(settings, store, scheduler)
    service = Service(
        settings, studies, findings, Reporter(studies, findings), streams, scheduler, metrics, planner, readiness
    )

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        streams.start()
        if works:
            scheduler.start()
        yield
        service.stop()
        await in_thread(scheduler.stop, CapacityLimiter(1))()

    app = FastAPI(
        title="epsearch",
        version=version("epsearch"),
        description="Studies of hyperparameters of continual-learning methods: submitted, watched, cancelled, read.",
        lifespan=life,
        docs_url=None,  # its page loads scripts of other hosts
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service = service
    for router in (*routes(service), *monitoring.routes(service), *pages.routes(service)):
        app.include_router(router)
    rendering.mount(app)
    bug = _answer_errors(app, settings)
    app.add_middleware(metrics.counting)
    app.add_middleware(
        Guard, settings=settings, bug=bug, refused=metrics.refused
    )  # the last that is added is the first that is asked
    return app


def serve(settings: Settings, tell: Callable[[str], None]) -> None:
    """Serves until SIGTERM or Ctrl-C; studies that run then are interrupted, and go on with the next service.

    tell: takes a line for people. Raises UsageError where the service could not work, or its port is taken.
    """
    check(settings)
    make_folder(settings.out)
    try:
        _serve(settings, tell)
    finally:
        # A thread that waits for the ledger, or computes what nobody awaits any more, would be waited for.
        if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
            end()


def _serve(settings: Settings, tell: Callable[[str], None]) -> None:
    with (
        hide_storage(),
        open_store(settings.storage, patience=Patience(notify=tell)) as store,
        _listening(settings) as listening,
    ):
        store.limit_waits(LEDGER_SECONDS)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        who = f"{len(settings.tokens.known)} tokens" if settings.tokens.needed else "without tokens, from here alone"
        tell(f"epsearch serves http://{shown}:{port}/ ({who}), ledger {settings.storage}")
        config = uvicorn.Config(
            application(settings, store),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=LAST_SECONDS,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            server_header=False,
            http=Heads,
            ws="none",
            proxy_headers=False,
        )
        _Server(config).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends streams and plans as soon as it is told to stop: they would be waited for otherwise."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops streams and plans first."""
        app = self.config.loaded_app
        while hasattr(app, "app") and not isinstance(app, FastAPI):
            app = app.app
        if isinstance(app, FastAPI):
            app.state.service.stop()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


def _listening(settings: Settings) -> socket.socket:
    """Bound before the application is made, so that a taken port is one line."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen()  # from now on whoever comes waits, and is answered
    except OSError as error:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        raise UsageError(f"cannot listen at {where}: {error.strerror or error}; choose another --port") from error
    return listening


def _answer_errors(app: FastAPI, settings: Settings) -> Callable[[Exception], Response]:
    """Whatever is raised becomes one line, for programs as JSON and for people as a page; the answer to a bug."""
    statuses: dict[type[Exception], int] = {
        Forbidden: 403,
        NoStudy: 404,
        Busy: 409,
        TooMany: 429,
        UsageError: 422,
        Unavailable: 503,
        StoreError: 503,
    }

    async def answer(request: Request, error: Exception) -> Response:  # a plain function would wait for a thread
        status = next((number for kind, number in statuses.items() if isinstance(error, kind)), 500)
        refusal = _refusal(request, status, said(str(error)))
        if status in (429, 503):
            refusal.headers["Retry-After"] = str(error.seconds if isinstance(error, TooMany) else RETRY_SECONDS)
        return refusal

    def said(words: str) -> str:
        return one_line(without_passwords(words, [settings.storage]))

    for kind in statuses:
        app.add_exception_handler(kind, answer)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return _refusal(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        return _refusal(request, 422, said("; ".join(dict.fromkeys(_in_words(one) for one in error.errors()))))

    def bug(error: Exception) -> Response:
        where = write(error, urls=[settings.storage])
        return JSONResponse({"detail": said(f"a bug in epsearch: {type(error).__name__}; {where}")}, 500)

    return bug


def _in_words(wrong: Mapping[str, Any]) -> str:
    """What of a request does not fit its route, for who has sent it."""
    place, *names = map(str, wrong["loc"])
    if wrong["type"] == "json_invalid":
        return f"the body must be JSON, and is none at character {names[-1]}: {wrong['ctx']['error']}"
    if place == "body" and not names:
        return 'the body must be a JSON object like {"kind": "run"}, sent with Content-Type: application/json'
    name, reason = ".".join(names), str(wrong["msg"]).removeprefix("Input should ").removeprefix("be ")
    if wrong["type"] == "missing":
        return f"{name} is missing"
    return f"{name} must be {reason}, got {brief(wrong['input'])}"


def _refusal(request: Request, status: int, why: str) -> Response:
    program = request.url.path.startswith("/api/") and request.url.path != API_PAGE
    if program or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": why}, status)
    return rendering.refusal(request, status, why)
