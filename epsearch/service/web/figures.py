"""What a page shows of a study's findings, made once and kept while they are the same."""

import math
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from epsearch.findings.reports import REPORTS
from epsearch.service.results_cache import KEPT, StudyResults
from results.html import page
from results.labels import STREAM_LABELS, mean_std_text, number_text
from results.ledger.record import RunRecord
from results.metrics import METRICS
from results.points import by_point

MOST_MEMBERS = 500
"""Members of a table; all are in the files that the page links."""
COLUMNS = ("A_T", "F_T", "a_1", "a_t")
"""Metrics of the table of runs, which members of a search have, too."""
FIRST = ("shrinking",)
"""Figures that stand behind the first one, before all others."""


class Averaged(NamedTuple):
    """One point or row: its members averaged over the seeds."""

    stream: str
    """In words."""
    label: str
    """The point in words."""
    cells: tuple[str, ...]
    """COLUMNS as mean ± population standard deviation."""
    n: int
    """Seeds that are averaged."""
    diverged: int
    """Seeds that are not."""


class Member(NamedTuple):
    """One member."""

    stream: str
    label: str
    seed: int
    cells: tuple[str, ...]
    """COLUMNS."""
    status: str
    """In words; what has diverged, and where."""
    seconds: str
    created: str
    ok: bool


class Shown(NamedTuple):
    """Of one study at one time."""

    overview: str
    """HTML; "" before there is anything to say."""
    figures: tuple[str, ...]
    """HTML, the most telling first."""
    rows: tuple[Averaged, ...]
    members: tuple[Member, ...]
    """At most MOST_MEMBERS, the newest of all."""
    lost: tuple[Member, ...]
    """Those that diverged."""


class Showing:
    """What was shown last, by study."""

    def __init__(self) -> None:
        self._lock, self._kept = threading.Lock(), dict[str, tuple[StudyResults, Shown]]()

    def of(self, name: str, kind: str, found: StudyResults) -> Shown:
        """What a study of a kind shows; the same as before while nothing new was found."""
        with self._lock:
            known = self._kept.get(name)
        if known is not None and known[0] is found:
            return known[1]
        shown = _shown(kind, found)
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = (found, shown)
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return shown


def _shown(kind: str, found: StudyResults) -> Shown:
    overview = "" if found.results is None or not found.records else REPORTS[kind].overview(found.results)
    members = [
        _member(str(stream), str(label), one) for (stream, label), those in found.groups.items() for one in those
    ]
    lost = tuple(one for one in members if not one.ok)
    return Shown(overview, drawn(found.figures), _rows(found), tuple(members[:MOST_MEMBERS]), lost)


def drawn(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """The figures as HTML, those of FIRST behind the first; without those that have nothing to draw yet."""
    names = list(figures)
    order = [*names[:1], *(name for name in FIRST if name in names[1:])]
    order += [name for name in names if name not in order]
    return tuple(page.figure(name, *figures[name]) for name in order if _has_data(*figures[name]))


def _has_data(module: Any, numbers: Any) -> bool:
    """Whether anything is to be seen but axes: a trace without points is an entry of the legend."""
    traces = module.draw(numbers).data
    return any(any(one is not None for one in trace.x) for trace in traces if trace.x is not None)


def _rows(found: StudyResults) -> tuple[Averaged, ...]:
    if not found.groups:
        return ()
    table = by_point(found.groups, ("stream", "point"))
    return tuple(
        Averaged(
            STREAM_LABELS[str(row["stream"])],
            str(row["point"]),
            tuple(mean_std_text(row[f"{one}_mean"], row[f"{one}_std"], METRICS[one].digits) for one in COLUMNS),
            int(row["n"]),
            int(row["diverged"]),
        )
        for _, row in table.iterrows()
    )


def _member(stream: str, label: str, record: RunRecord) -> Member:
    ok = record.status == "ok"
    values = (METRICS[one].of(record) for one in COLUMNS)
    cells = tuple(number_text(v if ok else math.nan, METRICS[c].digits) for c, v in zip(COLUMNS, values, strict=True))
    where = ", ".join(
        f"{what} {number + 1}"
        for what, number in (("task", record.diverged_task), ("step", record.diverged_step))
        if number is not None
    )
    status = "ok" if ok else f"diverged{f' in {where}' if where else ''}"
    seconds = number_text(record.seconds, 1)
    return Member(STREAM_LABELS[stream], label, record.seed, cells, status, seconds, record.created, ok)
