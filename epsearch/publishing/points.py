"""Trials of a study, as every tool gets them: points or rows, each with a member per seed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS
from epsearch.loop.base import Loop
from epsearch.loop.content import known_as, run_of
from epsearch.loop.protocols import ProtocolLoop
from epsearch.loop.search import SearchLoop
from epsearch.loop.table import Row, TableLoop, row_label, table_rows
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search, Table
from results.labels import settings_text
from results.ledger.record import RunRecord, content_key
from results.metrics import METRICS, average_accuracy_curve
from results.points import Value, group, point_of, point_text
from search_spaces.space import Parameter, Point
from trainers.cohort import Learner

FINISHED, DROPPED, DIVERGED, OPEN = "finished", "dropped", "diverged", "open"


class Trial(NamedTuple):
    """A point of a search, or a row of a table, on one stream, with its members."""

    stream: str
    """Either "cv" or "eval"."""
    label: str
    """The point in words, or the row's name."""
    values: tuple[tuple[str, Value], ...]
    """Hyperparameter -> value; of a table also `row`, which is the label."""
    records: tuple[RunRecord, ...] = ()
    """Its members, by seed."""
    state: str = OPEN
    """FINISHED; DROPPED by a race, with fewer seeds; DIVERGED, a seed at least; OPEN while seeds are missing."""
    about: Mapping[str, Value] = {}
    """Round and role."""

    @property
    def key(self) -> str:
        """Hash of stream and values, which identifies the trial within its study."""
        return content_key({"stream": self.stream, "values": dict(self.values)})[:16]

    @property
    def version(self) -> str:
        """Hash of key, members and state, which changes with them."""
        return content_key({"place": self.key, "members": [r.key for r in self.records], "state": self.state})[:16]


@dataclass(frozen=True)
class Publication:
    """A study with its trials."""

    study: Study
    trials: tuple[Trial, ...]
    """Those with at least one member: of a search its points in the order of rounds, then the evaluation."""
    stream: str
    """The stream whose scores compare the trials."""
    parameters: tuple[Parameter, ...]
    """Searched parameters; for a table the columns that tell its rows apart, as choices."""
    facts: Mapping[str, str]
    """Kind, dataset, state, answer, options."""


def publication(loop: Loop) -> Publication:
    """Returns the trials of a study that exist now."""
    study = loop.study
    facts = {"kind": study.kind, "dataset": study.dataset, "state": loop.state(), "epsearch": version("epsearch")}
    with suppress(UsageError):  # before the first round is finished there is no answer
        reporting = REPORTS[study.kind]
        facts["answer"] = reporting.answer(reporting.results(loop, {}, None))
    if (chosen := loop.choice()) is not None:
        facts["chosen"] = settings_text(chosen)  # by epsearch's rule, where tools show the highest mean
    stream, parameters, trials = KINDS[study.kind][0](loop)
    trials = tuple(trial for trial in trials if trial.records)
    return Publication(study, trials, stream, parameters, facts | {"options": study.to_yaml()})


def trial_of(study: Study, record: RunRecord) -> Trial | None:
    """Returns the trial of a member, without records; None for a member that is not published."""
    return KINDS[study.kind][1](study, record)


def metrics(records: Sequence[RunRecord]) -> dict[str, float]:
    """Returns means over members that did not diverge, in the units of CSV files, and <metric>_std of several.

    Undefined metrics are left out.
    """
    means: dict[str, float] = {}
    for name, metric in METRICS.items():
        values = [value for record in records if np.isfinite(value := metric.of(record))]
        if values:
            means[name] = float(np.mean(values))
        if len(values) > 1:
            means[f"{name}_std"] = float(np.std(values, ddof=1))
    return means


def curve(records: Iterable[RunRecord]) -> list[float]:
    """Returns A_k in percent at k = 1…T, mean over members that did not diverge; empty without any."""
    matrices = [record.accuracies for record in records if record.status == "ok"]
    return (100 * average_accuracy_curve(np.stack(matrices)).mean(axis=0)).tolist() if matrices else []


def _fill(trial: Trial, records: Sequence[RunRecord], required: int, about: Mapping[str, Value]) -> Trial:
    """Returns a trial with its members, each once, by seed; it is open with fewer than required."""
    members = tuple({record.key: record for record in sorted(records, key=lambda record: record.unit)}.values())
    diverged = any(record.status != "ok" for record in members)
    state = OPEN if len(members) < required else DIVERGED if diverged else FINISHED
    return trial._replace(records=members, state=state, about=about)


def _at(stream: str, names: Sequence[str], point: Point) -> Trial:
    return Trial(stream, point_text(names, point), tuple(zip(names, point, strict=True)))


def _of_search(loop: SearchLoop) -> tuple[str, tuple[Parameter, ...], list[Trial]]:
    """Returns the trials on the stream that scores points, then those of the evaluation, if on another stream."""
    study, names, seeds = loop.study, loop.study.space.names, len(loop.study.units)
    rounds: dict[Point, int] = {}
    for round in loop.rounds():
        rounds |= {point: round.number for point in round.points if point not in rounds}
    searched = group(loop.search_records(), names, rounds)
    open_round = {} if loop.evaluating else loop.driver.open_seeds()
    dropped = loop.dropped_points()
    trials = []
    for point, number in rounds.items():
        # A point of a finished round keeps its seeds, however many; a point of the open round may get more.
        required = max(seeds, len(open_round[point])) if point in open_round else 1
        trial = _fill(_at(study.scored_on, names, point), searched[point], required, {"round": number})
        trials.append(trial._replace(state=DROPPED) if point in dropped and trial.state == FINISHED else trial)
    if loop.best is not None and loop.evaluating and not study.scores_judge:
        roles = dict.fromkeys(study.compared, "baseline") | {loop.best.point: "chosen"}
        evaluated = group(loop.evaluation_records(), names, roles)
        trials += [
            _fill(_at("eval", names, point), evaluated[point], len(study.final_units), {"role": role})
            for point, role in roles.items()
        ]
    return study.scored_on, _search_space(loop), trials


def _search_space(loop: SearchLoop) -> tuple[Parameter, ...]:
    """Returns the search space, widened to earlier searches of the study and to all points."""
    widened = []
    for at, parameter in enumerate(loop.study.space.parameters):
        versions = [*(earlier.study.space.parameters[at] for earlier in loop.earlier), parameter]
        values = [point[at] for round in loop.rounds() for point in round.points]
        if parameter.choices:
            choices = [choice for version in versions for choice in version.choices]
            widened.append(replace(parameter, choices=tuple(dict.fromkeys((*choices, *values)))))
        else:
            ends = [end for version in versions for end in (version.low, version.high) if end is not None]
            numbers = [*ends, *(float(value) for value in values)]
            log = parameter.log and min(numbers) > 0
            widened.append(replace(parameter, low=min(numbers), high=max(numbers), log=log, apart=()))
    return tuple(widened)


def _of_member(study: Search, record: RunRecord) -> Trial | None:
    """Returns the trial of a member; hyperparameters that it does not use have the baseline's values.

    None for a reference row, which is no point, and for a member on further tasks: it is that of the first ones.
    """
    if record.method in study.reference_rows or record.further:
        return None
    values = zip(point_of(record, study.space.names), study.example, strict=True)
    return _at(record.phase, study.space.names, tuple(usual if value is None else value for value, usual in values))


def _comparison_row(row: Row) -> Trial:
    return Trial("eval", row.label, (("row", row.label),))


def _memory_row(row: Row) -> Trial:
    """Returns a trial with its memory, as rows of one method differ in it."""
    memory = row.hyperparameters.memory
    return Trial("eval", f"{row.label}, memory = {memory}", (("row", row.label), ("memory", memory)))


def _of_table(trial: Callable[[Row], Trial]) -> tuple[Callable[[Any], Any], Callable[[Any, RunRecord], Trial | None]]:
    """Returns the functions of a table on the evaluation stream; runs of its tuning are not published."""

    def of_loop(loop: TableLoop) -> tuple[str, tuple[Parameter, ...], list[Trial]]:
        rows, seeds = () if loop.tuning else loop.rows, len(loop.study.units)
        trials = [_fill(trial(row), loop.records_of(loop.runs(row)), seeds, row.short_values()) for row in rows]
        values = [dict(trial(row).values) for row in loop.rows]
        columns = ((name, tuple(dict.fromkeys(row[name] for row in values))) for name in values[0])
        return "eval", tuple(Parameter(name, choices=choices) for name, choices in columns), trials

    def of_member(study: Table, record: RunRecord) -> Trial | None:
        if record.phase != "eval":
            return None
        free = {"memory"} if getattr(study, "memory_bytes", None) is not None else set()
        tuned = getattr(study, "budget", None) is not None
        identity = _identity(run_of(record).learner, free, tuned)
        rows = (
            row for row in table_rows(study) if _identity(known_as(row.learner(record.seed)), free, tuned) == identity
        )
        values = run_of(record).learner.hyperparameters
        # A title may have a value that was tuned.
        named = (replace(row, label=row_label(row.method, values)) if tuned else row for row in rows)
        return next(map(trial, named), None)

    return of_loop, of_member


def _of_protocols(loop: ProtocolLoop) -> tuple[str, tuple[Parameter, ...], list[Trial]]:
    """Returns a trial a protocol: the members that judge its choices."""
    names, units = loop.study.protocols, len(loop.study.units)
    trials = [
        _fill(Trial("eval", name, (("protocol", name),)), loop.records_of(loop.finals(name)), units, {})
        for name in names
    ]
    return "eval", (Parameter("protocol", choices=names),), trials


def _of_no_trial(study: ProtocolStudy, record: RunRecord) -> None:
    """Returns None: a member may be of several protocols."""


def _identity(learner: Learner, free: Collection[str], tuned: bool) -> dict[str, Any]:
    """Returns method and values that tell rows apart, without a method's own, which may have been tuned.

    free: names of others that the rows do not have yet; tuned: whether all of a learner's own were.
    """
    declared = (
        hyperparameter.name
        for hyperparameter in learner.declared.hyperparameters
        if not hyperparameter.per_method
        and hyperparameter.name not in free
        and not (tuned and hyperparameter.per_learner)
    )
    return {"method": learner.method} | {name: vars(learner.hyperparameters)[name] for name in declared}


# Kind of study -> (of a loop: stream, parameters, trials; of a study and a member: its trial).
KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, RunRecord], Trial | None]]] = {
    Search.kind: (_of_search, _of_member),
    Comparison.kind: _of_table(_comparison_row),
    MemoryStudy.kind: _of_table(_memory_row),
    ProtocolStudy.kind: (_of_protocols, _of_no_trial),
}
