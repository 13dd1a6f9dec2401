"""Metrics of a service, by the conventions of Prometheus: base units, `_total` for counters, labels of few values."""

import platform
import time
from importlib.metadata import version

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsearch.service.access.protocol import refused as heads_refused
from epsearch.service.streams import Streams
from epsearch.service.studies import Studies
from epsearch.service.work.scheduler import Scheduler
from results.ledger.writers.states import CANCELLED, FAILED, FINISHED, INTERRUPTED, QUEUED, RUNNING

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
STATES = (QUEUED, RUNNING, CANCELLED, FAILED, FINISHED, INTERRUPTED)
# Gauges of the times at which counters began: a series more for each.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Collector):
    """Counts requests; reads studies, streams and processes when it is collected."""

    def __init__(self, studies: Studies, streams: Streams, scheduler: Scheduler) -> None:
        self._studies, self._streams, self._scheduler = studies, streams, scheduler
        self._registry, self._process = CollectorRegistry(), psutil.Process()
        labels = ("method", "route", "status")
        self._requests = Counter("epsearch_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "epsearch_request_duration_seconds",
            "Time from a request to the beginning of its answer.",
            labels[:2],
            registry=self._registry,
        )
        self._refusals = Counter(
            "epsearch_refusals", "Requests refused before a route has them.", ["reason"], registry=self._registry
        )
        self._registry.register(self)

    def count_refusal(self, reason: str) -> None:
        """Counts a request refused before it reached a route; reason: the status, or a word."""
        self._refusals.labels(reason).inc()

    def text(self) -> bytes:
        """Returns all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Returns no metrics, as all are known only when collected."""
        return []

    def collect(self) -> list[Metric]:
        """Returns the metrics that are read now."""
        store, counts = self._studies.store, dict.fromkeys(STATES, 0)
        stored, submissions = {row.name for row in store.studies()}, store.queue.submissions()
        for name, current in store.leases.states().items():
            if name in stored or name in submissions:  # the lease of a deleted study stays
                counts[current.now] = counts.get(current.now, 0) + 1
        studies = GaugeMetricFamily("epsearch_studies", "Studies of the ledger by their state.", labels=["state"])
        for state, count in counts.items():
            studies.add_metric([state], count)
        heads = CounterMetricFamily(
            "epsearch_heads_refused", "Heads of requests that were too slow or too large.", labels=["status"]
        )
        for status, count in heads_refused.items():
            heads.add_metric([status.partition(" ")[0]], count)
        waiting = sum(submission.open for submission in submissions.values())
        return [
            studies,
            heads,
            GaugeMetricFamily("epsearch_open_submissions", "Submitted studies that have not ended.", waiting),
            GaugeMetricFamily(
                "epsearch_study_processes", "Running processes of studies, of this service.", len(self._scheduler.pids)
            ),
            GaugeMetricFamily("epsearch_open_streams", "Streams of events.", self._streams.open),
            *self._of_process(),
        ]

    def _of_process(self) -> list[Metric]:
        """Returns the metrics of the service's own process, and of its version."""
        times = self._process.cpu_times()
        build = GaugeMetricFamily(
            "epsearch_build_info", "Always 1; its labels are the versions.", labels=["version", "python_version"]
        )
        build.add_metric([version("epsearch"), platform.python_version()], 1)
        return [
            build,
            CounterMetricFamily(
                "epsearch_process_cpu_seconds", "Processor time of the service itself.", times.user + times.system
            ),
            GaugeMetricFamily(
                "epsearch_process_resident_memory_bytes",
                "Resident memory of the service itself.",
                self._process.memory_info().rss,
            ),
            GaugeMetricFamily(
                "epsearch_process_start_time_seconds",
                "Start of the service, since the Unix epoch.",
                self._process.create_time(),
            ),
        ]

    def counting(self, app: ASGIApp) -> ASGIApp:
        """Wraps an application to count its answers by route."""

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            begun, status = time.monotonic(), 0

            async def forward(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                    self._seconds.labels(_method(scope), _route(scope)).observe(time.monotonic() - begun)
                await send(message)

            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            try:
                await app(scope, receive, forward)
            finally:
                self._requests.labels(_method(scope), _route(scope), str(status or 500)).inc()

        return count


def _route(scope: Scope) -> str:
    """Returns the pattern of a route: clients may request any number of paths."""
    route = scope.get("route")
    return str(getattr(route, "path", "other"))


def _method(scope: Scope) -> str:
    """Returns the method: clients may send any word."""
    return str(scope["method"]) if scope["method"] in METHODS else "other"
