"""The report of a study: one page that opens offline, and every number of it as CSV beside it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from results.answer import answer
from results.export import export_runs
from results.figures import curves, epsilon_curve, shrinking
from results.files import write_atomically, write_csv
from results.labels import STREAM_LABELS, count_text, dataset_label, method_label
from results.study import SearchRound, StudyResults
from results.tables import certificates_table, difference_table, evaluated_rows, evaluation_table, search_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SearchRound", "StudyResults", "answer", "evaluation_table", "write_report"]


def write_report(results: StudyResults, folder: Path) -> Path:
    """Write report.html, evaluation.csv, evaluation_difference.csv, search.csv, certificates.csv, figures/*.csv
    and the exported runs into `folder`.

    Every file is written atomically, the page last. Returns the page's path. Needs at least one round;
    ValueError otherwise.
    """
    if not results.rounds:
        raise ValueError(f"study {results.name!r} has no finished repeat to report; allowed: at least one")
    figures = _figures(results)
    for name, table in _tables(results, figures).items():
        write_csv(folder / f"{name}.csv", table)
    unique = {record.key: record for record in (*results.search, *results.evaluation)}
    export_runs(unique.values(), folder)
    return write_atomically(folder / "report.html", _page(results, figures).encode())


def _figures(results: StudyResults) -> dict[str, tuple[ModuleType, Any]]:
    """name -> (the figure's module, its numbers). A new figure is one line here and one in `_page`."""
    return {
        "epsilon_A_T": (epsilon_curve, epsilon_curve.numbers(results, "A_T")),
        "epsilon_F_T": (epsilon_curve, epsilon_curve.numbers(results, "F_T")),
        "shrinking": (shrinking, shrinking.numbers(results)),
        "accuracy_curve": (curves, curves.numbers(evaluated_rows(results), "A_k")),
    }


def _tables(results: StudyResults, figures: dict[str, tuple[ModuleType, Any]]) -> dict[str, pd.DataFrame]:
    """File name without ending -> table."""
    tables = {
        "search": search_table(results),
        "evaluation": evaluation_table(results),
        "evaluation_difference": difference_table(results),
        "certificates": certificates_table(results),
    }
    for module, numbers in figures.values():
        tables |= {f"figures/{name}": table for name, table in module.tables(numbers).items()}
    return tables


def _page(results: StudyResults, figures: dict[str, tuple[ModuleType, Any]]) -> str:
    from results import appendix, page, sections

    drawn = {name: page.figure(name, m.draw(numbers), m.caption(numbers)) for name, (m, numbers) in figures.items()}
    curve = (
        drawn["accuracy_curve"]
        if figures["accuracy_curve"][1].curves
        else page.paragraphs("No evaluation to show yet.")
    )
    body = [
        sections.overview(results),
        sections.what_was_run(results),
        page.section("Accuracy and forgetting versus ε", drawn["epsilon_A_T"], drawn["epsilon_F_T"]),
        page.section("How the interval shrank", drawn["shrinking"]),
        sections.evaluation(results),
        page.section("Accuracy while learning", curve),
        sections.search(results),
        appendix.configuration(results.config),
        sections.certificates(results),
        appendix.machine(results.facts),
    ]
    method, dataset = method_label(results.method), dataset_label(results.dataset)
    heading = f"ε for {method} on {dataset}"
    repeats, stream = count_text(len(results.rounds), "repeat"), STREAM_LABELS[results.score_on]
    lead = f"{repeats} of interval narrowing, scored by A_T on the {stream}."
    return page.page(f"{heading} — {results.name}", results.name, heading, lead, "\n".join(body))
