"""What came of a training, as commands print it: values in, rich renderables or JSON-able values out."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from epsearch.api import Outcome
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from results.labels import duration_text, mean_std_text
from results.metrics import METRICS
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import comparison_table, ranking
from results.pages.memory import memory_sheet, memory_table
from results.pages.search_sections import warnings
from results.pages.sheet import Line, Sheet
from results.pages.side_by_side import strategies_sheet
from results.pages.side_by_side_numbers import strategies_table
from results.search import SearchResults
from results.search_tables import evaluation_table
from results.table import ComparisonResults, MemoryResults, TableResults
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json


class Shown(NamedTuple):
    """How the results of one kind of study are shown."""

    parts: Callable[[Any], list[RenderableType]]
    """In words and tables."""
    notes: Callable[[Any], list[str]]
    """What is not to be missed."""
    as_json: Callable[[Any], dict[str, Any]]


def shown(result: Outcome) -> RenderableType:
    """What was found, in words and a table, and where the report lies."""
    effort = result.effort
    done = f"{effort.trained} members trained, {effort.reused} from the ledger, {duration_text(effort.seconds)}"
    kind = SHOWN[result.study.kind]
    parts = [*kind.parts(result.results), *(Text(note, style="yellow") for note in kind.notes(result.results))]
    parts.append(Text.assemble(("report  ", "bold"), str(result.report), f"   ({done})"))
    return Group(*parts)


def as_json(result: Outcome) -> dict[str, Any]:
    """The same as one JSON object; metrics in the paper's units, missing values null."""
    results = result.results
    return {
        "name": results.name,
        "dataset": results.dataset,
        **SHOWN[result.study.kind].as_json(results),
        "config": results.config,
        "report": str(result.report),
        "effort": vars(result.effort),
    }


class Printed:
    """A printed table on a terminal: as many columns as there is room for; the lines of a cell below each other."""

    LOOKS: ClassVar = {"": "", "soft": "dim", "apart": "yellow"}

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._columns = [[row[number] for row in sheet.rows] for number in range(len(sheet.header))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        room, kept = options.max_width, []
        for (title, unit), cells in zip(self._sheet.header, self._columns, strict=True):
            width = max(len(f"{title} {unit}"), *(len(self._line(line)) for cell in cells for line in cell)) + 2
            if room < width:
                break
            room -= width
            kept.append(cells)
            shown.add_column(f"{title} {unit}".strip(), justify="left" if len(kept) == 1 else "right", no_wrap=True)
        for row in zip(*kept, strict=True):
            shown.add_row(*(Text("\n").join(self._line(line) for line in cell) for cell in row))
        yield shown
        if left := [title for title, _ in self._sheet.header[len(kept) :]]:
            yield Text(f"no room for {', '.join(left)}: all of them stand in the report", style="dim")

    def _line(self, line: Line) -> Text:
        return Text("".join((line.text, *(f" {mark}" for mark in line.marks))), style=self.LOOKS[line.look])


def _table(table: Sheet) -> list[RenderableType]:
    footnotes = (Text(f"{number} {note}") for number, note in enumerate(table.footnotes, 1))
    return [Printed(table), *footnotes, Text("")]


def _comparison(results: ComparisonResults) -> list[RenderableType]:
    return _table(comparison_sheet(results, comparison_table(results)))


def _comparison_as_json(results: ComparisonResults) -> dict[str, Any]:
    ranked = ranking(results)
    return {
        "rows": _records(comparison_table(results)),
        "ranking": _records(ranked.table),
        "kendall_tau": ranked.tau if math.isfinite(ranked.tau) else None,
        "notes": list(results.notes),
    }


def _memory(results: MemoryResults) -> list[RenderableType]:
    return _table(memory_sheet(results, memory_table(results)))


def _memory_as_json(results: MemoryResults) -> dict[str, Any]:
    return {"rows": _records(memory_table(results)), "notes": list(results.notes)}


def _notes(results: TableResults[Any]) -> list[str]:
    return list(results.notes)


def _search(results: SearchResults) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(answer(results)), Text("")]
    return [*parts, _evaluation(results), Text("")] if results.evaluation else parts


def _search_as_json(results: SearchResults) -> dict[str, Any]:
    return {
        "method": results.method,
        "score_on": results.score_on,
        "strategy": results.strategy,
        "chosen": dict(zip(results.parameters, results.chosen, strict=True)),
        "chosen_score": results.chosen_score,
        "answer": answer(results),
        "rounds": [
            {
                "number": found.number,
                "interval": found.span,
                "points": [dict(zip(results.parameters, one, strict=True)) for one in found.points],
                "scores": found.scores,
                "note": found.note,
            }
            for found in results.rounds
        ],
        "evaluation": _records(evaluation_table(results)),
        "trust": trust_as_json(trust(results)),
        "race": None if results.race is None else results.race._asdict(),
        "seal": results.seal,
        "looks": [look._asdict() for look in results.looks],
        "notes": warnings(results),
    }


def side_by_side(found: Sequence[SearchResults], page: Path) -> RenderableType:
    """Several searches, a line each, and where the page lies."""
    return Group(
        Printed(strategies_sheet(found, strategies_table(found))),
        Text(""),
        Text.assemble(("report  ", "bold"), str(page)),
    )


def side_by_side_as_json(found: Sequence[SearchResults], page: Path) -> dict[str, Any]:
    """The same as one JSON object."""
    return {"studies": [{"name": one.name, **_search_as_json(one)} for one in found], "report": str(page)}


def _evaluation(results: SearchResults) -> Table:
    """One line a metric, one column a row of the evaluation table: mean ± std, the paper's printed figures last."""
    rows = evaluation_table(results).to_dict("records")
    table = Table("evaluation", *(row["row"] for row in rows), box=None, header_style="bold")
    for metric, declared in METRICS.items():
        cells = [mean_std_text(row[f"{metric}_mean"], row[f"{metric}_std"], declared.digits) for row in rows]
        table.add_row(_title(metric), *cells)
    return table


def _title(metric: str) -> str:
    return f"{metric} {METRICS[metric].unit}".strip()


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    # JSON knows no NaN, and a column of floats takes no None.
    rows = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


SHOWN: dict[str, Shown] = {
    Search.kind: Shown(_search, warnings, _search_as_json),
    Comparison.kind: Shown(_comparison, _notes, _comparison_as_json),
    MemoryStudy.kind: Shown(_memory, _notes, _memory_as_json),
}
