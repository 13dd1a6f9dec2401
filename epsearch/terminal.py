"""What commands print: values in, rich renderables or JSON-able values out."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from epsearch.api import Dataset, Outcome
from epsearch.consoles import facts
from epsearch.doctor import Check
from epsearch.findings.listing import UNKNOWN, Listed
from epsearch.ledger.damage import unused_in_words
from epsearch.loop.base import Loop
from epsearch.preparation.images import Prepared
from epsearch.runners.progress import clock
from results.labels import METRIC_DIGITS, METRIC_UNITS, mean_std_text
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import Comparison, comparison_table, ranking
from results.pages.memory import memory_sheet
from results.pages.memory_numbers import MemoryStudy, memory_table
from results.pages.search import answer, evaluation_table
from results.pages.search_sections import warnings
from results.pages.sheet import Line, Sheet
from results.pages.strategies import strategies_sheet
from results.pages.strategies_numbers import strategies_table
from results.points import setting_text
from results.search import StudyResults
from results.verdict.assessment import trust, trust_as_json
from trainers.streams.images.inspection import Inspection
from trainers.streams.images.sources.base import printable


def outcome(result: Outcome) -> RenderableType:
    """What was found, in words and a table, and where the report lies."""
    effort = result.effort
    done = f"{effort.trained} members trained, {effort.reused} from the ledger, {clock(effort.seconds)}"
    if isinstance(result.results, StudyResults):
        parts = _search(result.results)
        notes = warnings(result.results)
    else:
        table = _table(result.results)
        parts = [
            Printed(table),
            *(Text(f"{number} {note}") for number, note in enumerate(table.footnotes, 1)),
            Text(""),
        ]
        notes = list(result.results.notes)
    parts += [Text(note, style="yellow") for note in notes]
    parts.append(Text.assemble(("report  ", "bold"), str(result.report), f"   ({done})"))
    return Group(*parts)


def outcome_as_json(result: Outcome) -> dict[str, Any]:
    """The same as one JSON object; metrics in the paper's units, missing values null."""
    results = result.results
    found = _search_as_json(results) if isinstance(results, StudyResults) else _table_as_json(results)
    return {
        "name": results.name,
        "dataset": results.dataset,
        **found,
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


def _table(results: Comparison | MemoryStudy) -> Sheet:
    if isinstance(results, Comparison):
        return comparison_sheet(results, comparison_table(results))
    return memory_sheet(results, memory_table(results))


def _table_as_json(results: Comparison | MemoryStudy) -> dict[str, Any]:
    if isinstance(results, MemoryStudy):
        return {"rows": _records(memory_table(results)), "notes": list(results.notes)}
    ranked = ranking(results)
    return {
        "rows": _records(comparison_table(results)),
        "ranking": _records(ranked.table),
        "kendall_tau": ranked.tau if math.isfinite(ranked.tau) else None,
        "notes": list(results.notes),
    }


def _search(results: StudyResults) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(answer(results)), Text("")]
    return [*parts, _evaluation(results), Text("")] if results.evaluation else parts


def _search_as_json(results: StudyResults) -> dict[str, Any]:
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
                "points": [dict(zip(results.parameters, one, strict=True)) for one in found.settings],
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


def side_by_side(found: Sequence[StudyResults], page: Path) -> RenderableType:
    """Several searches, a line each, and where the page lies."""
    return Group(
        Printed(strategies_sheet(found, strategies_table(found))),
        Text(""),
        Text.assemble(("report  ", "bold"), str(page)),
    )


def side_by_side_as_json(found: Sequence[StudyResults], page: Path) -> dict[str, Any]:
    """The same as one JSON object."""
    return {"studies": [{"name": one.name, **_search_as_json(one)} for one in found], "report": str(page)}


def study(loop: Loop) -> RenderableType:
    """Options and state of a study."""
    table = Table(show_header=False, box=None)
    described = {"study": loop.study.name, "command": loop.study.kind, "state": loop.state(), "found": loop.headline()}
    if unused := loop.unused():
        described["damaged"] = unused_in_words(unused)
    for key, value in (described | loop.study.identity()).items():
        table.add_row(Text(key, style="bold"), str(value))
    return table


def study_as_json(loop: Loop) -> dict[str, Any]:
    chosen, score, inert = loop.choice()
    return {
        "name": loop.study.name,
        "command": loop.study.kind,
        "finished": loop.done,
        "stage": loop.stage,
        "damaged": loop.unused(),
        "chosen": chosen,
        "score": score,
        "inert": inert,
        "config": loop.study.shown(),
    }


def study_list(rows: Sequence[Listed]) -> RenderableType:
    """One line a study; and what to do where a study's state is not known."""
    table = Table("study", "command", "dataset", "state", "best", "A_T %", "created", box=None, header_style="bold")
    for row in rows:
        best = "–" if row.chosen is None else setting_text(tuple(row.chosen), tuple(row.chosen.values()))
        best = "none, all are equal" if row.inert else best
        score = "–" if row.score is None else f"{100 * row.score:.2f}"
        table.add_row(row.name, row.command, row.dataset, row.status, best, score, row.created[:19].replace("T", " "))
    if all(row.status != UNKNOWN for row in rows):
        return table
    return Group(table, Text(f"{UNKNOWN} is not known: `epsearch show NAME` finds it, `epsearch db upgrade` keeps it"))


def dataset_list(rows: Sequence[Dataset]) -> RenderableType:
    """One line a dataset."""
    table = Table("dataset", "what it is", "status", "where", box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    return table


def prepared(found: Prepared) -> RenderableType:
    """What has been decoded, and how fast."""
    counts = ", ".join(f"{count:,} {part}" for part, count in found.counts.items())
    rate = f"in {found.seconds:.1f} s ({found.decoded / found.seconds:,.0f} images/s)"
    how = rate if found.decoded else "found in the cache"
    return facts(
        {
            "images": f"{counts}; {found.size} × {found.size} pixels, from {found.where}",
            "decoded": f"{found.cache_bytes / 2**20:,.0f} MiB, {how}",
            "fingerprint": found.fingerprint,
        }
    )


def inspected(found: Inspection) -> RenderableType:
    """A dataset's counts, and what is wrong with it."""
    lines = {"images": f"{sum(found.counts.values()):,} of {found.classes} classes, in {found.where}"}
    for part, count in found.counts.items():
        least, most = found.per_class[part]
        lines[part] = f"{count:,}; {least}–{most} a class" if least < most else f"{count:,}; {least} a class"
    if found.attributes is not None:
        lines["attributes"] = f"{found.attributes} of each class"
    corrupt = [f"{printable(name)} ({found.reasons[name]})" for name in found.corrupt]
    lines["corrupt"] = f"{len(corrupt)}: {', '.join(corrupt)}" if corrupt else "none"
    if found.differences:
        lines["differences"] = "; ".join(found.differences)
    return facts(lines)


def checks(found: Sequence[Check]) -> RenderableType:
    """One line a check, with a mark."""
    marks = {True: ("ok", "green"), False: ("broken", "red"), None: ("note", "yellow")}
    table = Table(show_header=False, box=None)
    for check in found:
        word, style = marks[check.ok]
        table.add_row(Text(word, style=style), check.subject, Text(check.detail))
    return table


def _evaluation(results: StudyResults) -> Table:
    """One line a metric, one column a row of the evaluation table: mean ± std, the paper's printed figures last."""
    rows = evaluation_table(results).to_dict("records")
    table = Table("evaluation", *(row["row"] for row in rows), box=None, header_style="bold")
    for metric, digits in METRIC_DIGITS.items():
        cells = [mean_std_text(row[f"{metric}_mean"], row[f"{metric}_std"], digits) for row in rows]
        table.add_row(_title(metric), *cells)
    return table


def _title(metric: str) -> str:
    return f"{metric} {METRIC_UNITS[metric]}".strip()


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]
