"""Content of a study's page: overview, figures and tables, made once for each computation of its results."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from epsearch.findings.reports import REPORTS
from epsearch.service.results_cache import StudyResults
from results.html import page
from results.labels import MISSING, STREAM_LABELS, number_text
from results.ledger.record import RunRecord
from results.metrics import METRICS
from results.points import by_point

MOST_MEMBERS = 500
"""Members of a table; the files that the page links have all."""
COLUMNS = ("A_T", "F_T", "a_1", "a_t")
"""Metrics of the table of runs, which members of a search have, too."""
FIRST = ("shrinking",)
"""Figures that follow the first one, before all others."""


Row = tuple[Any, ...]


class _Content(NamedTuple):
    """Content of a study's page."""

    overview: str
    """HTML; empty without results."""
    figures: tuple[str, ...]
    """HTML, the most important first."""
    rows: tuple[Row, ...]
    """Members averaged over seeds: point, stream, COLUMNS as mean ± standard deviation, seeds, diverged."""
    members: tuple[Row, ...]
    """Point, stream, seed, COLUMNS, state, seconds, time of storage; at most MOST_MEMBERS."""
    diverged: tuple[Row, ...]
    """All members that diverged; their state has task and step."""
    extension: Mapping[str, str]
    """Options with which the next step extends the search, as the form has them; empty where it is another step."""


_contents: "WeakKeyDictionary[StudyResults, _Content]" = WeakKeyDictionary()


def content(kind: str, results: StudyResults) -> _Content:
    """Returns the content of a study's page; kind: of the study."""
    if (made := _contents.get(results)) is None:
        made = _contents[results] = _make(kind, results)
    return made


def _make(kind: str, results: StudyResults) -> _Content:
    overview = "" if results.results is None or not results.records else REPORTS[kind].overview(results.results)
    members = [
        (_member(str(stream), str(label), record), record.status == "ok")
        for (stream, label), records in results.groups.items()
        for record in records
    ]
    diverged = tuple(row for row, ok in members if not ok)
    listed = tuple(row for row, _ in members[:MOST_MEMBERS])
    said = REPORTS[kind].summary(results.results) if overview else None
    step = "" if said is None else said.next_step
    return _Content(overview, _figures(results.figures), _rows(results), listed, diverged, extension(step))


def extension(command: str) -> dict[str, str]:
    """Returns the options of a command that extends a search, as a form has them; {} for any other.

    >>> extension("epsearch run --extend --name mine --interval 0.2 1"), extension("epsearch resume mine")
    ({'interval': '0.2 1'}, {})
    """
    if not command.startswith("epsearch run --extend "):
        return {}
    parts = (part.partition(" ") for part in command.split(" --")[1:])
    return {name.replace("-", "_"): value for name, _, value in parts if name not in ("extend", "name")}


def _figures(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the figures as HTML, those of FIRST behind the first one; without empty ones."""
    names = list(figures)
    order = [*names[:1], *(name for name in FIRST if name in names[1:])]
    order += [name for name in names if name not in order]
    return tuple(page.figure(name, *figures[name]) for name in order if _has_data(*figures[name]))


def _has_data(module: Any, numbers: Any) -> bool:
    """Returns whether a figure has points, not just axes and a legend."""
    traces = module.draw(numbers).data
    return any(any(x is not None for x in trace.x) for trace in traces if trace.x is not None)


def _rows(results: StudyResults) -> tuple[Row, ...]:
    if not results.groups:
        return ()
    table = by_point(results.groups, ("stream", "point"))
    return tuple(
        (
            str(row["point"]),
            STREAM_LABELS[str(row["stream"])],
            *(METRICS[name].mean_std_text(row[f"{name}_mean"], row[f"{name}_std"]) for name in COLUMNS),
            int(row["n"]),
            int(row["diverged"]) or MISSING,
        )
        for _, row in table.iterrows()
    )


def _member(stream: str, label: str, record: RunRecord) -> Row:
    ok = record.status == "ok"
    values = (METRICS[name].of(record) for name in COLUMNS)
    cells = (METRICS[c].number_text(v if ok else math.nan) for c, v in zip(COLUMNS, values, strict=True))
    place = ", ".join(
        f"{unit} {number + 1}"
        for unit, number in (("task", record.diverged_task), ("step", record.diverged_step))
        if number is not None
    )
    state = "ok" if ok else f"diverged{f' in {place}' if place else ''}"
    return label, STREAM_LABELS[stream], record.unit, *cells, state, number_text(record.seconds, 1), record.created
