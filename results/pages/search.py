"""The report of a search: one page that opens offline, and CSV files with all its numbers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from results.export import export_runs
from results.figures import best_so_far, curves, parameter_curve, shrinking, slices
from results.files import write_atomically, write_csv
from results.labels import STREAM_LABELS, dataset_label, method_label, strategy_label
from results.search import SearchResults
from results.search_tables import certificates_table, difference_table, evaluated_rows, evaluation_table, search_table
from results.verdict import wording
from results.verdict.assessment import trust, trust_rows

if TYPE_CHECKING:
    import pandas as pd


def write_report(results: SearchResults, folder: Path) -> Path:
    """Writes the report of a search into `folder`, and returns the path of its page.

    Files: report.html, evaluation.csv, evaluation_difference.csv, search.csv, trust.csv, certificates.csv,
    figures/*.csv and the exported runs. Each is written atomically, the page last, so that a page never shows numbers
    that are not in the files. Raises ValueError without a finished round.
    """
    if not results.rounds:
        raise ValueError(f"study {results.name!r} has no finished round to report; allowed: at least one")
    figures = _figures(results)
    for name, table in _tables(results, figures).items():
        write_csv(folder / f"{name}.csv", table)
    # With --score-on eval the evaluation's records are also those of the search.
    unique = {record.key: record for record in (*results.search, *results.evaluation)}
    export_runs(unique.values(), folder)
    return write_atomically(folder / "report.html", _page(results, figures).encode())


def _figures(results: SearchResults) -> dict[str, tuple[ModuleType, Any]]:
    """Returns name -> (module, its numbers) of every figure. A new figure is one line here and one in `_page`."""
    found: dict[str, tuple[ModuleType, Any]] = {}
    if results.is_curve:
        for metric in ("A_T", "F_T"):
            found[f"{results.parameters[0]}_{metric}"] = (parameter_curve, parameter_curve.numbers(results, metric))
    else:
        found["slices"] = (slices, slices.numbers(results))
    if results.has_spans:
        found["shrinking"] = (shrinking, shrinking.numbers(results))
    found["best_so_far"] = (best_so_far, best_so_far.numbers(results))
    found["accuracy_curve"] = (curves, curves.numbers(evaluated_rows(results), "A_k"))
    return found


def _tables(results: SearchResults, figures: dict[str, tuple[ModuleType, Any]]) -> dict[str, pd.DataFrame]:
    """Returns file name without ending -> table."""
    import pandas as pd

    tables = {
        "search": search_table(results),
        "evaluation": evaluation_table(results),
        "evaluation_difference": difference_table(results),
        "certificates": certificates_table(results),
        "trust": pd.DataFrame(trust_rows(trust(results))),
    }
    for module, numbers in figures.values():
        tables |= {f"figures/{name}": table for name, table in module.tables(numbers).items()}
    return tables


def _page(results: SearchResults, figures: dict[str, tuple[ModuleType, Any]]) -> str:
    from results.html import appendix, page
    from results.pages import search_evaluation, search_sections, search_trust

    drawn = {name: page.figure(name, module, numbers) for name, (module, numbers) in figures.items()}
    learning = drawn.pop("accuracy_curve")  # the curves over the parameter remain, whatever their names
    if not figures["accuracy_curve"][1].curves:
        learning = page.paragraphs("No evaluation to show yet.")
    spent, shrunk = drawn.pop("best_so_far"), drawn.pop("shrinking", "")
    metrics = "Accuracy and forgetting" if results.is_curve else "Accuracy"
    body = [
        search_sections.overview(results),
        search_sections.what_was_run(results),
        page.section(f"{metrics} versus {wording.searched(results)}", *drawn.values()),
        page.section("How the interval shrank", shrunk) if shrunk else "",
        page.section("What the search trained", spent),
        search_trust.how_far(results),
        search_evaluation.evaluation(results),
        page.section("Accuracy while learning", learning),
        search_sections.search(results),
        appendix.configuration(results.config),
        search_sections.certificates(results),
        appendix.machine(results.facts),
    ]
    method, dataset, what = method_label(results.method), dataset_label(results.dataset), wording.searched(results)
    heading = f"{wording.heading(what)} for {method} on {dataset}"
    return page.page(
        f"{heading} — {results.name}",
        results.name,
        heading,
        f"{wording.rounds(results)} of {strategy_label(results.strategy)}, scored by A_T on the "
        f"{STREAM_LABELS[results.score_on]}.",
        "\n".join(part for part in body if part),
        f"Search for {what} · study",
    )
