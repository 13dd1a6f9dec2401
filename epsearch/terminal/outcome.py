"""What came of a training, as commands print it: values in, rich renderables or JSON-able values out."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from epsearch.api import Outcome
from epsearch.findings.notebook import SideBySide
from epsearch.plugins.adding import added
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from epsearch.terminal.consoles import Fitting, table
from results.labels import count_text, duration_text, mean_std_text
from results.metrics import METRICS, undefined
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import comparison_table, ranking
from results.pages.memory import memory_sheet, memory_table
from results.pages.search.sections import warnings
from results.pages.sheet import Line, Sheet
from results.pages.side_by_side import strategies_sheet
from results.search import SearchResults
from results.search_tables import evaluation_table
from results.table import TableResults
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json


class Shown(NamedTuple):
    """How the results of one kind of study are shown: the register SHOWN has one for each kind.

    All take the results that `findings.reports` makes of the kind.
    """

    parts: Callable[[Any], list[RenderableType]]
    """In words and tables."""
    as_json: Callable[[Any], dict[str, Any]]
    """The same, JSON-able."""
    notes: Callable[[Any], Sequence[str]] = lambda results: results.notes
    """What is not to be missed."""


def shown(result: Outcome) -> RenderableType:
    """What was found, in words and a table, and where the report lies."""
    effort = result.effort
    trained = f"{count_text(effort.trained, 'member')} trained, {effort.reused} from the ledger"
    kind = SHOWN[result.study.kind]
    notes = (Text(note, style="yellow") for note in kind.notes(result.results))
    with added(result.results.config):
        parts = kind.parts(result.results)
    return Group(*parts, *notes, _report(result.report, f"   ({trained}, {duration_text(effort.seconds)})"))


def as_json(result: Outcome) -> dict[str, Any]:
    """The same as one JSON object; metrics in the paper's units, missing values null."""
    results, kind = result.results, SHOWN[result.study.kind]
    with added(results.config):
        told = kind.as_json(results)
    return {
        "name": results.name,
        "dataset": results.dataset,
        **told,
        "notes": list(kind.notes(results)),
        "config": results.config,
        "report": str(result.report),
        "effort": vars(result.effort),
    }


LOOKS = {"": "", "soft": "dim", "apart": "yellow"}


def printed(sheet: Sheet) -> Fitting:
    """A printed table for a terminal; the lines of a cell below each other."""
    titles = [f"{title} {unit}".strip() for title, unit in sheet.header]
    rows = [[Text("\n").join(map(_line, cell)) for cell in row] for row in sheet.rows]
    return Fitting(titles, rows, "all of them stand in the report", folded=True)


def _line(line: Line) -> Text:
    return Text("".join((line.text, *(f" {mark}" for mark in line.marks))), style=LOOKS[line.look])


def _table(sheet: Sheet) -> list[RenderableType]:
    """A table with its footnotes below."""
    return [printed(sheet), *(Text(f"{number} {note}") for number, note in enumerate(sheet.footnotes, 1)), Text("")]


def _report(page: Path, more: str = "") -> Text:
    """Where the report lies."""
    return Text.assemble(("report  ", "bold"), str(page), more)


def _comparison_as_json(results: TableResults) -> dict[str, Any]:
    """The table of rows, their ranking beside the printed one, and how well both agree: Kendall's τ, or null.

    There is none below two methods that are printed, too.
    """
    ranked, tau = ranking(results)
    return {
        "rows": _records(comparison_table(results)),
        "ranking": _records(ranked),
        "kendall_tau": tau if math.isfinite(tau) else None,
    }


def _search(results: SearchResults) -> list[RenderableType]:
    """The answer in a sentence or two, then the evaluation, where it has begun."""
    parts: list[RenderableType] = [Text(answer(results)), Text("")]
    if not results.evaluation:
        return parts
    return [*parts, _evaluation(results), *map(Text, undefined(results.evaluation)), Text("")]


def _search_as_json(results: SearchResults) -> dict[str, Any]:
    """Choice, answer, rounds, evaluation, and what the verdict rests on.

    Scores of points are mean A_T in [0, 1]; the evaluation has metrics in the paper's units.
    """
    return {
        "method": results.method,
        "score_on": results.score_on,
        "objective": results.objective,
        "strategy": results.strategy,
        "chosen": dict(zip(results.parameters, results.chosen, strict=True)),
        "chosen_score": results.chosen_score,
        "choice": None if results.choice is None else results.choice.as_json(results.parameters),
        "answer": answer(results),
        "rounds": [
            {
                "number": found.number,
                "interval": found.span,
                "points": [dict(zip(results.parameters, one, strict=True)) for one in found.points],
                "scores": found.scores,
                "note": found.note,
                "named": found.named,
            }
            for found in results.rounds
        ],
        "evaluation": _records(evaluation_table(results)),
        "trust": trust_as_json(trust(results)),
        "race": None if results.race is None else results.race._asdict(),
        "moved_starts": list(results.moved),
        "seal": results.disjointness,
        "looks": [look.as_json() for look in results.looks],
    }


def side_by_side(found: SideBySide, page: Path) -> RenderableType:
    """Several searches, a line each, and where the page that compares them lies."""
    with found.objective():
        sheet = strategies_sheet(found.searches, found.table)
    return Group(printed(sheet), Text(""), _report(page))


def side_by_side_as_json(found: SideBySide, page: Path) -> dict[str, Any]:
    """The same as one JSON object."""
    with found.objective():
        studies = [{"name": one.name, **_search_as_json(one), "notes": warnings(one)} for one in found.searches]
    return {"studies": studies, "report": str(page)}


def _evaluation(results: SearchResults) -> Table:
    """One line a metric, one column a row of the evaluation table: mean ± std, the paper's printed figures last."""
    rows = evaluation_table(results).to_dict("records")
    lines = (
        (
            f"{metric} {declared.unit}".strip(),
            *(mean_std_text(row[f"{metric}_mean"], row[f"{metric}_std"], declared.digits) for row in rows),
        )
        for metric, declared in METRICS.items()
    )
    return table(lines, "evaluation", *(row["row"] for row in rows))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object a row, null for what is missing."""
    # JSON knows no NaN, and a column of floats takes no None.
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


SHOWN: dict[str, Shown] = {
    Search.kind: Shown(_search, _search_as_json, warnings),
    Comparison.kind: Shown(
        lambda results: _table(comparison_sheet(results, comparison_table(results))), _comparison_as_json
    ),
    MemoryStudy.kind: Shown(
        lambda results: _table(memory_sheet(results, memory_table(results))),
        lambda results: {"rows": _records(memory_table(results))},
    ),
}
