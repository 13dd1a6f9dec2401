"""The report of a search: an offline page and CSV files."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from results.figures import (
    best_so_far,
    forecast,
    inside_tasks,
    later_repeats,
    orders,
    over_tasks,
    parameter_curve,
    plugins,
    seed_differences,
    shrinking,
    slices,
)
from results.html import appendix, page
from results.labels import STREAM_LABELS, dataset_label, method_label, strategy_label, stream_label
from results.pages.search import confidence, evaluation, first_screen, methods_section, sections
from results.pages.writing import Figures, write_page
from results.search import SearchResults
from results.search_tables import (
    certificates_table,
    difference_table,
    evaluated_rows,
    evaluation_table,
    reference_table,
    search_table,
)
from results.verdict import along_tasks, wording
from results.verdict.assessment import trust, trust_rows

REPEATS = "_repeats"
"""Ending of the name of a figure of later repeats."""


def write_report(results: SearchResults, folder: Path) -> Path:
    """Writes the report of a search into `folder`, and returns the path of its page.

    Files: report.html, evaluation.csv, evaluation_difference.csv, search.csv, trust.csv, certificates.csv, with
    reference rows references.csv, figures/*.csv and the exported runs, as `write_page` writes them. Raises ValueError
    without a finished round.
    """
    if not results.rounds:
        raise ValueError(f"study {results.name!r} has no finished round to report; allowed: at least one")
    drawings = figures(results)
    return write_page(
        folder / "report.html", partial(_page, results, drawings), tables(results), drawings, runs=results.records
    )


def tables(results: SearchResults) -> dict[str, pd.DataFrame]:
    """Returns every table, by the name of its file; the first is the evaluation."""
    return {
        "evaluation": evaluation_table(results),
        "search": search_table(results),
        "evaluation_difference": difference_table(results),
        "certificates": certificates_table(results),
        "trust": pd.DataFrame(trust_rows(trust(results))),
        **({"references": reference_table(results)} if results.references else {}),
        **({"stages": pd.json_normalize(along_tasks.table(results))} if results.stages else {}),
    }


def figures(results: SearchResults) -> Figures:
    """Returns every figure. A new figure is one line here and one in `_page`."""
    # One number has a curve; several, or choices, have no axis in common.
    of_points = _of_one(results) if results.is_curve else {"slices": (slices, slices.numbers(results))}
    differences = seed_differences.numbers(results)
    inside = inside_tasks.numbers(evaluated_rows(results))
    return {
        **of_points,
        **({"shrinking": (shrinking, shrinking.numbers(results))} if results.has_spans else {}),
        "best_so_far": (best_so_far, best_so_far.numbers(results)),
        "accuracy_curve": (over_tasks, over_tasks.numbers(evaluated_rows(results), "A_k")),
        **({"accuracy_over_steps": (inside_tasks, inside)} if len(inside) else {}),
        **({"seed_differences": (seed_differences, differences)} if differences[2].n else {}),
        **plugins.numbers(results),
    }


def _of_one(results: SearchResults) -> Figures:
    """Returns the figures over the only parameter, and those of the later repeats, which come after all of them."""
    metrics = dict.fromkeys((results.objective, "A_T", "F_T"))
    curves = {
        parameter_curve.figure_name(results.parameters[0], m): parameter_curve.numbers(results, m) for m in metrics
    }
    by_order, predicted = orders.numbers(results), forecast.numbers(results)
    prediction: Figures = {} if predicted is None else {"forecast": (forecast, predicted)}
    return {
        **(prediction if results.stages else {}),  # first, where it chose
        **{name: (parameter_curve, curve) for name, curve in curves.items()},
        **prediction,
        **({"orders": (orders, by_order)} if by_order is not None else {}),
        **{f"{name}{REPEATS}": (later_repeats, curve) for name, curve in curves.items() if later_repeats.panels(curve)},
    }


def overview(results: SearchResults) -> str:
    """Returns what a reader sees first of a search, also while it goes on: summary, warnings, verdict."""
    return first_screen.overview(results)


def _page(results: SearchResults, drawings: Figures) -> str:
    # Drawn where they stand, because parts of the page unfold below the figure to which they belong.
    left = dict(drawings)

    def draw(name: str, *folds: str) -> str:
        return page.figure(name, *left.pop(name), *folds) if name in left else ""

    others = [draw(name) for name in plugins.names()]
    first, *further = (name for name, (module, _) in drawings.items() if module in (parameter_curve, slices, forecast))
    evaluated = drawings["accuracy_curve"][1][1]
    body = [
        first_screen.first_screen(results, draw(first, *_repeats(draw, first))),
        first_screen.in_full(results),
        confidence.how_far(results),
        sections.what_was_run(results),
        evaluation.evaluation(
            results,
            draw("seed_differences"),
            draw("accuracy_curve") if evaluated else "",
            draw("accuracy_over_steps"),
        ),
        *(
            _further(results, drawings, name, draw(name, *_repeats(draw, name)), unfolds=place > 0)
            for place, name in enumerate(further)
        ),
        sections.stages(results),
        page.section(f"{wording.heading(wording.searched_parameters(results))} by order of tasks", draw("orders"))
        if "orders" in drawings
        else "",
        page.section("How the interval shrank", draw("shrinking")) if "shrinking" in drawings else "",
        page.section("What the search trained", draw("best_so_far")),
        sections.search(results),
        page.section("Figures of this study's own", *others) if others else "",
        methods_section.methods(results),
        appendix.configuration(results.config),
        sections.certificates_section(results),
        appendix.machine(results.facts),
    ]
    what = wording.searched_parameters(results)
    heading = f"{wording.heading(what)} for {method_label(results.method)} on {dataset_label(results.dataset)}"
    return page.page(
        f"{heading} — {results.name}",
        results.name,
        heading,
        f"{wording.rounds(results)} of {strategy_label(results.strategy)}, scored by {results.objective} on the "
        f"{stream_label(results.config, STREAM_LABELS[results.score_on])}.",
        "\n".join(filter(None, body)),
        f"Search for {what} · study",
    )


def _repeats(draw: Callable[[str], str], name: str) -> list[str]:
    """Returns the figure of the later repeats as a part that unfolds below the figure of all; [] without it."""
    figure = draw(f"{name}{REPEATS}")
    return [page.fold("Later repeats", figure)] if figure else []


def _further(results: SearchResults, drawings: Figures, name: str, figure: str, unfolds: bool) -> str:
    """Returns the section with a prediction or a further metric over the parameter; unfolds: see `page.section`."""
    if name == "forecast":
        return page.section("Predicted for the tasks of the evaluation", figure)
    metric = drawings[name][1].metric
    title = {"F_T": "Forgetting", "A_T": "Accuracy"}.get(metric, metric)
    return page.section(f"{title} versus {wording.searched_parameters(results)}", figure, unfolds=unfolds)
