"""Reports of the kinds of study: results and pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from epsearch.failures.errors import UsageError
from epsearch.findings.claims import stored_claim
from epsearch.findings.costs import row_costs
from epsearch.findings.facts import full_size, unfinished_notes, unit_notes
from epsearch.findings.protocols import protocol_results
from epsearch.findings.search import search_results
from epsearch.loop.protocols import ProtocolLoop
from epsearch.loop.table import Row, TableLoop
from epsearch.plugins.registration import add_plugins
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search
from results.labels import count_text, method_label, settings_text
from results.ledger.record import JOINT, RunRecord
from results.ledger.retry import RetryPolicy
from results.metrics import last_task_accuracy
from results.points import Point, point_of, point_text, value
from results.protocols import ProtocolResults
from results.search import SearchResults
from results.table import TableResults, TableRow
from search_spaces.published.definition import load_definition
from trainers.spelling import unknown

if TYPE_CHECKING:
    import pandas as pd

    from epsearch.loop.search import SearchLoop
    from results.pages.writing import Figures
    from results.verdict.summary import Summary

UNTUNED = "Every candidate of the tuning lost a seed; trained with the definition's values."

Groups: TypeAlias = dict[tuple[str, str], tuple[RunRecord, ...]]
"""Maps (stream: "cv" or "eval"; point or row in words) to its members, which differ in their seeds."""
AnyResults: TypeAlias = SearchResults | TableResults | ProtocolResults


class Report(NamedTuple):
    """Functions of the report of one kind of study."""

    results: Callable[[Any, Mapping[str, str], RetryPolicy | None], Any]
    """(loop, facts, how long to wait for the ledger) -> results for the pages."""
    records: Callable[[Any], Iterable[RunRecord]]
    """Results -> their members, each once."""
    pages: Callable[[], ModuleType]
    """Returns the module of the pages."""
    writer: str
    """Name of its function that writes them."""
    groups: Callable[[Any], "Groups"]
    """Loop -> its stored members, grouped over seeds."""
    answer: Callable[[Any], str] = lambda results: ""
    """Results -> the answer of a search, or of a row against print, in words; empty for other studies."""

    summary: Callable[[Any], "Summary | None"] = lambda results: None
    """Results -> the answer of a search in a few lines; None for other studies."""

    against_print: Callable[[Any], dict[str, Any] | None] = lambda loop: None
    """Loop -> the answer of the row that a pack prints; None for a study without one."""

    latex_metrics: Callable[[], tuple[str, ...]] = lambda: ()
    """Returns the metrics that the LaTeX table can have; empty for a kind without one."""

    def write(self, results: Any, folder: Path) -> Path:
        """Writes the pages and tables into a folder; returns the path of the first page."""
        with add_plugins(results.config):
            path: Path = getattr(self.pages(), self.writer)(results, folder)
        return path

    def tables(self, results: Any) -> "dict[str, pd.DataFrame]":
        """Returns the tables of the pages by the name of their file, the main table first."""
        with add_plugins(results.config):
            tables: dict[str, pd.DataFrame] = self.pages().tables(results)
        return tables

    def figures(self, results: Any) -> "Figures":
        """Returns module and numbers of the figures of the pages, by name."""
        with add_plugins(results.config):
            figures: Figures = self.pages().figures(results)
        return figures

    def overview(self, results: Any) -> str:
        """Returns the overview of the results, as HTML."""
        with add_plugins(results.config):
            return str(self.pages().overview(results))


def comparison(loop: TableLoop, facts: Mapping[str, str], waiting: RetryPolicy | None = None) -> TableResults:
    """Returns every row with its members; for the arguments see `Report.results`; it never waits for the ledger."""
    study, joint = loop.study, _of_joint_training(loop)
    rows = tuple(
        TableRow(*_row(loop, row, joint), remark=UNTUNED if row.label in loop.untuned else "") for row in loop.rows
    )
    comparable = full_size(study, study.hyperparameters.memory)
    config, costs = study.to_dict(), partial(row_costs, loop)
    claim = stored_claim(loop)
    return TableResults(
        study.name, study.dataset, rows, config, facts, _notes(loop), comparable, costs=costs, claim=claim
    )


def memory_study(loop: TableLoop, facts: Mapping[str, str], waiting: RetryPolicy | None = None) -> TableResults:
    """Returns every method and size with its members.

    For the arguments see `Report.results`; it never waits for the ledger.
    """
    study = loop.study
    rows = tuple(TableRow(*_row(loop, row), row.hyperparameters.memory) for row in loop.rows)
    config, costs = study.to_dict(), partial(row_costs, loop)
    return TableResults(study.name, study.dataset, rows, config, facts, _notes(loop), full_size(study), costs=costs)


def _row(
    loop: TableLoop, row: Row, joint: Mapping[int, float] = MappingProxyType({})
) -> tuple[str, str, Mapping[str, object], tuple[RunRecord, ...]]:
    """Returns label, method, hyperparameters and members of a row; joint: accuracy of joint training by unit."""
    members = loop.records_of(loop.runs(row))
    return (
        row.label,
        row.method,
        row.short_values(),
        tuple(replace(member, joint=joint.get(member.unit)) for member in members),
    )


def _of_joint_training(loop: TableLoop) -> dict[int, float]:
    """Returns the accuracy on the last task of the row of joint training, by unit; empty without such a row."""
    members = (record for row in loop.rows if row.method == JOINT for record in loop.records_of(loop.runs(row)))
    return {member.unit: float(last_task_accuracy(member.accuracies)) for member in members if member.status == "ok"}


def _notes(loop: TableLoop) -> tuple[str, ...]:
    """Returns the cautions that a reader of the figures needs, besides those that the page derives."""
    study = loop.study
    notes = [*unit_notes(study), *unfinished_notes(loop)]
    unnamed, values = study.hyperparameters.epsilon, {row.hyperparameters.get("epsilon") for row in loop.rows}
    if unnamed in values and load_definition(study.dataset).reported_epsilon is None:
        notes.append(f"The paper reports no ε for this dataset; ε = {unnamed:.6g} is used here.")
    return tuple(notes)


# Imported late: pages import pandas, which `epsearch list` does not need.
def _search_pages() -> ModuleType:
    from results.pages.search import report

    return report


def _comparison_pages() -> ModuleType:
    from results.pages import comparison

    return comparison


def _memory_pages() -> ModuleType:
    from results.pages import memory

    return memory


def _protocol_pages() -> ModuleType:
    from results.pages import protocols

    return protocols


def _answer(results: SearchResults) -> str:
    from results.verdict.answer import answer

    return answer(results)


def _reproduction(results: TableResults) -> str:
    from results.verdict.reproduction import sentences

    return " ".join(sentences(results))


def _summary(results: SearchResults) -> "Summary":
    from results.verdict.summary import summary

    return summary(results)


def _records(results: AnyResults) -> Iterable[RunRecord]:
    """Returns the members, each once."""
    return {record.key: record for record in results.records}.values()


def _protocols(loop: ProtocolLoop) -> Groups:
    """Returns the members that are judged, by protocol, then by candidate."""
    groups = {("eval", name): loop.records_of(loop.finals(name)) for name in loop.study.protocols}
    names = loop.study.space.names
    for candidate in loop.study.candidates:
        groups["eval", point_text(names, (candidate,))] = loop.records_of(loop.constants(candidate))
    return {key: members for key, members in groups.items() if members}


def _points(loop: "SearchLoop") -> Groups:
    """Returns the members by point, those of the search first, in the order of their values, then reference rows."""
    names = loop.study.space.names
    by_point: dict[tuple[str, tuple[Any, ...], int], list[RunRecord]] = {}
    for record in loop.records.values():
        if record.method in loop.study.reference_rows:
            continue
        by_point.setdefault((record.phase, point_of(record, names), record.further), []).append(record)
    ordered = sorted(
        by_point, key=lambda key: (key[0], [(isinstance(v, str), v is None, v or 0) for v in key[1]], *key[2:])
    )
    points = {(key[0], _label(names, key[1], by_point[key])): tuple(by_point[key]) for key in ordered}
    return points | {(loop.study.scored_on, method_label(row)): records for row, records in loop.references().items()}


def _label(names: Sequence[str], point: Point, members: Sequence[RunRecord]) -> str:
    """Returns a point in words, with the number of tasks of members that went on to further ones."""
    on = f", {count_text(members[0].tasks, 'task')}" if members[0].further else ""
    return f"{point_text(names, point)}{on}"


def _rows(loop: TableLoop) -> Groups:
    """Returns the members by row, then those of the tuning by candidate."""
    sizes = len({row.label for row in loop.rows}) < len(loop.rows)
    rows = {
        ("eval", f"{row.label}, memory {row.hyperparameters.memory}" if sizes else str(row.label)): loop.records_of(
            loop.runs(row)
        )
        for row in loop.rows
    }
    keys = {record.key for members in rows.values() for record in members}
    tuning: dict[tuple[str, str], list[RunRecord]] = {}
    for record in loop.records.values():
        if record.key not in keys:
            values = {name: value(record, name) for name in ("lr", "strength")}
            candidate = settings_text({name: value for name, value in values.items() if value is not None})
            tuning.setdefault((record.phase, f"{method_label(record.method)}, {candidate}"), []).append(record)
    return {key: members for key, members in (rows | {k: tuple(v) for k, v in tuning.items()}).items() if members}


REPORTS: dict[str, Report] = {
    Search.kind: Report(search_results, _records, _search_pages, "write_report", _points, _answer, _summary),
    Comparison.kind: Report(
        comparison,
        _records,
        _comparison_pages,
        "write_comparison",
        _rows,
        _reproduction,
        against_print=TableLoop.against_print,
        latex_metrics=lambda: _comparison_pages().latex_metrics(),
    ),
    ProtocolStudy.kind: Report(protocol_results, _records, _protocol_pages, "write_protocols", _protocols),
    MemoryStudy.kind: Report(
        memory_study,
        _records,
        _memory_pages,
        "write_memory_study",
        _rows,
        latex_metrics=lambda: _memory_pages().latex_metrics(),
    ),
}


def resolve_latex_metrics(study: Study, names: Sequence[str]) -> tuple[str, ...]:
    """Returns metrics of the LaTeX table of a study by their titles; names: titles, or names of `--add-metrics`.

    Raises UsageError where the table cannot have one of them.
    """
    if not names:
        return ()
    from results.continual_evaluation import BY_NAME

    titles = tuple(BY_NAME.get(name, name) for name in names)
    with add_plugins(study.to_dict()):
        allowed = REPORTS[study.kind].latex_metrics()
    if not allowed:
        raise UsageError(
            f"--metrics is for the LaTeX table of a comparison or memory study, got a study of `epsearch {study.kind}`"
        )
    for title in titles:
        if title not in allowed:
            raise UsageError(unknown("metric", title, allowed))
    return titles
