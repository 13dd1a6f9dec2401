"""What commands print: values in, rich renderables or JSON-able values out."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from epsearch.evaluate import StudyLoop
from epsearch.machine import Check
from epsearch.progress import clock
from epsearch.studies import Dataset, Listed, Outcome
from results.labels import METRIC_DIGITS, METRIC_UNITS, epsilon_text, mean_std_text
from results.report import answer, evaluation_table
from results.sections import warnings


def outcome(result: Outcome) -> RenderableType:
    """The answer in words, the evaluation table, and where the report lies."""
    effort = result.effort
    done = f"{effort.trained} members trained, {effort.reused} from the ledger, {clock(effort.seconds)}"
    parts: list[RenderableType] = [Text(answer(result.results)), Text("")]
    if result.results.evaluation:
        parts += [_evaluation(result), Text("")]
    parts += [Text(note, style="yellow") for note in warnings(result.results)]
    parts.append(Text.assemble(("report  ", "bold"), str(result.report), f"   ({done})"))
    return Group(*parts)


def outcome_as_json(result: Outcome) -> dict[str, Any]:
    """The same as one JSON object; metrics in the paper's units, missing values null."""
    results = result.results
    return {
        "name": results.name,
        "dataset": results.dataset,
        "method": results.method,
        "score_on": results.score_on,
        "chosen_epsilon": results.chosen_epsilon,
        "chosen_score": results.chosen_score,
        "answer": answer(results),
        "rounds": [
            {
                "number": found.number,
                "interval": [found.low, found.high],
                "epsilons": found.epsilons,
                "scores": found.scores,
                "note": found.note,
            }
            for found in results.rounds
        ],
        "evaluation": _records(evaluation_table(results)),
        "notes": warnings(results),
        "config": results.config,
        "report": str(result.report),
        "effort": vars(result.effort),
    }


def study(loop: StudyLoop) -> RenderableType:
    """Options and state of a study."""
    known, wanted = loop.stage_members()
    best = loop.strategy.best
    state = "finished" if loop.done else f"{loop.stage}: {known} of {wanted} members trained"
    found = "no finished repeat yet" if best is None else f"{epsilon_text(best.epsilon)}, A_T {100 * best.value:.2f} %"
    table = Table(show_header=False, box=None)
    for key, value in {"study": loop.study.name, "state": state, "best ε": found, **loop.study.identity()}.items():
        table.add_row(Text(key, style="bold"), str(value))
    return table


def study_as_json(loop: StudyLoop) -> dict[str, Any]:
    best = loop.strategy.best
    return {
        "name": loop.study.name,
        "finished": loop.done,
        "stage": loop.stage,
        "best_epsilon": None if best is None else best.epsilon,
        "score": None if best is None else best.value,
        "config": loop.study.shown(),
    }


def study_list(rows: Sequence[Listed]) -> RenderableType:
    """One line a study."""
    table = Table("study", "dataset", "state", "best ε", "A_T %", "created", box=None, header_style="bold")
    for row in rows:
        best = "–" if row.best_epsilon is None else epsilon_text(row.best_epsilon)
        score = "–" if row.score is None else f"{100 * row.score:.2f}"
        table.add_row(row.name, row.dataset, row.status, best, score, row.created[:19].replace("T", " "))
    return table


def dataset_list(rows: Sequence[Dataset]) -> RenderableType:
    """One line a dataset."""
    table = Table("dataset", "what it is", "status", "where", box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    return table


def checks(found: Sequence[Check]) -> RenderableType:
    """One line a check, with a mark."""
    marks = {True: ("ok", "green"), False: ("broken", "red"), None: ("note", "yellow")}
    table = Table(show_header=False, box=None)
    for check in found:
        word, style = marks[check.ok]
        table.add_row(Text(word, style=style), check.subject, Text(check.detail))
    return table


def _evaluation(result: Outcome) -> Table:
    """One line a metric, one column a row of the evaluation table: mean ± std, the paper's printed figures last."""
    rows = evaluation_table(result.results).to_dict("records")
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
