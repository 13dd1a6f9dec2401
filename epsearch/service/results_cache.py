"""Cache of the results of studies, as in their reports.

Statistics and figures take seconds of a processor that trains. So they are computed again only after new members, and
of a study that is being trained not before PAUSE times the last computation: a page may lag, and shows its time.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS, AnyResults, Groups, Report
from epsearch.findings.search import search_so_far
from epsearch.loop.base import Loop
from epsearch.preparation import history
from epsearch.service.settings import Settings
from epsearch.session.session import stored_loop
from epsearch.study.kinds import Search
from results.figures.parameter_drawing import ParameterCurve
from results.ledger.record import RunRecord
from results.ledger.store import Store, StudyRow

PAUSE = 40.0  # so that at most a fortieth of one core's time is spent on a study that is being trained
CACHED = 50  # studies whose results are cached, the last that were read


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Results of one study at one time."""

    state: str
    """Progress or result in words."""
    headline: str
    """The best so far, in words."""
    results: AnyResults | None
    """Results of the report; None before there are any."""
    reason: str
    """Why `results` is None; else empty."""
    records: tuple[RunRecord, ...]
    """Stored members, in the order of their storage."""
    groups: Groups
    """Stored members by stream and point, or row; those of a group differ in their seeds."""
    figures: Mapping[str, Any]
    """Name -> (module, numbers), also before there is a report."""
    time: float
    """When they were computed, in seconds since 1970."""


class ResultsCache:
    """Results of studies by name; `get` is safe in any thread."""

    def __init__(self, settings: Settings, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._store, self._clock = settings, store, clock
        self._lock, self._locks = threading.Lock(), dict[str, threading.Lock]()  # of the cache, of each study
        # Study -> version, results, time of the clock before which those of a running study are not computed again.
        self._cache: dict[str, tuple[object, StudyResults | None, float]] = {}

    def get(self, name: str) -> StudyResults | None:
        """Returns the results of a stored study, None if there is none of that name. Raises UsageError."""
        row = history.find(self._store, name)
        if row is None:
            with self._lock:
                self._cache.pop(name, None)
                self._locks.pop(name, None)
            return None
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:  # concurrent requests wait for one computation
            before, results, until = self._cache.get(name, (None, None, 0.0))
            current = self._store.leases.state_of(name)
            last = self._store.events.newest(name, "records", "state")  # every storage of members adds one
            version = (row.checksum, last and last.id, None if current is None else (current.now, current.token))
            pausing = current is not None and current.held and self._clock() < until
            if results is None or (version != before and not pausing):
                # Processor time, which other processes do not extend; the first computation also imports modules.
                first, begun = results is None, time.thread_time()
                before, results = version, self._compute(row)
                until = self._clock() + (0.0 if first else PAUSE * (time.thread_time() - begun))
            with self._lock:
                self._cache.pop(name, None)
                self._cache[name] = before, results, until  # the last used is the last
                if len(self._cache) > CACHED:
                    del self._cache[next(iter(self._cache))]
            return results

    def _compute(self, row: StudyRow) -> StudyResults:
        loop = stored_loop(row, self._store, self._settings.storage, self._settings.out)
        results, reason = None, ""
        try:
            results = REPORTS[loop.study.kind].results(loop, {}, None)
        except UsageError as error:  # nothing to report yet
            reason = str(error)
        records = tuple(sorted(loop.records.values(), key=lambda record: (record.created, record.key)))
        groups, figures = REPORTS[loop.study.kind].groups(loop), _figures(loop, results)
        return StudyResults(loop.state(), loop.headline(), results, reason, records, groups, figures, time.time())


def _figures(loop: Loop, results: AnyResults | None) -> Mapping[str, Any]:
    """Returns the figures of the report; for a search also with the members of open rounds."""
    report = REPORTS[loop.study.kind]
    if loop.study.kind != Search.kind:
        return _drawable(report, results)
    growing = _drawable(report, search_so_far(loop))  # type: ignore[arg-type]
    if loop.done:
        return growing
    # The interval of the best value is that of finished rounds.
    finished = _drawable(report, results)
    return {
        name: (module, numbers._replace(peak=finished[name][1].peak if name in finished else None))
        if isinstance(numbers, ParameterCurve)
        else (module, numbers)
        for name, (module, numbers) in growing.items()
    }


def _drawable(report: Report, results: AnyResults | None) -> Mapping[str, Any]:
    figures: Mapping[str, Any] = {}
    if results is not None and [*report.records(results)]:
        with suppress(ValueError):  # too few members for the statistics
            figures = report.figures(results)
    return figures
