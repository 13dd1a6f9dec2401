"""What a service says of itself to Prometheus."""

import time

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsearch.service.access.heads import refused as heads_refused
from epsearch.service.streams import Streams
from epsearch.service.studies import Studies
from epsearch.service.work.scheduler import Scheduler
from results.ledger.writers.states import CANCELLED, FAILED, FINISHED, INTERRUPTED, QUEUED, RUNNING

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
STATES = (QUEUED, RUNNING, CANCELLED, FAILED, FINISHED, INTERRUPTED)


class Metrics(Collector):
    """Counts requests, and looks at studies, streams and processes whenever it is asked."""

    def __init__(self, studies: Studies, streams: Streams, scheduler: Scheduler) -> None:
        self._studies, self._streams, self._scheduler = studies, streams, scheduler
        self._registry, self._process = CollectorRegistry(), psutil.Process()
        labels = ("method", "route", "status")
        self._requests = Counter("epsearch_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "epsearch_request_seconds", "Until the answer began.", labels[:2], registry=self._registry
        )
        self._refusals = Counter(
            "epsearch_refusals", "Requests refused before a route has them.", ["reason"], registry=self._registry
        )
        self._registry.register(self)

    def refused(self, reason: str) -> None:
        """Counts a request that was refused before a route has had it; reason: the status, or a word."""
        self._refusals.labels(reason).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> list[Metric]:
        """What is looked at now."""
        store, counts = self._studies.store, dict.fromkeys(STATES, 0)
        there, submissions = {row.name for row in store.studies()}, store.queue.submissions()
        for name, standing in store.leases.standings().items():
            if name in there or name in submissions:  # the lease of one that was deleted stays
                counts[standing.now] = counts.get(standing.now, 0) + 1
        studies = GaugeMetricFamily("epsearch_studies", "Studies of the ledger by their state.", labels=["state"])
        for state, count in counts.items():
            studies.add_metric([state], count)
        heads = CounterMetricFamily(
            "epsearch_heads_refused", "Heads of requests that were too slow or too large.", labels=["status"]
        )
        for status, count in heads_refused.items():
            heads.add_metric([status.partition(" ")[0]], count)
        times = self._process.cpu_times()
        return [
            studies,
            heads,
            _one(
                "epsearch_queue_open",
                "Submitted studies that have not ended.",
                sum(one.open for one in submissions.values()),
            ),
            _one("epsearch_processes", "Studies' processes that this service has started.", len(self._scheduler.pids)),
            _one("epsearch_streams_open", "Streams of events.", self._streams.open),
            _one("epsearch_service_cpu_seconds", "Of the service itself.", times.user + times.system),
            _one("epsearch_service_memory_bytes", "Resident, of the service.", self._process.memory_info().rss),
        ]

    def counting(self, app: ASGIApp) -> ASGIApp:
        """The application with every answer counted, under the route that gave it."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            begun, status = time.monotonic(), 0

            async def sent(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                    self._seconds.labels(_method(scope), _route(scope)).observe(time.monotonic() - begun)
                await send(message)

            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            try:
                await app(scope, receive, sent)
            finally:
                self._requests.labels(_method(scope), _route(scope), str(status or 500)).inc()

        return counted


def _route(scope: Scope) -> str:
    """Its pattern, not its path: of names that clients make up there may be any number."""
    route = scope.get("route")
    return str(getattr(route, "path", "other"))


def _method(scope: Scope) -> str:
    """The same: clients may send any word."""
    return str(scope["method"]) if scope["method"] in METHODS else "other"


def _one(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, value=value)
