"""Cache of the results of studies, as their reports show them.

Statistics and figures take seconds of a processor that trains. So they are made again only where members have come in,
and of a study that is being trained not before PAUSE times what the last making took: a page may lag, and says of when
it is.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS, AnyResults, Groups, Reporting
from epsearch.findings.search import search_so_far
from epsearch.loop.base import Loop
from epsearch.preparation import growth
from epsearch.service.settings import Settings
from epsearch.session.session import stored_loop
from epsearch.study.kinds import Search
from results.figures.parameter_drawing import ParameterCurve
from results.ledger.record import RunRecord
from results.ledger.store import Store, StudyRow

PAUSE = 40.0  # so that at most a fortieth of one core's time is spent on a study that is being trained
KEPT = 50  # studies whose findings are kept, the last that were asked for


@dataclass(frozen=True)
class StudyResults:
    """Results of one study at one time."""

    state: str
    """How far it is, in words."""
    headline: str
    """The best so far, in words."""
    results: AnyResults | None
    """As its report takes them; None before there is anything to report."""
    why: str
    """Why there are none."""
    records: tuple[RunRecord, ...]
    """Its members that are in the ledger, in the order in which they were stored."""
    groups: Groups
    """The same by stream and point, or row: their seeds are averaged as one thing."""
    figures: Mapping[str, Any]
    """As `results.pages` has them: also of what no report can say yet."""
    made: float
    """When: seconds since 1970."""


@dataclass
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: object = None
    found: StudyResults | None = None
    until: float = 0.0  # monotonic time before which a running study is not looked at again
    used: float = 0.0


class ResultsCache:
    """Results of studies by name. `get` is safe in any thread."""

    def __init__(self, settings: Settings, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._store, self._clock = settings, store, clock
        self._lock, self._kept = threading.Lock(), dict[str, _Kept]()

    def get(self, name: str) -> StudyResults | None:
        """Returns the results of a stored study, None if there is none of that name. Raises UsageError."""
        row = growth.find(self._store, name)
        if row is None:
            self._forget(name)
            return None
        kept = self._of(name)
        with kept.lock:  # two who ask for the same wait for one making
            there = self._store.leases.standing(name)
            last = self._store.events.newest(name, "records", "state")  # one whenever members are stored
            version = (row.checksum, last and last.id, None if there is None else (there.now, there.token))
            resting = there is not None and there.held and self._clock() < kept.until
            if kept.found is None or (version != kept.version and not resting):
                # By the processor's time, which others that are at work do not make longer; the first one imports.
                first, begun = kept.found is None, time.thread_time()
                kept.found, kept.version = self._make(row), version
                kept.until = self._clock() + (0.0 if first else PAUSE * (time.thread_time() - begun))
            return kept.found

    def _make(self, row: StudyRow) -> StudyResults:
        loop = stored_loop(row, self._store, self._settings.storage, self._settings.out)
        results, why = None, ""
        try:
            results = REPORTS[loop.study.kind].results(loop, {}, None)
        except UsageError as error:  # nothing is there to report yet
            why = str(error)
        records = tuple(sorted(loop.records.values(), key=lambda record: (record.created, record.key)))
        groups, figures = REPORTS[loop.study.kind].groups(loop), _figures(loop, results)
        return StudyResults(loop.state(), loop.headline(), results, why, records, groups, figures, time.time())

    def _of(self, name: str) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(name, _Kept())
            kept.used = self._clock()
            if len(self._kept) > KEPT:
                del self._kept[min(self._kept, key=lambda one: self._kept[one].used)]
            return kept

    def _forget(self, name: str) -> None:
        with self._lock:
            self._kept.pop(name, None)


def _figures(loop: Loop, results: AnyResults | None) -> Mapping[str, Any]:
    """Those of its report; of a search also with the members of the round that is open."""
    reports = REPORTS[loop.study.kind]
    if loop.study.kind != Search.kind:
        return _drawable(reports, results)
    growing = _drawable(reports, search_so_far(loop))  # type: ignore[arg-type]
    if loop.done:
        return growing
    # Where the best may lie is said of finished rounds alone.
    finished = _drawable(reports, results)
    return {
        name: (module, numbers._replace(peak=finished[name][1].peak if name in finished else None))
        if isinstance(numbers, ParameterCurve)
        else (module, numbers)
        for name, (module, numbers) in growing.items()
    }


def _drawable(reports: Reporting, results: AnyResults | None) -> Mapping[str, Any]:
    figures: Mapping[str, Any] = {}
    if results is not None and [*reports.records(results)]:
        with suppress(ValueError):  # too little for statistics, which say so
            figures = reports.figures(results)
    return figures
