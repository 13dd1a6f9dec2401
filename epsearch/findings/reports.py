"""What the kinds of study do not share once they are trained: what was found, and the pages that say it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from epsearch.findings import tables
from epsearch.findings.evaluated import looks
from epsearch.findings.listing import opened
from epsearch.findings.search import search_results
from epsearch.loop.search import SearchLoop
from epsearch.loop.table import TableLoop
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from results.ledger.retry import Patience
from results.search import SearchResults
from results.table import ComparisonResults, MemoryResults

AnyResults: TypeAlias = SearchResults | ComparisonResults | MemoryResults


class Reporting(NamedTuple):
    """Of one kind of study."""

    results: Callable[[Any, Mapping[str, str], Patience | None], Any]
    """What a loop knows, in the shape that its pages take; facts of the small print; how long to wait for a ledger."""
    write: Callable[[Any, Path], Path]
    """Writes the pages and tables into a folder; the path of the first page."""


def _search(loop: SearchLoop, facts: Mapping[str, str], waiting: Patience | None) -> SearchResults:
    with opened(loop.study.storage, waiting) as store:
        return search_results(loop, facts, looks(loop, store))


def _comparison(loop: TableLoop, facts: Mapping[str, str], waiting: Patience | None) -> ComparisonResults:
    return tables.comparison(loop, facts)


def _memory(loop: TableLoop, facts: Mapping[str, str], waiting: Patience | None) -> MemoryResults:
    return tables.memory_study(loop, facts)


# Pages draw figures, whose imports can wait.
def _write_search(results: SearchResults, folder: Path) -> Path:
    from results.pages.search import write_report

    return write_report(results, folder)


def _write_comparison(results: ComparisonResults, folder: Path) -> Path:
    from results.pages.comparison import write_comparison

    return write_comparison(results, folder)


def _write_memory(results: MemoryResults, folder: Path) -> Path:
    from results.pages.memory import write_memory_study

    return write_memory_study(results, folder)


REPORTS: dict[str, Reporting] = {
    Search.kind: Reporting(_search, _write_search),
    Comparison.kind: Reporting(_comparison, _write_comparison),
    MemoryStudy.kind: Reporting(_memory, _write_memory),
}
