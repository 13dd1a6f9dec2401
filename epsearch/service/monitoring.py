"""For those who watch: events of studies as they happen, /health, /ready and /metrics."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from epsearch.failures.errors import Unavailable
from epsearch.service import answers
from epsearch.service.access.shares import READERS, WATCHERS, Shares, Threads, in_thread
from epsearch.service.routes import Name, Service, below_api, who
from epsearch.service.streams import last_known, sent

STREAMS_OF_ONE = 100  # that one token may have open; all tabs of a browser share one
MOST_STREAMS = 500  # of MOST_CONNECTIONS
AGAIN = 5.0  # seconds until one more may be had


def routes(service: Service) -> tuple[APIRouter, APIRouter]:
    """(those below /api/v1, those beside it)."""
    api, beside = below_api(READERS), Threads(WATCHERS)
    _events(api, service)
    _health(beside, service)
    return api, beside


def _events(api: APIRouter, service: Service) -> None:
    after_ = Annotated[int | None, Query(ge=0, le=2**62, description="Number of the last event that is known.")]
    last_ = Annotated[str | None, Header(max_length=30)]

    shares = Shares("streams", STREAMS_OF_ONE, MOST_STREAMS)

    async def told(study: str | None, last: int | None, token: str) -> AsyncIterator[bytes]:
        with suppress(Unavailable), shares.taken(token, AGAIN):  # that of a client that has just been told otherwise
            async for one in service.streams.of(study, last):
                yield sent(one)

    # Not FastAPI's own way to stream events: it makes each of them anew for every listener.
    streamed: dict[str, Any] = {"response_class": StreamingResponse, "responses": answers.STREAMED}

    def stream(request: Request, study: str | None, last: int | None) -> Response:
        token = who(request).name
        shares.check(token, AGAIN)  # now, as the answer begins before the stream does
        return StreamingResponse(told(study, last, token), media_type="text/event-stream")

    @api.get("/events", **streamed)
    async def events(request: Request, after: after_ = None, last_event_id: last_ = None) -> Response:
        """Events of all studies as they happen."""
        return stream(request, None, last_known(last_event_id, after))

    async def known(name: Name) -> None:
        await in_thread(service.studies.status)(name)

    @api.get("/studies/{name}/events", dependencies=[Depends(known)], **streamed)
    async def events_of(request: Request, name: Name, after: after_ = None, last_event_id: last_ = None) -> Response:
        """Events of one study as they happen; the number of each is that of the change of the ledger."""
        return stream(request, name, last_known(last_event_id, after))


def _health(beside: Threads, service: Service) -> None:
    @beside.get("/health")
    async def health() -> Mapping[str, str]:
        """That the service answers."""
        return {"status": "ok"}

    @beside.get("/ready", responses={503: {"model": answers.Refusal}})
    async def ready() -> Mapping[str, str]:
        """That its queue works, and that ledger and out folder can be written to."""
        await service.readiness.check()
        return {"status": "ok"}

    @beside.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> Response:
        """What Prometheus reads."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
