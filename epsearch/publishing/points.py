"""What of a study is published, whatever the tool: points or rows, each with the members that its seeds are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS
from epsearch.loop.base import Loop
from epsearch.loop.content import known_as, run_of
from epsearch.loop.search import SearchLoop
from epsearch.loop.table import Row, TableLoop, table_rows
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, Search, Table
from results.ledger.record import RunRecord, content_key
from results.metrics import METRICS, average_accuracy_curve
from results.points import Value, group, point_of, point_text
from search_spaces.space import Parameter, Point
from trainers.cohort import Learner

FINISHED, DROPPED, DIVERGED, OPEN = "finished", "dropped", "diverged", "open"


class Place(NamedTuple):
    """A point of a search, or a row of a table, on one stream; of the same place everything else can change."""

    stream: str
    """Either "cv" or "eval"."""
    label: str
    """The point in words, or the row's name."""
    values: tuple[tuple[str, Value], ...]
    """Hyperparameter -> value; of a table also `row`, which is the label."""

    @property
    def key(self) -> str:
        """A hash that the same place of the same study always has."""
        return content_key({"stream": self.stream, "values": dict(self.values)})[:16]


class Tried(NamedTuple):
    """A place with what is known of it."""

    place: Place
    records: tuple[RunRecord, ...]
    """Its members, by seed."""
    state: str
    """FINISHED; DROPPED by a race, with fewer seeds; DIVERGED, a seed at least; OPEN while seeds are missing."""
    about: Mapping[str, Value]
    """What else is known: round, role."""

    @property
    def key(self) -> str:
        """A hash of the place, its members and its state: with the same one nothing has changed."""
        return content_key({"place": self.place.key, "members": [r.key for r in self.records], "state": self.state})[
            :16
        ]


@dataclass(frozen=True)
class Published:
    """A study as it is published."""

    study: Study
    tried: tuple[Tried, ...]
    """Those with a member at least: of a search its points in the order of their rounds, then the evaluation."""
    stream: str
    """The stream whose scores compare what was tried."""
    parameters: tuple[Parameter, ...]
    """What is searched; of a table what tells its rows apart, as choices."""
    facts: Mapping[str, str]
    """About the study: what it is, how far, its answer."""


class _Kind(NamedTuple):
    """What is particular to one kind of study."""

    tried: Callable[[Any], list[Tried]]
    """Of a loop."""
    parameters: Callable[[Any], tuple[Parameter, ...]]
    """Of a loop."""
    stream: Callable[[Any], str]
    """Of a description."""
    place: Callable[[Any, RunRecord], Place | None]
    """Of a description and a member: where it belongs; None for a member that is not published."""


def published(loop: Loop) -> Published:
    """What of a study is published, as far as it is."""
    study, kind = loop.study, KINDS[loop.study.kind]
    facts = {"kind": study.kind, "dataset": study.dataset, "state": loop.state(), "epsearch": version("epsearch")}
    with suppress(UsageError):  # before the first round is finished there is no answer
        reporting = REPORTS[study.kind]
        facts["answer"] = reporting.answer(reporting.results(loop, {}, None))
    tried = tuple(one for one in kind.tried(loop) if one.records)
    return Published(study, tried, kind.stream(study), kind.parameters(loop), facts | {"options": study.to_yaml()})


def place_of(study: Study, record: RunRecord) -> Place | None:
    """Where a member of a study belongs that has just been trained; None where it is not published."""
    return KINDS[study.kind].place(study, record)


def metrics(records: Sequence[RunRecord]) -> dict[str, float]:
    """Means over members that did not diverge, in the units of tables, and <metric>_std where there are several.

    What is not defined is left out.
    """
    found: dict[str, float] = {}
    for name, metric in METRICS.items():
        values = [value for one in records if np.isfinite(value := metric.of(one))]
        if values:
            found[name] = float(np.mean(values))
        if len(values) > 1:
            found[f"{name}_std"] = float(np.std(values))  # of the population, as everywhere
    return found


def curve(records: Iterable[RunRecord]) -> list[float]:
    """A_k in percent at k = 1…T, mean over members that did not diverge; empty without any."""
    kept = [one.accuracies for one in records if one.status == "ok"]
    return (100 * average_accuracy_curve(np.stack(kept)).mean(axis=0)).tolist() if kept else []


def _place(stream: str, names: Sequence[str], point: Point) -> Place:
    return Place(stream, point_text(names, point), tuple(zip(names, point, strict=True)))


def _tried(place: Place, records: Sequence[RunRecord], wanted: int, about: Mapping[str, Value]) -> Tried:
    """A place that is finished with so many members, each once, by seed."""
    different = tuple({one.key: one for one in sorted(records, key=lambda one: one.seed)}.values())
    lost = any(one.status != "ok" for one in different)
    state = OPEN if len(different) < wanted else DIVERGED if lost else FINISHED
    return Tried(place, different, state, about)


def _points(loop: SearchLoop) -> list[Tried]:
    """Every point on the stream that scores it, then the evaluation, where that is another stream."""
    study, names, seeds = loop.study, loop.study.space.names, len(loop.study.seeds)
    rounds: dict[Point, int] = {}
    for one in loop.rounds():
        rounds |= {point: one.number for point in one.points if point not in rounds}
    searched = group(loop.search_records(), names, rounds)
    asked = {} if loop.evaluating else loop.driver.wanted()
    behind = loop.dropped()
    found = []
    for point, number in rounds.items():
        # A point of a round that is over stays as it is, with however many seeds; one of the open round may get more.
        wanted = max(seeds, len(asked[point])) if point in asked else 1
        tried = _tried(_place(study.score_on, names, point), searched[point], wanted, {"round": number})
        dropped = point in behind and tried.state == FINISHED
        found.append(tried._replace(state=DROPPED) if dropped else tried)
    if loop.best is None or not loop.evaluating or study.score_on == "eval":
        return found
    roles = dict.fromkeys(study.compared, "baseline") | {loop.best.point: "chosen"}
    evaluated = group(loop.evaluation_records(), names, roles)
    return found + [
        _tried(_place("eval", names, point), evaluated[point], len(study.final_seeds), {"role": role})
        for point, role in roles.items()
    ]


def _searched(loop: SearchLoop) -> tuple[Parameter, ...]:
    """What is searched, as wide as any search of the study was, and as the points are that it tried."""
    found = []
    for at, one in enumerate(loop.study.space.parameters):
        before = [each.study.space.parameters[at] for each in loop.earlier]
        values = [point[at] for each in loop.rounds() for point in each.points]
        if one.choices:
            choices = dict.fromkeys(choice for each in (*before, one) for choice in each.choices)
            found.append(replace(one, choices=tuple(dict.fromkeys((*choices, *values)))))
        else:
            ends = [each for other in (*before, one) for each in (other.low, other.high) if each is not None]
            numbers = [*ends, *(float(value) for value in values)]
            log = one.log and min(numbers) > 0
            found.append(replace(one, low=min(numbers), high=max(numbers), log=log, apart=()))
    return tuple(found)


def _point_of(study: Search, record: RunRecord) -> Place:
    """A member that does not use a hyperparameter belongs to every value of it: here, to the baseline's."""
    known = point_of(record, study.space.names)
    point = tuple(other if one is None else one for one, other in zip(known, study.example, strict=True))
    return _place(record.phase, study.space.names, point)


def _named(row: Row) -> Place:
    """Of a comparison: the label names the method and its reading."""
    return Place("eval", row.label, (("row", row.label),))


def _sized(row: Row) -> Place:
    """Of a memory study: rows of one method differ in their memory."""
    memory = row.hyperparameters.memory
    return Place("eval", f"{row.label}, memory = {memory}", (("row", row.label), ("memory", memory)))


def _of_table(place: Callable[[Row], Place]) -> _Kind:
    """A table on the evaluation stream; what was tuned before is not shown by its pages either."""

    def tried(loop: TableLoop) -> list[Tried]:
        rows, seeds = () if loop.tuning else loop.rows, len(loop.study.seeds)
        return [_tried(place(row), loop.records_of(loop.runs(row)), seeds, row.shown()) for row in rows]

    def parameters(loop: TableLoop) -> tuple[Parameter, ...]:
        rows = [dict(place(row).values) for row in loop.rows]
        return tuple(Parameter(name, choices=tuple(dict.fromkeys(row[name] for row in rows))) for name in rows[0])

    def row_of(study: Table, record: RunRecord) -> Place | None:
        if record.phase != "eval":
            return None
        own = _kept(run_of(record).learner)
        found = (row for row in table_rows(study) if _kept(known_as(row.learner(record.seed))) == own)
        return next(map(place, found), None)

    return _Kind(tried, parameters, lambda study: "eval", row_of)


def _kept(learner: Learner) -> dict[str, Any]:
    """What tells rows apart, without what each method has of its own, which may have been tuned."""
    declared = (one.name for one in learner.declared.hyperparameters if not one.per_method)
    return {"method": learner.method} | {name: vars(learner.hyperparameters)[name] for name in declared}


KINDS: dict[str, _Kind] = {
    Search.kind: _Kind(_points, _searched, lambda study: str(study.score_on), _point_of),
    Comparison.kind: _of_table(_named),
    MemoryStudy.kind: _of_table(_sized),
}
