"""Routes for monitoring: streams of events, /health, /ready and /metrics."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from epsearch.failures.errors import Unavailable
from epsearch.service import answers
from epsearch.service.access.limits import READERS, WATCHERS, Quota, ThreadedRouter, in_thread
from epsearch.service.problems import REFUSED
from epsearch.service.routes import Name, Service, api_router, token_of
from epsearch.service.streams import encode, last_event
from results.ledger.errors import StoreError

STREAMS_OF_ONE = 100  # open at a time, of one token; all tabs of a browser share one
MOST_STREAMS = 500  # of MOST_CONNECTIONS
RETRY_SECONDS = 5.0  # after which a refused client may try again


def routes(service: Service) -> tuple[APIRouter, APIRouter]:
    """Returns the routers below /api/v1 and beside it."""
    api, beside = api_router(READERS, "studies"), ThreadedRouter(WATCHERS, tags=["monitoring"])
    _events(api, service)
    _health(beside, service)
    return api, beside


def _events(api: APIRouter, service: Service) -> None:
    after_ = Annotated[int | None, Query(ge=0, le=2**62, description="Number of the last event that is known.")]
    last_ = Annotated[str | None, Header(max_length=30)]

    quota = Quota("streams", STREAMS_OF_ONE, MOST_STREAMS)

    async def encode_events(study: str | None, last: int | None, token: str) -> AsyncIterator[bytes]:
        # Refused by `check` before, but for a race; a client connects again if the ledger fails.
        with suppress(Unavailable, StoreError), quota.acquire(token, RETRY_SECONDS):
            async for event in service.streams.events(study, last):
                yield encode(event)

    # FastAPI's own streams would encode each event for every client.
    streamed: dict[str, Any] = {"response_class": StreamingResponse, "responses": answers.STREAMED}

    def stream(request: Request, study: str | None, last: int | None) -> Response:
        token = token_of(request).name
        quota.check(token, RETRY_SECONDS)  # now, as the answer begins before the stream does
        if request.state.head:
            return Response(media_type="text/event-stream")
        return StreamingResponse(encode_events(study, last, token), media_type="text/event-stream")

    @api.get("/events", **streamed)
    async def stream_events(request: Request, after: after_ = None, last_event_id: last_ = None) -> Response:
        """Events of all studies as they happen."""
        return stream(request, None, last_event(last_event_id, after))

    async def check_name(name: Name) -> None:
        await in_thread(service.studies.status)(name)

    @api.get("/studies/{name}/events", dependencies=[Depends(check_name)], **streamed)
    async def stream_study_events(
        request: Request, name: Name, after: after_ = None, last_event_id: last_ = None
    ) -> Response:
        """Events of one study as they happen, numbered like the changes of the ledger."""
        return stream(request, name, last_event(last_event_id, after))


def _health(beside: ThreadedRouter, service: Service) -> None:
    @beside.get("/health")
    async def check_health() -> Mapping[str, str]:
        """Answers if the service runs."""
        return {"status": "ok"}

    @beside.get("/ready", responses={503: REFUSED[503]})
    async def check_readiness() -> Mapping[str, str]:
        """Checks the queue, and that ledger and out folder are writable."""
        await service.ready()
        return {"status": "ok"}

    @beside.get("/metrics", response_class=PlainTextResponse)
    def get_metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
