"""The section of the report with the evaluation beside the paper's printed rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from results.html import page
from results.labels import (
    MISSING,
    epsilon_text,
    mean_std_text,
    method_label,
    number_text,
    signed_text,
)
from results.metrics import METRICS
from results.paper.reference import footnotes
from results.search import SearchResults
from results.search_tables import difference_table, evaluation_table, printed_methods
from results.verdict import wording

if TYPE_CHECKING:
    import pandas as pd

PAPER_TASKS = 17
"""Tasks of the evaluation in the paper."""


def evaluation(results: SearchResults) -> str:
    """Returns the section with the chosen point and the baseline beside the paper's printed rows."""
    frame = evaluation_table(results)
    if frame.empty:
        return page.section(
            "Evaluation",
            page.paragraphs("The evaluation has not run yet, and the paper prints no row for this dataset."),
        )
    measured, printed = frame[frame["source"] != "paper"], frame[frame["source"] == "paper"]
    differences = _difference_rows(results)
    of_epsilon = results.of_epsilon
    rows = [*_evaluation_rows(measured, of_epsilon), *differences, *_evaluation_rows(printed, of_epsilon)]
    header = [("method", ""), *((name, metric.unit) for name, metric in METRICS.items()), ("n", "seeds")]
    return page.section(
        "Evaluation",
        page.table(header, rows, "Evaluation of the chosen point"),
        *(page.small(text) for text in _remarks(results, frame)),
    )


def metric_text(row: pd.Series, metric: str) -> str:
    """Returns mean ± standard deviation of a metric in a row of `by_point`."""
    return mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRICS[metric].digits)


def _evaluation_rows(frame: pd.DataFrame, of_epsilon: bool) -> Iterator[tuple[str, list[str]]]:
    for position, (_, row) in enumerate(frame.iterrows()):
        paper = row["source"] == "paper"
        kind = "paper" if paper else "chosen" if position == 0 else ""
        n = MISSING if math.isnan(float(row["n"])) else str(int(row["n"]))
        label = str(row["row"])
        if paper and of_epsilon and row["epsilon"] > 0:
            label += f", ε = {epsilon_text(row['epsilon'])}"
        yield kind, [label, *(metric_text(row, metric) for metric in METRICS), n]


def _difference_rows(results: SearchResults) -> Iterator[tuple[str, list[str]]]:
    pairs = difference_table(results).set_index("metric")
    if not pairs.empty:
        yield (
            "",
            [
                "difference, paired ± s.e.",
                *(_difference_cell(pairs, m) for m in METRICS),
                str(pairs["n"].iloc[0]),
            ],
        )


def _difference_cell(pairs: pd.DataFrame, metric: str) -> str:
    if metric not in pairs.index:
        return MISSING
    digits = METRICS[metric].digits
    mean, error = (float(pairs[name][metric]) for name in ("mean", "standard_error"))
    return f"{signed_text(mean, digits)} ± {number_text(error, digits)}"


def _remarks(results: SearchResults, frame: pd.DataFrame) -> Iterator[str]:
    if not results.evaluation:
        yield "The evaluation of this study has not run yet; only the paper's printed rows are shown."
    yield (
        "Mean ± population standard deviation over seeds; F_T and LCA_10 are fractions, the other metrics are in "
        f"percent. A lower F_T is better.{_difference_remark(results)}"
    )
    if (frame["source"] == "paper").any():
        of_epsilon = " and gives ε only for Permuted MNIST and Split CIFAR-100" if results.zero_is_agem else ""
        tasks = results.evaluation[0].tasks if results.evaluation else PAPER_TASKS
        other = (
            f" This evaluation has {tasks} tasks, so the printed rows cannot be compared with it."
            if tasks != PAPER_TASKS
            else ""
        )
        yield (
            f"Printed rows: the paper's main tables, {PAPER_TASKS} tasks, 5 runs, full training sets; "
            f"comparable only if the configuration below has the same sizes.{other} "
            f"The paper prints no LCA_10{of_epsilon}."
        )
    for method in printed_methods(results):
        yield from (f"On the printed {method_label(method)} row: {note}" for note in footnotes(results.dataset, method))


def _difference_remark(results: SearchResults) -> str:
    if not wording.has_baseline(results):
        return ""
    pair = f"chosen {wording.subject(results)} minus {wording.baseline_name(results)}"
    return f" The difference row is {pair} on the same seeds, ± the standard error of its mean."
