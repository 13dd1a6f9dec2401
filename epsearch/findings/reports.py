"""What the kinds of study do not share once they are trained: what was found, and the pages that say it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from epsearch.findings.facts import unfinished
from epsearch.findings.search import search_results
from epsearch.loop.table import Row, TableLoop
from epsearch.plugins.registration import added
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from results.labels import method_label, settings_text
from results.ledger.record import RunRecord
from results.ledger.retry import Patience
from results.points import Point, point_of, point_text, value
from results.search import SearchResults
from results.table import TableResults, TableRow
from search_spaces.published.definition import load_definition

if TYPE_CHECKING:
    import pandas as pd

    from epsearch.loop.search import SearchLoop
    from results.pages.writing import Figures

UNTUNED = "Every candidate of the tuning lost a seed; trained with the definition's values."

Groups: TypeAlias = dict[Point, tuple[RunRecord, ...]]
"""(stream: "cv" or "eval"; the point or row in words) -> its members, which differ in their seeds."""
AnyResults: TypeAlias = SearchResults | TableResults


class Reporting(NamedTuple):
    """Of one kind of study."""

    results: Callable[[Any, Mapping[str, str], Patience | None], Any]
    """What a loop knows, in the shape that its pages take; facts of the small print; how long to wait for a ledger."""
    records: Callable[[Any], Iterable[RunRecord]]
    """The members of what was found, each once."""
    pages: Callable[[], ModuleType]
    """The module of its pages."""
    writer: str
    """The name of its function that writes them."""
    groups: Callable[[Any], "Groups"]
    """The members of a loop that are in the ledger, those that differ in their seeds alone together."""
    answer: Callable[[Any], str] = lambda results: ""
    """What was found in a sentence or two; "" where nothing is searched."""

    def write(self, results: Any, folder: Path) -> Path:
        """Writes the pages and tables into a folder; the path of the first page."""
        with added(results.config):
            path: Path = getattr(self.pages(), self.writer)(results, folder)
        return path

    def tables(self, results: Any) -> "dict[str, pd.DataFrame]":
        """Every table of the pages by the name of its file, the main one first."""
        with added(results.config):
            found: dict[str, pd.DataFrame] = self.pages().tables(results)
        return found

    def figures(self, results: Any) -> "Figures":
        """Every figure of the pages by its name: its module, and its numbers."""
        with added(results.config):
            found: Figures = self.pages().figures(results)
        return found

    def overview(self, results: Any) -> str:
        """What a reader sees first of the results, as HTML."""
        with added(results.config):
            return str(self.pages().overview(results))


def comparison(loop: TableLoop, facts: Mapping[str, str], waiting: Patience | None = None) -> TableResults:
    """Every row with its members; arguments as of `Reporting.results`, no ledger is waited for."""
    study = loop.study
    rows = tuple(
        TableRow(*_trained(loop, row), remark=UNTUNED if row.label in loop.untuned else "") for row in loop.rows
    )
    sizes = study.hyperparameters.memory == load_definition(study.dataset).memory
    return TableResults(
        study.name, study.dataset, rows, study.shown(), facts, _notes(loop), comparable=sizes and _full_size(loop)
    )


def memory_study(loop: TableLoop, facts: Mapping[str, str], waiting: Patience | None = None) -> TableResults:
    """Every method and size with its members; arguments as of `Reporting.results`, no ledger is waited for."""
    study = loop.study
    rows = tuple(TableRow(*_trained(loop, row), row.hyperparameters.memory) for row in loop.rows)
    return TableResults(study.name, study.dataset, rows, study.shown(), facts, _notes(loop), _full_size(loop))


def _trained(loop: TableLoop, row: Row) -> tuple[str, str, Mapping[str, object], tuple[RunRecord, ...]]:
    """Label, method, shown hyperparameters and members of a row, as every kind of row begins."""
    return row.label, row.method, row.shown(), loop.records_of(loop.runs(row))


def _full_size(loop: TableLoop) -> bool:
    """Whether tasks, examples and batches are the paper's, so that its printed rows are a yardstick.

    Another reading of a method may still be set beside them: which one made them is a question that this answers.
    """
    study, definition = loop.study, load_definition(loop.study.dataset)
    return study.examples_per_task is None and (
        (study.tasks, study.cv_tasks, study.hyperparameters.batch_size, study.hyperparameters.memory_batch)
        == (definition.tasks, definition.cv_tasks, definition.batch_size, definition.memory_batch)
        and (study.classes_per_task or definition.classes, study.image_size)
        == (definition.classes, definition.image_size)
        and (study.network, study.pretrained) == (definition.network, definition.pretrained)
    )


def _notes(loop: TableLoop) -> tuple[str, ...]:
    """What a reader must know to judge the figures, besides what the page sees by itself."""
    study, notes = loop.study, unfinished(loop)
    if "soft_agem" in study.methods and load_definition(study.dataset).reported_epsilon is None:
        notes.append(f"The paper reports no ε for this dataset; ε = {study.hyperparameters.epsilon:.6g} is used here.")
    return tuple(notes)


# Pages bring pandas along, which `epsearch list` can do without.
def _search_pages() -> ModuleType:
    from results.pages.search import report

    return report


def _comparison_pages() -> ModuleType:
    from results.pages import comparison

    return comparison


def _memory_pages() -> ModuleType:
    from results.pages import memory

    return memory


def _answer(results: SearchResults) -> str:
    from results.verdict.answer import answer

    return answer(results)


def _of_search(results: SearchResults) -> Iterable[RunRecord]:
    # With --score-on eval the members of the evaluation are also members of the search.
    return {record.key: record for record in (*results.search, *results.evaluation)}.values()


def _of_table(results: TableResults) -> Iterable[RunRecord]:
    return {record.key: record for record in results.records}.values()


def _points(loop: "SearchLoop") -> Groups:
    """Points, those of the search first, each in the order of its values."""
    names = loop.study.space.names
    by_point: dict[tuple[str, tuple[Any, ...]], list[RunRecord]] = {}
    for record in loop.records.values():
        by_point.setdefault((record.phase, point_of(record, names)), []).append(record)
    ordered = sorted(by_point, key=lambda key: (key[0], [(isinstance(v, str), v is None, v or 0) for v in key[1]]))
    return {(phase, point_text(names, point)): tuple(by_point[phase, point]) for phase, point in ordered}


def _rows(loop: TableLoop) -> Groups:
    """Rows, then what was trained to tune them."""
    found = {("eval", ", ".join(map(str, _named(loop, row)))): loop.records_of(loop.runs(row)) for row in loop.rows}
    known = {record.key for members in found.values() for record in members}
    tuning: dict[tuple[str, str], list[RunRecord]] = {}
    for record in loop.records.values():
        if record.key not in known:
            values = {name: value(record, name) for name in ("lr", "strength")}
            chosen = settings_text({name: one for name, one in values.items() if one is not None})
            tuning.setdefault((record.phase, f"{method_label(record.method)}, {chosen}"), []).append(record)
    return {key: members for key, members in (found | {k: tuple(v) for k, v in tuning.items()}).items() if members}


def _named(loop: TableLoop, row: Row) -> tuple[object, ...]:
    several = len({one.label for one in loop.rows}) < len(loop.rows)
    return (row.label, f"memory {row.hyperparameters.memory}") if several else (row.label,)


REPORTS: dict[str, Reporting] = {
    Search.kind: Reporting(search_results, _of_search, _search_pages, "write_report", _points, _answer),
    Comparison.kind: Reporting(comparison, _of_table, _comparison_pages, "write_comparison", _rows),
    MemoryStudy.kind: Reporting(memory_study, _of_table, _memory_pages, "write_memory_study", _rows),
}
