"""Results of a study, as rich renderables or JSON-able values."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.api import Outcome
from epsearch.findings.notebook import SideBySide, StoredStudy
from epsearch.plugins.registration import add_plugins
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search
from epsearch.terminal import brief
from epsearch.terminal.consoles import line, table
from epsearch.terminal.sheets import sheet_table
from results.labels import count_text, duration_text
from results.metrics import METRICS, undefined_metrics
from results.pages.cells import left_out_text
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import comparison_table, ranking
from results.pages.memory import memory_sheet, memory_table
from results.pages.protocols import protocol_sheet
from results.pages.search.sections import warnings
from results.pages.sheet import Sheet
from results.pages.side_by_side import strategies_sheet
from results.paper.differences import spread_name
from results.protocol_tables import choice_table, constant_table, protocol_table
from results.protocols import ProtocolResults
from results.search import SearchResults
from results.search_tables import evaluation_table, leaves_out, reference_table
from results.table import TableResults
from results.verdict import along_tasks, claim, forecast, protocols
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json
from results.verdict.orders import of_rows
from results.verdict.reproduction import reproduction, sentences

PROGRAM = "epsearch"


def renderable(result: Outcome, place: str = "", program: str = PROGRAM) -> RenderableType:
    """Returns the answer of a study in a few lines: answer, table, trust, next step, and the path of its report.

    place: options of the ledger, for the commands in it; program: how they begin.
    """
    effort, (in_brief, _, _, notes) = result.effort, VIEWS[result.study.kind]
    with add_plugins(result.results.config):
        lines, below = in_brief(result.results)
        reasons = len(notes(result.results))
    name = result.study.name
    cautions = f" ({count_text(reasons, 'caution')})" if reasons else ""
    step = below.pop("next")
    after = {
        **below,
        "why": f"{program} show {name}{place} --why{cautions}",
        "next": f"{program}{step.removeprefix(PROGRAM)}{place}" if step.startswith(f"{PROGRAM} ") else step,
        "report": str(result.report),
        "work": f"{count_text(effort.trained, 'member')} trained, {effort.reused} from the ledger, "
        f"{duration_text(effort.seconds)}",
    }
    return Group(*lines, *(line(name, text) for name, text in after.items()))


def reasons(study: StoredStudy) -> RenderableType:
    """Returns all that is known of a study's answer: its reasons in words, every metric, cautions."""
    _, whole, _, notes = VIEWS[study.study.kind]
    with add_plugins(study.results.config):
        return Group(
            *whole(study.results), *(Text(f"caution: {note}", style="yellow") for note in notes(study.results))
        )


def reasons_as_json(study: StoredStudy) -> dict[str, Any]:
    """Returns the same as JSON: the answer and the data of a kind of study, with its cautions."""
    _, _, data, notes = VIEWS[study.study.kind]
    with add_plugins(study.results.config):
        return {"name": study.study.name, **data(study.results), "notes": list(notes(study.results))}


def as_json(result: Outcome) -> dict[str, Any]:
    """Returns the same as JSON; metrics in the paper's units, missing values null."""
    results, (_, _, data, notes) = result.results, VIEWS[result.study.kind]
    with add_plugins(results.config):
        answer_of_kind = data(results)
    return {
        "name": results.name,
        "dataset": results.dataset,
        **answer_of_kind,
        "notes": list(notes(results)),
        "config": results.config,
        "report": str(result.report),
        "effort": vars(result.effort),
    }


def _table(sheet: Sheet) -> list[RenderableType]:
    """Returns a table with its footnotes below, and the first remarks: what a cell has, and which rows there are."""
    notes = (*(f"{number} {note}" for number, note in enumerate(sheet.footnotes, 1)), *sheet.remarks[:2])
    return [sheet_table(sheet), *map(Text, notes), Text("")]


def _orders(results: TableResults) -> list[RenderableType]:
    """Returns the shares of the variance, a line for each row that has several orders."""
    return [Text(text) for text in of_rows(results)]


def _report(page: Path, more: str = "") -> Text:
    """Returns the path of the report, in a line."""
    return Text.assemble(("report  ", "bold"), str(page), more)


def _comparison(results: TableResults) -> list[RenderableType]:
    """Returns the answers against print and to a claim, if any, the table, and the shares of the variance."""
    lines = (*(sentences(results) if reproduction(results) else ()), *_claim(results))
    answers = [*map(Text, lines), Text("")] if lines else []
    return [*answers, *_table(comparison_sheet(results, comparison_table(results))), *_orders(results)]


def _comparison_as_json(results: TableResults) -> dict[str, Any]:
    """Returns rows, their ranking beside the paper's, and Kendall's τ of both, or null below two common methods."""
    ranked, tau = ranking(results)
    return {
        "rows": _records(comparison_table(results)),
        "orders": list(of_rows(results)),
        "ranking": _records(ranked),
        "kendall_tau": tau if math.isfinite(tau) else None,
        **_claim_as_json(results),
        **({} if (comparison := reproduction(results)) is None else {"reproduction": comparison}),
    }


def _search(results: SearchResults) -> list[RenderableType]:
    """Returns the answer in words, then the evaluation, if any."""
    said = (answer(results), results.seen, *_claim(results))
    parts: list[RenderableType] = [*map(Text, filter(None, said)), Text("")]
    if not results.evaluation:
        return parts
    remarks = [
        *undefined_metrics(results.evaluation),
        *([left_out_text(results.name)] if leaves_out(results) else []),
    ]
    return [*parts, *_evaluation(results), *map(Text, remarks), Text("")]


def _search_as_json(results: SearchResults) -> dict[str, Any]:
    """Returns choice, answer, rounds, evaluation, and the data of the verdict.

    Scores of points are mean A_T in [0, 1] on the tasks of the search, and `predicted` what is predicted of it for as
    many tasks as the evaluation has, where that chooses; the evaluation has metrics in the paper's units.
    """
    return {
        "method": results.method,
        "score_on": results.score_on,
        "sees": results.sees,
        "peeks": None if results.evidence is None else results.evidence.peeks,
        "objective": results.objective,
        "strategy": results.strategy,
        "chosen": dict(zip(results.parameters, results.chosen, strict=True)),
        "chosen_score": results.chosen_score,
        **({"chosen_predicted": results.stages[-1].predicted[0]} if results.stages else {}),
        "choice": None if results.choice is None else results.choice.as_json(results.parameters),
        "answer": answer(results),
        "rounds": [
            {
                "number": search_round.number,
                "interval": search_round.span,
                "points": [dict(zip(results.parameters, point, strict=True)) for point in search_round.points],
                "scores": search_round.scores,
                **({"predicted": search_round.predicted} if search_round.predicted else {}),
                "note": search_round.note,
                "named": search_round.named,
            }
            for search_round in results.rounds
        ],
        "evaluation": _records(evaluation_table(results)),
        "references": _records(reference_table(results)),
        "trust": trust_as_json(trust(results)),
        "forecast": forecast.as_json(results),
        "stages": along_tasks.table(results),
        "race": None if results.race is None else results.race._asdict(),
        "moved_starts": list(results.perturbed),
        "seal": results.disjointness,
        "looks": [choice.as_json() for choice in results.evaluated_choices],
        **_claim_as_json(results),
    }


def _claim(results: SearchResults | TableResults) -> tuple[str, ...]:
    """Returns the sentences about the claim; none without one."""
    return () if results.claim is None else claim.sentences(results.claim)


def _claim_as_json(results: SearchResults | TableResults) -> dict[str, Any]:
    """Returns the claim with its answer; nothing without one."""
    return {} if results.claim is None else {"claim": claim.as_json(results.claim)}


def side_by_side(searches: SideBySide, page: Path) -> RenderableType:
    """Returns a line per search, and the path of the page that compares them."""
    with searches.objective():
        sheet = strategies_sheet(searches.searches, searches.table)
    return Group(sheet_table(sheet), Text(""), _report(page))


def side_by_side_as_json(searches: SideBySide, page: Path) -> dict[str, Any]:
    """Returns the same as JSON."""
    with searches.objective():
        studies = [
            {"name": search.name, **_search_as_json(search), "notes": warnings(search)} for search in searches.searches
        ]
    return {"studies": studies, "report": str(page)}


def _evaluation(results: SearchResults) -> list[RenderableType]:
    """Returns a line per metric, mean ± std, with the paper's figures last; below them what ± is."""
    rows = evaluation_table(results).to_dict("records")
    printed = any(row["source"] == "paper" for row in rows)
    lines = (
        (
            f"{metric} {declared.display_unit}".strip(),
            *(declared.mean_std_text(row[f"{metric}_mean"], row[f"{metric}_std"]) for row in rows),
        )
        for metric, declared in METRICS.items()
    )
    evaluated = table(lines, "evaluation", *(row["row"] for row in rows))
    return [evaluated, *([Text(f"mean ± {spread_name(printed)}")] if printed else [])]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns an object per row, with null for missing values."""
    # JSON has no NaN, and a column of floats takes no None.
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _protocols(results: ProtocolResults) -> list[RenderableType]:
    """Returns the answer in sentences, the table, and what each protocol may see."""
    sights = [Text(f"{row.title}: {protocols.sight(row)}") for row in results.rows]
    sheet = protocol_sheet(results, protocol_table(results))
    return [*map(Text, protocols.answer(results)), Text(""), *_table(sheet), *sights, Text("")]


def _protocols_as_json(results: ProtocolResults) -> dict[str, Any]:
    """Returns the answer, and rows of protocols, of their choices and of the candidates, as in CSV files."""
    return {
        "method": results.method,
        "parameter": results.parameter,
        "answer": " ".join(protocols.answer(results)),
        "protocols": _records(protocol_table(results)),
        "sights": {row.name: protocols.sight(row) for row in results.rows},
        "choices": _records(choice_table(results)),
        "constants": _records(constant_table(results)),
    }


def _notes(results: TableResults | ProtocolResults) -> Sequence[str]:
    return results.notes


# Kind of study -> functions of its results: the answer in a few lines, all in words and tables, JSON, cautions.
VIEWS: dict[
    str,
    tuple[
        Callable[[Any], brief.Brief],
        Callable[[Any], list[RenderableType]],
        Callable[[Any], dict[str, Any]],
        Callable[[Any], Sequence[str]],
    ],
] = {
    Search.kind: (brief.search, _search, _search_as_json, warnings),
    Comparison.kind: (
        brief.comparison,
        _comparison,
        _comparison_as_json,
        _notes,
    ),
    MemoryStudy.kind: (
        brief.memory,
        lambda results: [*_table(memory_sheet(results, memory_table(results))), *_orders(results)],
        lambda results: {"rows": _records(memory_table(results)), "orders": list(of_rows(results))},
        _notes,
    ),
    ProtocolStudy.kind: (brief.protocols, _protocols, _protocols_as_json, _notes),
}
