"""A service as one application, and the server that runs it."""

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import uvicorn
from anyio import CapacityLimiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from uvicorn.config import LOGGING_CONFIG

from epsearch.failures.crash_report import write
from epsearch.failures.errors import UsageError, brief
from epsearch.failures.lines import one_line
from epsearch.failures.stopping import end
from epsearch.ledger.location import hide_storage
from epsearch.operating_system import reuse_address
from epsearch.service import monitoring, problems
from epsearch.service.access.limits import TooMany, in_thread
from epsearch.service.access.protocol import LimitedProtocol
from epsearch.service.answers import StudyLabels
from epsearch.service.logs import JSON, log
from epsearch.service.metrics import Metrics
from epsearch.service.people import People
from epsearch.service.reporting import Reporter
from epsearch.service.results_cache import ResultsCache
from epsearch.service.routes import Service, routes
from epsearch.service.safety import API_PAGE, Guard
from epsearch.service.schema import describe
from epsearch.service.settings import IDLE_SECONDS, MOST_CONNECTIONS, Settings, check
from epsearch.service.streams import Streams
from epsearch.service.studies import Studies
from epsearch.service.web import pages, rendering
from epsearch.service.work.planning import Planner
from epsearch.service.work.processes import environment
from epsearch.service.work.readiness import readiness
from epsearch.service.work.scheduler import Scheduler
from epsearch.session.session import make_folder, open_store
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store
from results.ledger.url import without_passwords
from trainers.spelling import unknown

MESSAGES = {
    "Not Found": "there is nothing at {path}",
    "Method Not Allowed": "{path} does not answer {method}",
    "There was an error parsing the body": "the body must be JSON in UTF-8, and not nested too deeply",
}
"""Message of the framework -> ours."""

LAST_SECONDS = 2  # for answers under way when the service ends
RETRY_SECONDS = 5  # after which a client may try again if the service is busy
LEDGER_SECONDS = 5.0  # that a change waits for another one, until the client is asked to try again


def application(settings: Settings, store: Store, works: bool = True) -> FastAPI:
    """Makes the application of a service over an open ledger; works: False to leave the queue alone."""
    studies, scheduler, streams = Studies(settings, store), Scheduler(settings, store), Streams(store)
    results, metrics = ResultsCache(settings, store), Metrics(studies, streams, scheduler)
    planner, ready = Planner(environment(settings)), readiness(settings, store, scheduler)
    reporter = Reporter(studies, results)
    people = People(settings, store)
    service = Service(settings, studies, results, reporter, people, streams, scheduler, metrics, planner, ready)

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
        redirect_slashes=False,  # to the Host header, which a proxy may have replaced; `Guard` removes the slash
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.openapi = cache(partial(describe, app, settings))  # type: ignore[method-assign]
    for router in (*routes(service), *monitoring.routes(service), *pages.routes(service)):
        app.include_router(router)
    rendering.mount(app)
    bug = _answer_errors(app, settings)
    app.add_middleware(metrics.counting)
    app.add_middleware(
        Guard, settings=settings, bug=bug, count_refusal=metrics.count_refusal
    )  # the last one added is the outermost
    return app


def serve(settings: Settings, notify: Callable[..., None]) -> None:
    """Serves until SIGTERM or Ctrl-C; studies that run then are interrupted, and queued for the next service.

    notify: called as `logs.log`, with messages for the user. Raises UsageError for impossible settings, and if the port
    is in use.
    """
    check(settings)
    make_folder(settings.out)
    try:
        _serve(settings, notify)
    finally:
        # Python would wait for a thread that waits for the ledger, or computes an answer that nobody awaits any more.
        if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
            end()


def _serve(settings: Settings, notify: Callable[..., None]) -> None:
    with (
        hide_storage(),
        open_store(settings.storage, retries=RetryPolicy(notify=partial(notify, "ledger_retried"))) as store,
        _bind(settings) as listening,
    ):
        store.limit_waits(LEDGER_SECONDS)
        host, port = listening.getsockname()[:2]
        address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
        url = address if settings.url is None else f"{settings.url}/ at {address}"
        tokens = (
            f"{len(settings.tokens.valid)} tokens" if settings.tokens.needed else "without tokens, for this machine"
        )
        line, number = f"epsearch serves {url} ({tokens}), ledger {settings.storage}", len(settings.tokens.valid)
        public = str(settings.url or address)
        notify("serving", line, url=public, address=address, tokens=number, ledger=str(settings.storage))
        app = application(settings, store)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            log_config=None if settings.log_format == JSON else LOGGING_CONFIG,
            timeout_graceful_shutdown=LAST_SECONDS,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            server_header=False,
            http=LimitedProtocol,
            ws="none",
            proxy_headers=False,
        )
        _Server(config, app.state.service).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends streams and plans first when it shuts down, as it would wait for them."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops the service, then the server."""
        self._service.stop()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


def _bind(settings: Settings) -> socket.socket:
    """Returns a socket that listens. Raises UsageError if the port is in use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        reuse_address(listening)
        listening.bind((settings.host, settings.port))
        listening.listen()  # from now on clients wait instead of an error
    except OSError as error:
        listening.close()
        address = f"{settings.host}:{settings.port}"
        raise UsageError(f"cannot listen at {address}: {error.strerror or error}; choose another --port") from error
    return listening


def _answer_errors(app: FastAPI, settings: Settings) -> Callable[[Exception], Response]:
    """Answers every error in one line, as JSON or as a page; returns the function that answers a bug."""

    async def answer(request: Request, error: Exception) -> Response:  # a plain function would wait for a thread
        refusal = _refusal(request, problems.of_error(error), message(str(error)))
        if refusal.status_code in (429, 503):
            refusal.headers["Retry-After"] = str(error.seconds if isinstance(error, TooMany) else RETRY_SECONDS)
        return refusal

    def message(text: str) -> str:
        return one_line(without_passwords(text, [settings.storage]))

    for kind in problems.ERRORS:
        app.add_exception_handler(kind, answer)

    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        reason = MESSAGES.get(str(error.detail), "{detail}")
        place = {"path": brief(request.url.path), "method": request.method, "detail": error.detail}
        return _refusal(request, problems.of_status(error.status_code), reason.format(**place))

    @app.exception_handler(RequestValidationError)
    async def refuse_input(request: Request, error: RequestValidationError) -> Response:
        return _refusal(request, "bad-input", message("; ".join(dict.fromkeys(map(_input_error, error.errors())))))

    def bug(error: Exception) -> Response:
        text = message(f"a bug in epsearch: {type(error).__name__}; {write(error, urls=[settings.storage])}")
        log("bug", text, logging.ERROR, error, status=500)
        return problems.answer("bug", text)

    return bug


def _input_error(error: Mapping[str, Any]) -> str:
    """Returns the message about an invalid part of a request."""
    place, *names = map(str, error["loc"])
    if error["type"] == "json_invalid":
        return f"the body must be JSON; it is not at character {names[-1]}: {error['ctx']['error']}"
    if place == "body" and not names:
        return 'the body must be a JSON object like {"kind": "run"}, sent with Content-Type: application/json'
    name, reason = ".".join(names), str(error["msg"]).removeprefix("Input should ").removeprefix("be ")
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        return unknown("label", name, tuple(StudyLabels.model_fields))
    if error["type"] == "too_short":
        return f"{name} must be given {error['ctx']['min_length']} times or more, got {brief(error['input'])}"
    if error["type"] == "int_parsing":
        reason = "a whole number"
    return f"{name} must be {reason}, got {brief(error['input'])}"


def _refusal(request: Request, problem: str, reason: str) -> Response:
    program = request.url.path.startswith("/api/") and request.url.path != API_PAGE
    if program or "text/html" not in request.headers.get("accept", ""):
        return problems.answer(problem, reason)
    return rendering.refusal(request, problems.PROBLEMS[problem][0], reason)
