"""The report of a search: an offline page and CSV files."""

from functools import partial
from pathlib import Path

import pandas as pd

from results.figures import added, best_so_far, over_tasks, parameter_curve, shrinking, slices
from results.html import appendix, page
from results.labels import STREAM_LABELS, dataset_label, method_label, strategy_label
from results.pages.search import confidence, evaluation, sections
from results.pages.writing import Figures, drawn, write_page
from results.search import SearchResults
from results.search_tables import certificates_table, difference_table, evaluated_rows, evaluation_table, search_table
from results.verdict import wording
from results.verdict.assessment import trust, trust_rows


def write_report(results: SearchResults, folder: Path) -> Path:
    """Writes the report of a search into `folder`, and returns the path of its page.

    Files: report.html, evaluation.csv, evaluation_difference.csv, search.csv, trust.csv, certificates.csv,
    figures/*.csv and the exported runs, as `write_page` writes them. Raises ValueError without a finished round.
    """
    if not results.rounds:
        raise ValueError(f"study {results.name!r} has no finished round to report; allowed: at least one")
    shown, runs = figures(results), (*results.search, *results.evaluation)
    return write_page(folder / "report.html", partial(_page, results, shown), tables(results), shown, runs=runs)


def tables(results: SearchResults) -> dict[str, pd.DataFrame]:
    """Returns every table, by the name of its file; the first is the evaluation."""
    return {
        "evaluation": evaluation_table(results),
        "search": search_table(results),
        "evaluation_difference": difference_table(results),
        "certificates": certificates_table(results),
        "trust": pd.DataFrame(trust_rows(trust(results))),
    }


def figures(results: SearchResults) -> Figures:
    """Returns every figure. A new figure is one line here and one in `_page`."""
    # One number has a curve; several, or choices, have no axis in common.
    name = results.parameters[0]
    of_points: Figures = (
        {
            parameter_curve.named(name, m): (parameter_curve, parameter_curve.numbers(results, m))
            for m in dict.fromkeys((results.objective, "A_T", "F_T"))
        }
        if results.is_curve
        else {"slices": (slices, slices.numbers(results))}
    )
    return {
        **of_points,
        **({"shrinking": (shrinking, shrinking.numbers(results))} if results.has_spans else {}),
        "best_so_far": (best_so_far, best_so_far.numbers(results)),
        "accuracy_curve": (over_tasks, over_tasks.numbers(evaluated_rows(results), "A_k")),
        **added.numbers(results),
    }


def overview(results: SearchResults) -> str:
    """Returns what a reader sees first of a search, also while it goes on: headlines, warnings, answer, verdict."""
    return sections.overview(results, judged=False) + confidence.verdict(results)


def _page(results: SearchResults, drawings: Figures) -> str:
    shown = drawn(drawings)
    # Taken out one by one: what remains are those over the parameters, whose names depend on the search.
    learning = shown.pop("accuracy_curve")
    if not drawings["accuracy_curve"][1][1]:
        learning = page.paragraphs("No evaluation to show yet.")
    others = [shown.pop(name) for name in added.names()]
    spent, shrunk = shown.pop("best_so_far"), shown.pop("shrinking", "")
    metrics, what = "Accuracy and forgetting" if results.is_curve else "Accuracy", wording.searched(results)
    body = [
        sections.overview(results),
        sections.what_was_run(results),
        page.section(f"{metrics} versus {what}", *shown.values()),
        page.section("How the interval shrank", shrunk) if shrunk else "",
        page.section("What the search trained", spent),
        confidence.how_far(results),
        evaluation.evaluation(results),
        page.section("Accuracy while learning", learning),
        page.section("Figures of this study's own", *others) if others else "",
        sections.search(results),
        appendix.configuration(results.config),
        sections.certificates_section(results),
        appendix.machine(results.facts),
    ]
    heading = f"{wording.heading(what)} for {method_label(results.method)} on {dataset_label(results.dataset)}"
    return page.page(
        f"{heading} — {results.name}",
        results.name,
        heading,
        f"{wording.rounds(results)} of {strategy_label(results.strategy)}, scored by {results.objective} on the "
        f"{STREAM_LABELS[results.score_on]}.",
        "\n".join(filter(None, body)),
        f"Search for {what} · study",
    )
